"""Parser of the options of sbatch, salloc and srun, as Slurm records them in SubmitLine.

The accounting keeps the partition where a job ran, and one number of nodes for `--gres=gpu:4` (four
GPUs on one node) and `--gpus=4` (on any nodes). Only the submitted options tell what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

# Short options with a value; long options without one. All others are the reverse.
_WITH_VALUE = frozenset("ABCDFGJLMNSWabcdeimnopqtwx")
_FLAGS = frozenset(
    (
        "contiguous", "exclusive", "get-user-env", "help", "hold", "ignore-pbs", "immediate",
        "kill-on-invalid-dep", "no-bell", "no-requeue", "no-shell", "overcommit", "oversubscribe",
        "parsable", "quiet", "reboot", "requeue", "share", "spread-job", "test-only",
        "use-min-nodes", "verbose", "version", "wait",
    )
)  # fmt: skip
_LONG = {"p": "partition", "G": "gpus", "N": "nodes", "C": "constraint"}
_PER_NODE = ("gres", "gpus-per-node", "tres-per-node")


class Asked(NamedTuple):
    """What the options of a job ask for; "" and () = nothing is said."""

    partitions: tuple[str, ...] = ()
    gpu_types: tuple[str, ...] = ()
    features: str = ""
    may_span: bool = False  # GPUs are asked for without saying how many on a node


def _options(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of the options before the script, short ones under their long names."""
    words = text.split()[1:]
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and name not in _FLAGS and words:
                value = words.pop(0)
            yield name, value.strip("'\"")
        elif word.startswith("-") and len(word) > 1:
            letter, value = word[1], word[2:].removeprefix("=")
            if letter in _WITH_VALUE and not value and words:
                value = words.pop(0)
            yield _LONG.get(letter, letter), value.strip("'\"")
        else:  # the script: what follows are its arguments
            return


def gpu_types(text: str) -> tuple[str, ...]:
    """Return the GPU types in a list of generic resources such as "gpu:a100:2,mps:100"."""
    found = []
    for part in text.replace("gres/", "").replace("gres:", "").split(","):
        words = part.split("(")[0].replace("=", ":").split(":")
        if words[0] == "gpu" and len(words) > 1 and not words[1].isdigit():
            found.append(words[1])
    return tuple(dict.fromkeys(filter(None, found)))


def asked(text: str) -> Asked:
    """Return what a line such as "sbatch -p gpu,long --gres=gpu:a100:4 run.sh" asks for."""
    partitions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    features = ""
    seen = set()
    for name, value in _options(text):
        seen.add(name)
        if name == "partition":
            partitions = tuple(filter(None, value.split(",")))
        elif name == "constraint":
            features = value
        elif name in ("gres", "tres-per-node", "tres-per-task"):
            types += gpu_types(value)
        elif name in ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"):
            types += gpu_types(",".join(f"gpu:{part}" for part in value.split(",")))
    spans = "gpus" in seen and not seen & {*_PER_NODE, "nodes"}
    return Asked(partitions, tuple(dict.fromkeys(types)), features, spans)
