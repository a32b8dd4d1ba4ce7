"""Parser of the options of sbatch, salloc and srun, as Slurm records them in SubmitLine.

The accounting keeps the partition where a job ran, and one number of nodes for `--gres=gpu:4` (four
GPUs on one node) and `--gpus=4` (on any nodes). Only the submitted options tell what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

# Of sbatch, salloc and srun (their manual pages, Slurm 22.05): short options with a value, long
# options whose value, if any, is written behind "=".
_WITH_VALUE = frozenset("ABCDFGJLMNSTabcdeimnopqrtwx")
_MAY_HAVE_VALUE = frozenset("IK")  # only directly behind the letter
_FLAGS = frozenset(
    (
        "bcast", "bell", "compress", "contiguous", "disable-status", "exact", "exclusive",
        "get-user-env", "help", "hold", "ignore-pbs", "immediate", "kill-command",
        "kill-on-bad-exit", "label", "multi-prog", "nice", "no-allocate", "no-bell", "no-kill",
        "no-requeue", "no-shell", "overcommit", "overlap", "oversubscribe", "parsable",
        "preserve-env", "propagate", "pty", "quiet", "quit-on-interrupt", "reboot", "requeue",
        "resv-ports", "send-libs", "share", "spread-job", "test-only", "unbuffered", "usage",
        "use-min-nodes", "verbose", "version", "wait", "x11",
    )
)  # fmt: skip
_LONG = {"p": "partition", "G": "gpus", "N": "nodes", "C": "constraint"}
_PER_NODE = {"gres", "gpus-per-node", "tres-per-node"}
_FREE = {"gpus", "gpus-per-task", "tres-per-task"}  # the GPUs may be on any nodes


class Asked(NamedTuple):
    """What the options of a job ask for; "" and () = nothing is said."""

    partitions: tuple[str, ...] = ()
    gpu_types: tuple[str, ...] = ()
    features: str = ""
    may_span: bool = False  # GPUs are asked for without saying how many on a node


def _unbundled(letters: str) -> tuple[str, str]:
    """Return the option with a value of short ones written together, and what follows it.

    In "-Hpgpu" the flag H is in front of "p" with "gpu". An option without a value is returned
    only if there is no other.
    """
    place = 0
    while place < len(letters) - 1 and letters[place] not in _WITH_VALUE:
        if letters[place] in _MAY_HAVE_VALUE:  # what follows is its value
            return letters[place], letters[place + 1 :]
        place += 1
    return letters[place], letters[place + 1 :].removeprefix("=")


def _options(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of the options before the script, short ones under their long names.

    Options after --wrap are not yielded: they may be those of the wrapped command, which Slurm
    records without quotes.
    """
    words = text.split()[:0:-1]  # the next one is the last
    while words:
        word = words.pop()
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            takes_next = not equals and name not in _FLAGS
        elif word.startswith("-") and len(word) > 1:
            letter, value = _unbundled(word[1:])
            name, takes_next = _LONG.get(letter, letter), not value and letter in _WITH_VALUE
        else:  # the script: what follows are its arguments
            return
        if name == "wrap":
            return
        if takes_next and words and not words[-1].startswith("-"):
            value = words.pop()
        yield name, value.strip("'\"")


def gpu_types(text: str) -> tuple[str, ...]:
    """Return the GPU types in a list of generic resources such as "gpu:a100:2,mps:100"."""
    found = []
    for part in text.replace("gres/", "").replace("gres:", "").split(","):
        words = part.split("(")[0].replace("=", ":").split(":")
        if words[0] == "gpu" and len(words) > 1 and not words[1].isdigit():
            found.append(words[1])
    return tuple(dict.fromkeys(filter(None, found)))


def asked(text: str, job_name: str = "") -> Asked:
    """Return what a line such as "sbatch -p gpu,long --gres=gpu:a100:4 run.sh" asks for.

    job_name: of the job; one with blanks is in the line without quotes.
    """
    partitions: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    features = nodes = ""
    seen = set()
    for name, value in _options(text.replace(job_name, "_") if " " in job_name else text):
        seen.add(name)
        if name == "partition":
            partitions = tuple(filter(None, value.split(",")))
        elif name == "constraint":
            features = value
        elif name == "nodes":
            nodes = value.rpartition("-")[2]  # the most of a range such as 1-4
        elif name in ("gres", "tres-per-node", "tres-per-task"):
            types += gpu_types(value)
        elif name in ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"):
            types += gpu_types(",".join(f"gpu:{part}" for part in value.split(",")))
    spans = bool(seen & _FREE) and not seen & _PER_NODE and nodes != "1"
    return Asked(partitions, tuple(dict.fromkeys(types)), features, spans)


def partitions_of(one: Asked, recorded: str) -> str:
    """Return all partitions of a job with | between them; "" = only the recorded one.

    A job that has not started is recorded with all of its partitions, a job that has with the one
    where it runs. Where that is none of the submitted ones, the job was moved to it later.
    """
    listed = tuple(filter(None, recorded.split(",")))
    names = one.partitions if set(listed) <= set(one.partitions) else listed
    return "" if names == (recorded,) else "|".join(names)
