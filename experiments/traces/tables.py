"""The tables of the experiment: windows for tuning and windows for claims stand apart in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from common import Table
from traces.cell import GANG_NAMES, Cell
from traces.halves import ESTIMATES, LOAD, SPEEDS, Trace, is_for_tuning
from versus import percent

from adlro.evaluate.pooled import RIVALS, Pooled, pool
from adlro.model.state import Floats
from adlro.policies.loading import learned

Cells = Mapping[tuple[str, str], Cell]  # (speeds, estimates) -> cell
OURS, TODAY = "adlro", "slurm"
OTHERS = ("drain-argmin", "pair-sjf", "easy-backfill", "fcfs", TODAY)
SPEED_HEADINGS = ("no speeds", "measured mix", "Gavel types")  # of SPEEDS
PARTS = ("claims", "tuning")
ALL = "**pooled**"  # the row over all traces
FEWEST = 5  # windows with such jobs, for a figure by gang size
_WORST_AGAINST = ((RIVALS[0],), (RIVALS[1],), RIVALS, (TODAY,))


def claimed(intervals: Sequence[tuple[float, float] | None]) -> str:
    """Return the claim about a difference on which all assumptions agree."""
    if all(interval is not None and interval[1] < 0 for interval in intervals):
        return "shorter"
    if all(interval is not None and interval[0] > 0 for interval in intervals):
        return "longer"
    return "nothing"


def of_part(logs: Floats, part: str) -> Floats:
    """Return the windows of a part; logs [W]."""
    tuning = np.array([is_for_tuning(window) for window in range(len(logs))])
    return logs[tuning if part == "tuning" else ~tuning]


def _mean_over_speeds(cells: Cells, estimates: str, logs_of: Callable[[Cell], Floats]) -> Floats:
    """Return the log ratios [W] of an estimator, as means over the assumptions on speeds."""
    found: Floats = np.mean([logs_of(cells[speeds, estimates]) for speeds in SPEEDS], axis=0)
    return found


def _groups(found: Mapping[str, Cells]) -> Iterable[tuple[str, list[Cells]]]:
    """Return each trace by itself, then all of them together."""
    yield from ((trace, [cells]) for trace, cells in found.items())
    yield ALL, list(found.values())


def logs(
    group: Sequence[Cells], estimates: str, part: str, logs_of: Callable[[Cell], Floats]
) -> Floats:
    """Return the log ratios of all windows of a part in a group of traces; nan are left out."""
    every = [of_part(_mean_over_speeds(cells, estimates, logs_of), part) for cells in group]
    values = np.concatenate(every)
    return values[~np.isnan(values)]


def _shown(found: Pooled) -> str:
    return percent(found.mean_pct, found.ci95)


def against(found: Mapping[str, Cells], policy: str, rival: str, metric: str) -> list[list[str]]:
    """Return a policy against a rival by trace, part and estimator."""
    lines = []
    for part in PARTS:
        for name, group in _groups(found):
            own = [
                logs(group, e, part, lambda cell: cell.log_ratios(policy, rival, metric))
                for e in ESTIMATES
            ]
            cells = [_shown(pool(values)) if len(values) else "-" for values in own]
            lines.append([part, name, str(len(own[0])), *cells])
    return lines


def _by_speeds(found: Mapping[str, Cells], rivals: Sequence[str]) -> list[list[str]]:
    """Return our policy against rivals, pooled over all traces, for each assumption on speeds."""
    lines = []
    for part in PARTS:
        for rival in rivals:
            for estimates in ESTIMATES:
                pooled = [
                    pool(
                        np.concatenate(
                            [
                                of_part(cells[speeds, estimates].log_ratios(OURS, rival), part)
                                for cells in found.values()
                            ]
                        )
                    )
                    for speeds in SPEEDS
                ]
                claim = claimed([one.ci95 for one in pooled])
                lines.append([part, rival, estimates, *(_shown(one) for one in pooled), claim])
    return lines


def _worst_cell(group: Sequence[Cells], policy: str, rivals: Sequence[str], part: str) -> str:
    """Return the largest ratio to the best rival in a window under any assumption on speeds."""
    worst = [
        max(
            of_part(_to_best(own[s, e], policy, rivals), part).max()
            for own in group
            for s in SPEEDS
        )
        for e in ESTIMATES
    ]
    return " / ".join(f"{np.exp(ratio):.2f}" for ratio in worst)


def _to_best(cell: Cell, policy: str, rivals: Sequence[str]) -> Floats:
    """Return the log ratio of mean JCT to that of the best rival in each window [W]."""
    found: Floats = np.max([cell.log_ratios(policy, rival) for rival in rivals], axis=0)
    return found


def _worst(found: Mapping[str, Cells]) -> list[list[str]]:
    """Return the worst window of our policy against each rival, and against the better one."""
    return [
        [part, name, *(_worst_cell(group, OURS, rivals, part) for rivals in _WORST_AGAINST)]
        for part in PARTS
        for name, group in _groups(found)
    ]


def _by_gang(found: Mapping[str, Cells]) -> list[list[str]]:
    """Return mean JCT by gang size against each rival, pooled over all traces."""
    lines = []
    group = list(found.values())
    for part in PARTS:
        for size, name in enumerate(GANG_NAMES):
            for rival in (*RIVALS, TODAY):
                own = [
                    logs(
                        group, e, part,
                        lambda cell, size=size, rival=rival: cell.gang_log_ratios(
                            OURS, rival, size
                        ),
                    )
                    for e in ESTIMATES
                ]  # fmt: skip
                few = len(own[0]) < FEWEST
                cells = ["-" if few else _loser(pool(values)) for values in own]
                lines.append([part, name, rival, str(len(own[0])), *cells])
    return lines


def _loser(found: Pooled) -> str:
    """Format a difference, in bold if the interval says that these jobs lose."""
    text = _shown(found)
    return f"**{text}**" if found.ci95 is not None and found.ci95[0] > 0 else text


def _others(found: Mapping[str, Cells]) -> list[list[str]]:
    """Return all other policies against min-min, pooled over all traces."""
    group, lines = list(found.values()), []
    for part in PARTS:
        for policy in OTHERS:
            own = [
                pool(logs(group, e, part, lambda cell, p=policy: cell.log_ratios(p, RIVALS[0])))
                for e in ESTIMATES
            ]
            worst = _worst_cell(group, policy, RIVALS[:1], part)
            lines.append([part, policy, *(_shown(one) for one in own), worst])
    return lines


def _mean_of(cell: Cell, policy: str, field: str, part: str) -> float:
    """Return the mean over the windows of a part of a figure of a policy; nan = not measured."""
    values = getattr(cell.policies[policy], field)
    return float("nan") if values is None else float(of_part(np.array(values), part).mean())


def _by_part(
    found: Mapping[str, Cells], columns_of: Callable[[Cells, str], list[list[float]]]
) -> list[list[str]]:
    """Return a line for each part and trace; a column is a list of figures."""
    return [
        [part, trace, *(" / ".join(f"{x:.1f}" for x in own) for own in columns_of(cells, part))]
        for part in PARTS
        for trace, cells in found.items()
    ]


def _chance(cells: Cells, part: str) -> list[list[float]]:
    """Return how far 1 % jitter of the estimates alone moves the mean JCT of a window."""
    return [
        [
            float(np.mean([_mean_of(cells[s, e], name, "jitter_sd_pct", part) for s in SPEEDS]))
            for e in ESTIMATES
        ]
        for name in (*RIVALS, OURS, TODAY)
    ]


def _outside(cells: Cells, part: str) -> list[list[float]]:
    """Return how many features lie outside the training range, by estimator."""
    return [
        [_mean_of(cells[speeds, e], OURS, "outside", part) for speeds in SPEEDS] for e in ESTIMATES
    ]


def _busy(found: Mapping[str, Cells]) -> list[list[str]]:
    """Return GPU use and mean wait of min-min with oracle, by part and trace."""
    lines = []
    for part in PARTS:
        for trace, cells in found.items():
            own = [cells[speeds, "oracle"] for speeds in SPEEDS]
            use = [100 * _mean_of(cell, RIVALS[0], "gpu_utilisation", part) for cell in own]
            wait = [_mean_of(cell, RIVALS[0], "mean_wait_s", part) / 3600 for cell in own]
            count = len(of_part(np.array(own[0].policies[RIVALS[0]].jct_s), part))
            shown = (" / ".join(f"{x:.0f}" for x in use), " / ".join(f"{x:.1f}" for x in wait))
            lines.append([part, trace, str(count), *shown])
    return lines


def _played(traces: Sequence[Trace], found: Mapping[str, Cells]) -> list[list[str]]:
    lines = []
    for trace in traces:
        cells = [found[trace.name][speeds, "oracle"] for speeds in SPEEDS]
        count = len(cells[0].policies[OURS].jct_s)
        lines.append(
            [
                trace.name,
                ", ".join(f"{n * gpus} {model}" for model, (n, gpus, _, _) in trace.nodes.items()),
                trace.about,
                f"{trace.begin_s / 86_400:.0f} to {trace.split_s / 86_400:.0f}",
                f"{count} of {trace.window:,}",
                " / ".join(f"{cell.stretch:.2f}" for cell in cells),
                " / ".join(f"{cell.load:.2f}" for cell in cells),
            ]
        )
    return lines


def _assumed(found: Mapping[str, Cells]) -> list[list[str]]:
    return [
        [trace, line]
        for trace, cells in found.items()
        for line in cells["none", "memory"].assumptions
    ]


def trained(cells: Cells, names: Mapping[str, str]) -> list[list[str]]:
    """Return policies trained on the first half (speeds -> name) against the rivals."""
    lines = []
    for part in PARTS:
        for rival in RIVALS:
            pooled = [
                pool(of_part(cells[speeds, "oracle"].log_ratios(names[speeds], rival), part))
                for speeds in SPEEDS
            ]
            claim = claimed([one.ci95 for one in pooled])
            lines.append([part, rival, *(_shown(one) for one in pooled), claim])
    return lines


MAIN_HEAD = ("part", "trace", "windows", *ESTIMATES)


def further_tables(traces: Sequence[Trace], found: Mapping[str, Cells]) -> list[Table]:
    """Return all tables but the first, which is `adlro` against `min-min`."""
    of_speeds = ("part", "against", "estimates", *SPEED_HEADINGS, "claimed")
    three = " / ".join(ESTIMATES)
    return [
        Table(
            f"Mean JCT of `{OURS}` against `{RIVALS[1]}`:", MAIN_HEAD,
            against(found, OURS, RIVALS[1], "jct_s"), True,
        ),
        Table(
            f"Mean JCT of `{OURS}` against `{TODAY}`, stock Slurm by requested times, which is "
            "what runs today:", MAIN_HEAD, against(found, OURS, TODAY, "jct_s"), True,
        ),
        Table(
            f"`{OURS}` pooled over all traces, by assumption on speeds; *claimed*: all three "
            "intervals are on one side of 0.", of_speeds,
            _by_speeds(found, (*RIVALS, TODAY)), True,
        ),
        Table(
            f"The worst window of `{OURS}` under any assumption on speeds, as a ratio ({three}); "
            f"*{' or '.join(RIVALS)}*: to the better of both in each window.",
            ("part", "trace", *(f"against {' or '.join(names)}" for names in _WORST_AGAINST)),
            _worst(found), True,
        ),
        Table(
            f"p99 JCT of `{OURS}` against `{RIVALS[0]}`:", MAIN_HEAD,
            against(found, OURS, RIVALS[0], "p99_s"), False,
        ),
        Table(
            f"p99 JCT of `{OURS}` against `{RIVALS[1]}`:", MAIN_HEAD,
            against(found, OURS, RIVALS[1], "p99_s"), False,
        ),
        Table(
            f"p99 JCT of `{OURS}` against `{TODAY}`:", MAIN_HEAD,
            against(found, OURS, TODAY, "p99_s"), True,
        ),
        Table(
            f"Who loses: mean JCT of `{OURS}` by gang size, pooled over all windows with such "
            "jobs; in bold where the interval says longer.",
            ("part", "GPUs", "against", "windows", *ESTIMATES), _by_gang(found), True,
        ),
        Table(
            f"All others against `{RIVALS[0]}`, pooled over all traces, and the worst window under "
            f"any assumption on speeds ({three}):",
            ("part", "policy", *ESTIMATES, "worst window"), _others(found), True,
        ),
        Table(
            f"Mean JCT of `{RIVALS[1]}` against `{RIVALS[0]}`:", MAIN_HEAD,
            against(found, RIVALS[1], RIVALS[0], "jct_s"), False,
        ),
        Table(
            f"Chance: percent by which 1 % jitter alone moves the mean JCT of a window, standard "
            f"deviation ({three}).",
            ("part", "trace", *RIVALS, OURS, TODAY), _by_part(found, _chance), False,
        ),
        Table(
            f"Features of `{OURS}` outside the range of its training in an average decision, of "
            f"{len(learned.shipped().network.features)}, under the three assumptions on speeds:",
            ("part", "trace", *ESTIMATES), _by_part(found, _outside), True,
        ),
        Table(
            f"What was played. Arrivals are stretched by what makes the load of the first half "
            f"{LOAD:g}; the load is that of the whole second half then. Three figures are for the "
            "three assumptions on speeds.",
            ("trace", "GPUs", "which are", "first half, days", "windows of jobs",
             "arrivals stretched", "load"),
            _played(traces, found), False,
        ),
        Table(
            f"How busy the windows are: GPU use and mean wait of `{RIVALS[0]}` with oracle, under "
            "the three assumptions on speeds:",
            ("part", "trace", "windows", "GPU use %", "mean wait h"), _busy(found), False,
        ),
        Table(
            "What is assumed where a history says nothing, and constraints that cannot be met:",
            ("trace", "assumption"), _assumed(found), False,
        ),
    ]  # fmt: skip
