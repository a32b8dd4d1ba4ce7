"""Policies on the second half of nine public traces, with jitter, under nine assumptions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from common import Result, Table, parser, run, shared
from traces.catalogue import TRACES
from traces.cell import Way, play
from traces.halves import ESTIMATES, SPEEDS, Trace
from traces.tables import (
    MAIN_HEAD,
    OTHERS,
    OURS,
    SPEED_HEADINGS,
    Cells,
    against,
    further_tables,
    trained,
)

from adlro.errors import ConfigError
from adlro.evaluate.pooled import RIVALS
from adlro.workloads.jitter import Jitter

FOLDER = Path(__file__).parent
POLICIES = (RIVALS[0], OURS, *OTHERS)
TRAINED = "Helios Venus"  # has policies of its own: FOLDER/trained-SPEEDS.npz
REPEATS, FEW_REPEATS, FEW_WINDOWS = 8, 2, 6  # the latter two in a quick run
NOTE = (
    "A figure is the geometric mean over windows of the ratio to the rival, with Student's t "
    "interval over windows (of the logs). In each window a mean JCT is the average of "
    f"{REPEATS} runs with estimates changed by about 1 %. These traces do not state how fast a job "
    "is on another GPU model: unless speeds are named, a window's ratio is the mean over three "
    "assumptions (all models alike; the three measured types of `paper16`; the 26 of `gavel16`, a "
    "job's type by a hash of its id). oracle: run times are known; memory: predicted from jobs "
    "that had ended; request: as requested, or the longest of the first half where nothing was. "
    "The shipped `adlro` has never seen a trace. Rivals were chosen beforehand."
)


def trained_name(speeds: str) -> str:
    """Name of the policy that was trained on the first half of TRAINED."""
    return f"trained-{speeds}"


def policies(trace: Trace, speeds: str, estimates: str) -> list[str]:
    """Names of the policies to run, including the one trained for the trace, if any."""
    has_own = trace.name == TRAINED and estimates == "oracle"
    return [*POLICIES, *([f"{FOLDER}/{trained_name(speeds)}.npz"] if has_own else [])]


def _figures(found: Mapping[str, Cells]) -> dict[str, dict[str, float]]:
    return {
        f"{trace}, {speeds}, {estimates}": {
            name: sum(own.jct_s) / len(own.jct_s) for name, own in cell.policies.items()
        }
        for trace, cells in found.items()
        for (speeds, estimates), cell in cells.items()
    }


def make(traces: Sequence[Trace], way: Way) -> Result:
    """Play all cells and make the tables."""
    folder = shared()
    way.folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Cells] = {
        trace.name: {
            (speeds, estimates): play(
                trace, folder / trace.file, (speeds, estimates),
                policies(trace, speeds, estimates), way,
            )
            for speeds in SPEEDS
            for estimates in ESTIMATES
        }
        for trace in traces
    }  # fmt: skip
    more = further_tables(traces, found)
    if TRAINED in found:
        names = {speeds: trained_name(speeds) for speeds in SPEEDS}
        caption = f"`{OURS}` trained on the first half of {TRAINED}, with oracle:"
        head = ("part", "against", *SPEED_HEADINGS, "claimed")
        more.append(Table(caption, head, trained(found[TRAINED], names), False))
    first = against(found, OURS, RIVALS[0], "jct_s")
    details = {
        trace: {" ".join(key): cell.model_dump() for key, cell in cells.items()}
        for trace, cells in found.items()
    }
    return Result(MAIN_HEAD, first, _figures(found), details, more=more, note=NOTE)


def chosen(names: str | None) -> list[Trace]:
    """Return the traces named in --traces, all by default.

    Raises:
        ConfigError: there is no trace of that name.
    """
    known = {trace.name: trace for trace in TRACES}
    if names is None:
        return list(TRACES)
    for name in names.split(","):
        if name not in known:
            raise ConfigError(f"--traces: no trace {name!r}; there are {', '.join(known)}")
    return [known[name] for name in names.split(",")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    options = parser(__doc__ or "", FOLDER)
    options.add_argument("--traces", metavar="NAMES", help="some traces only, commas between")
    given = options.parse_args(arguments)
    repeats, most = (FEW_REPEATS, FEW_WINDOWS) if given.quick else (REPEATS, None)
    way = Way(given.keep, given.resume, Jitter(repeats), most)
    return run(given, FOLDER, lambda: make(chosen(given.traces), way))


if __name__ == "__main__":
    sys.exit(main())
