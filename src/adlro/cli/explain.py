"""`adlro policy explain`: one decision of a run, its alternatives, and why it was made."""

from __future__ import annotations

import contextlib
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from adlro.cli import completion
from adlro.cli.options import (
    FILE,
    as_json,
    changed_scenario,
    check_json_file,
    hand_out,
    say_if_slow,
    scenario_options,
)

if TYPE_CHECKING:
    from rich.table import Table

    from adlro.cli.reason import Names
    from adlro.config.scenario import Scenario
    from adlro.evaluate.explanation import Decision, DecisionQuery, Explanation, Option


class _Shown(NamedTuple):
    """An explanation, the run that it comes from, and the number of choices to show."""

    scenario: Scenario
    policy: str
    seed: int
    names: Names
    said: Explanation
    top: int


def _wish(at: float | None, decision: int | None, job: int | None) -> DecisionQuery:
    from adlro.evaluate.explanation import DecisionQuery

    wish = DecisionQuery(at, decision, job)
    if sum(part is not None for part in wish) > 1:
        raise click.UsageError("--at, --decision and --job exclude each other; name one")
    if at is not None and not math.isfinite(at):
        raise click.BadParameter(f"{at} is not a number of seconds", param_hint="--at")
    return wish


def _find(wanted: Scenario, policy: str, seed: int, wish: DecisionQuery, top: int) -> _Shown:
    from rich.console import Console

    from adlro.cli.reason import Names
    from adlro.evaluate.compare import in_background
    from adlro.evaluate.explanation import compile_all, explain, find
    from adlro.policies import registry
    from adlro.workloads.generate import generate
    from adlro.workloads.setting import prepare

    setting = prepare(wanted)
    chosen = registry.load(policy, setting)
    workload = generate(setting, seed)
    status = Console(stderr=True).status(f"running {wanted.jobs:,} jobs …")
    with say_if_slow():
        compile_all(chosen)
    with status, contextlib.redirect_stdout(sys.stderr):  # a policy that prints spoils no JSON
        said = in_background(lambda: explain(find(setting, workload, chosen, seed, wish)))
    names = Names(_short(setting.layout.pool_names), [kind.name for kind in wanted.types])
    return _Shown(wanted, chosen.name, seed, names, said, top)


def _short(pools: tuple[str, ...]) -> list[str]:
    """Return the names of pools, without the partition if all pools share one."""
    partitions = {name.rpartition(" (")[2] for name in pools}
    return [name.rpartition(" (")[0] if len(partitions) == 1 else name for name in pools]


def _situation(shown: _Shown) -> list[str]:
    """Return two lines: which decision it is, and the state of the cluster."""
    from adlro.cli.reason import seconds
    from adlro.model.feasibility import expected_end

    decision, wanted = shown.said.decision, shown.scenario
    view = decision.view
    free = [
        f"{pool['free']} of {pool['gpus']} {name}"
        for name, pool in zip(shown.names.pools, view.pools, strict=True)
        if pool["free"] > 0
    ]
    soonest = min((expected_end(run, view.now) for run in view.running), default=math.inf)
    ending = f", the next expected end in {seconds(soonest - view.now)}"
    waits = f"{len(view.queue):,} job{'s' if len(view.queue) > 1 else ''} waiting"
    return [
        f"{wanted.name} · {shown.policy} · load {wanted.load:g} · seed {shown.seed} · "
        f"decision {decision.number:,}, at {view.now:,.0f} s",
        f"Free: {', '.join(free) or 'only parts of GPUs'}. {waits}, {len(view.running):,} running"
        f"{ending if len(view.running) else ''}.",
    ]


def _rows(decision: Decision, top: int) -> list[int]:
    """Return the indices of the `top` cheapest options, the cheapest first.

    The chosen option and Min-Min's are always included.
    """
    from adlro.evaluate.explanation import ranked

    order = ranked(decision)
    return [i for n, i in enumerate(order) if n < top or i in (decision.chosen, decision.planned)]


def _marks(i: int, decision: Decision) -> str:
    marks = {"chosen": i == decision.chosen, "Min-Min": i == decision.planned}
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _cells(option: Option, decision: Decision, names: Names) -> list[str]:
    from adlro.cli.reason import gpus, seconds

    if option.job < 0:
        return ["wait", "", "", "", ""]
    job = decision.view.jobs[option.job]
    pool, kind = names.pools[option.pool], names.types[job["type"]]
    return [f"job {option.job}", kind, gpus(job), pool, seconds(option.seconds)]


def _table(shown: _Shown) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    decision = shown.said.decision
    chosen, learned = decision.options[decision.chosen], decision.network is not None
    table = Table(box=SIMPLE_HEAD)
    for heading in ("choice", "type"):
        table.add_column(heading)
    table.add_column("GPUs", justify="right")
    table.add_column("pool")
    for heading in ("runs there", *(["predicted cost, s"] if learned else []), "drain cost, s"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for i in _rows(decision, shown.top):
        option = decision.options[i]
        cells = _cells(option, decision, shown.names)
        cells += [f"{option.cost_s - chosen.cost_s:+,.0f}"] if learned else []
        cells += [f"{option.drain_s:,.0f}", _marks(i, decision)]
        table.add_row(*cells)
    return table


def _figures(shown: _Shown) -> str:
    """Return the explanation as JSON."""
    from adlro import __version__
    from adlro.cli.reason import sentences
    from adlro.evaluate.explanation import ranked

    said, names, wanted = shown.said, shown.names, shown.scenario
    decision = said.decision
    view = decision.view
    facts: dict[str, object] = {
        "version": __version__, "scenario": wanted.name, "load": wanted.load,
        "estimates": str(wanted.estimates), "policy": shown.policy, "seed": shown.seed,
        "decision": decision.number, "time_s": view.now, "waiting": len(view.queue),
        "running": len(view.running),
    }  # fmt: skip
    facts["free"] = dict(zip(names.pools, view.pools["free"].tolist(), strict=True))
    options = [_facts(decision.options[i], decision, names) for i in range(len(decision.options))]
    facts["chosen"], facts["min_min"] = options[decision.chosen], options[decision.planned]
    facts["options"] = [options[i] for i in ranked(decision)]
    facts["compared_with"] = None if said.rival is None else options[said.rival]
    for key, plan in (("plan", said.plan), ("plan_otherwise", said.rival_plan)):
        facts[key] = [
            {"job": j, "pool": names.pools[p.pool], "start_in_s": p.start, "end_in_s": p.end}
            for j, p in plan.items()
        ]
    facts["shares"], facts["why"] = said.shares, sentences(said, names)
    facts["out_of_range"] = _range_facts(decision)
    return as_json(facts)


def _range_facts(decision: Decision) -> dict[str, object] | None:
    found = decision.out_of_range
    if found is None:
        return None
    return {
        "features": found.features,
        "outside": len(found.values) if found.problem is None else None,
        "share": found.share,
        "values": [value._asdict() for value in found.values],
        "problem": found.problem,
    }


def _facts(option: Option, decision: Decision, names: Names) -> dict[str, object]:
    chosen, is_start = decision.options[decision.chosen], option.job >= 0
    kind = int(decision.view.jobs[option.job]["type"]) if is_start else 0
    learned = decision.network is not None
    return {
        "job": option.job if is_start else None,
        "type": names.types[kind] if is_start else None,
        "gpus": int(decision.view.jobs[option.job]["gpus"]) if is_start else None,
        "pool": names.pools[option.pool] if is_start else None,
        "seconds": option.seconds if is_start else None,
        "drain_s": option.drain_s,
        "score": option.score if learned else None,
        "predicted_s": option.cost_s - chosen.cost_s if learned else None,
    }


@click.command("explain")
@click.argument("policy", default="adlro", shell_complete=completion.policy)
@scenario_options
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option("--at", type=click.FloatRange(min=0), help="The first decision from this second on.")
@click.option("--decision", type=click.IntRange(min=1), help="The K-th decision of the run.")
@click.option("--job", type=click.IntRange(min=0), help="The decision that started this job.")
@click.option(
    "--top", default=5, show_default=True, type=click.IntRange(1, 16), help="Choices to show."
)
@click.option("--json", "json_file", type=FILE, help="Also write all of it here; - = print it.")
def command(
    policy: str,
    scenario: str,
    load: float | None,
    estimates: str | None,
    jobs: int | None,
    ageing: float | None,
    slurm_config: Path | None,
    seed: int,
    at: float | None,
    decision: int | None,
    job: int | None,
    top: int,
    json_file: Path | None,
) -> None:
    """Why a policy did what it did: its choices at one decision, and what tipped it.

    The run is played until the decision that you name; without a name, all of it, and the decision
    is the one that saves most over what Min-Min would have done there. Only decisions at which
    something could start are counted.
    """
    from rich.console import Group

    from adlro.cli.reason import named, out_of_range, sentences

    check_json_file(json_file)
    wish = _wish(at, decision, job)
    wanted = changed_scenario(scenario, load, estimates, jobs, ageing, slurm_config)
    shown = _find(wanted, policy, seed, wish, top)
    did = shown.said.decision
    done = f"Decided: {named(did.options[did.chosen], did, shown.names)}."
    above = "\n".join([*_situation(shown), done])
    below = "\n".join([*sentences(shown.said, shown.names), *out_of_range(did)])
    hand_out(Group(above, _table(shown), below), _figures(shown), json_file)
