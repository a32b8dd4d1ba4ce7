"""What hostile command lines are made of: odd numbers and words, and files to be damaged."""

from __future__ import annotations

import os
import random
import re

NUMBERS = (
    "0", "-1", "1", "2", "3", "5", "7", "1.5", "nan", "-nan", "inf", "-inf", "1e999", "1e-320",
    "-0.0", "1_0", "0x10", "٣", "", " ", "1e3", "999999999999999999999", "9" * 5000, "true", "5 5",
)  # fmt: skip
WORDS = (
    "", " ", "-", "--", ".", "..", "/", "x", "[red]", "[/]", "{}", "\x1b[31m", "\u202e", "%s%n",
    "a=b", "=", "a=", "=b", "min-min+lookahead:0", "adlro+lookahead:9:9:9:9", "noisy:1e999",
    "noisy:", "auto:1%:0", "9:3", "0:0", "auto:nan%", os.fsdecode(b"\xff\xfe"), "x" * 5000,
)  # fmt: skip
TOKENS = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n\n", b"nan", b"inf", b"1e999", b"-1", b"0",
    b"[" * 3000, b"{a=" * 3000, b"9" * 5000, b"0x" + b"f" * 6000, b'"', b"'''", b"=", b",",
    b",,,,", b"[[", b"]]",
    b"[]", b"{}", b"true", b"\\ud800", b"\\u001b[31m", b"1979-05-27", b"99999999999", b"#", b";",
    b"\t", b"cluster = 1\n", b"nodes = 3\n", b"types = []\n", b"\x1b[31m",
)  # fmt: skip
SCENARIO = """name = "mine"
jobs = 20
load = 0.8
measure = "middle 70 %"
estimates = "noisy:0.5"
accounts = ["a", "b"]
failures = { mtbf_h = 90, repair_h = 1 }
arrivals = { process = "bursty", peak = 3.0, share = 0.2 }
[cluster]
name = "c"
[[cluster.nodes]]
name = "n"
count = 2
gpu = "V100"
gpus = 4
cores = 32
memory_gb = 256
[[cluster.nodes]]
name = "m"
gpu = "A100 40GB"
gpus = 2
cores = 32
memory_gb = 256
joins_h = 1
[[types]]
name = "t"
share = 1.0
kind = "ml"
size = { median_s = 100 }
gpus = { values = [1, 2], p = [0.5, 0.5] }
[[types]]
name = "u"
share = 0.5
kind = "ml"
size = { median_s = 50 }
gpu_share = 0.5
[[changes]]
kind = "wear"
to_h = 1
speed = 0.5
[[quotas]]
account = "a"
share = 0.5
"""
CLUSTER = """name = "c"
[[nodes]]
name = "n"
count = 2
gpu = "V100"
gpus = 4
cores = 32
memory_gb = 256
"""
DECIDE = "def decide(view, params, memory, out):\n"
POLICIES = (
    DECIDE + "    return 0\n",
    DECIDE + "    return view.queue[99].job\n",
    DECIDE + "    out[0].job = 10**9\n    return 1\n",
    DECIDE + "    return 10**30\n",
    DECIDE + "    return None\n",
    DECIDE + "    raise SystemExit(3)\n",
    DECIDE + "    raise KeyError('\\x1b[31m')\n",
    "def params(context):\n    raise SystemExit\n" + DECIDE + "    return 0\n",
    "def decide(queue):\n    return 0\n",
    "decide = 3\n",
    "raise SystemExit\n",
    "import nowhere_to_be_found\n",
    "def decide(view, params, memory, out)\n",
    "x = '\x00'\n",
    "def params(context):\n    return ['x']\n" + DECIDE + "    return 0\n",
    "def memory(context):\n    return -5\n" + DECIDE + "    return 0\n",
    "def refuses(context):\n    return 3\n" + DECIDE + "    return 0\n",
    "from adlro.model.feasibility import smallest_feasible, start\n"
    + DECIDE
    + "    q, p = smallest_feasible(view)\n"
    "    return start(out, view.queue[q].job, p) if q >= 0 else 0\n",
)


def damage(rng: random.Random, data: bytes) -> bytes:
    """The bytes with none to four wounds."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(7):
            case 0:
                data = data[:at] + rng.choice(TOKENS) + data[at:]
            case 1:
                data = data[:at]
            case 2:
                data = data[:at] + data[at + rng.randrange(1, 30) :]
            case 3:
                data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            case 4:
                data = data[:at] + data[max(at - 200, 0) : at] + data[at:]
            case 5:
                numbers = list(re.finditer(rb"\d+(\.\d+)?", data))
                if numbers:
                    found = rng.choice(numbers)
                    new = rng.choice(NUMBERS).encode()
                    data = data[: found.start()] + new + data[found.end() :]
            case 6:
                lines = data.splitlines(keepends=True)
                rng.shuffle(lines)
                data = b"".join(lines) if rng.random() < 0.3 else data
    return data
