"""The tables and sentences of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from adlro.cli.assess_table import line, section
from adlro.evaluate.durations import hours

if TYPE_CHECKING:
    from rich.console import RenderableType

    from adlro.evaluate.plan import Option, Outcome, Plan
    from adlro.evaluate.stats import Estimate

_AS_IT_IS = "as it is"


def _change(option: Option, found: Outcome) -> str:
    return "" if option.name == _AS_IT_IS else _percent(found.change_pct)


def _percent(change: Estimate) -> str:
    if change.ci95 is None:
        return f"{change.mean:+.1f}"
    low, high = change.ci95
    return f"{change.mean:+.1f} ({low:+.1f} to {high:+.1f})"


def _price(option: Option) -> str:
    return "?" if option.price is None else f"{option.price:,.0f}"


def _table(plan: Plan, policy: str) -> Table:
    ranked = plan.ranking(policy)
    has_prices = any(one.price is not None for one in plan.options)
    strands = any(one.stranded_jobs for one in ranked)
    table = Table(box=SIMPLE_HEAD, title=Text(f"Under {policy}"), title_justify="left")
    table.add_column("")
    table.add_column("option", overflow="fold")
    heads = [
        "GPUs",
        "mean\nJCT h",
        "change %",
        "p99\nJCT h",
        "waited\nh",
        "GPU\nuse %",
        "kWh\na day",
    ]
    heads += ["price"] if has_prices else []
    heads += ["jobs with\nno GPU"] if strands else []
    for heading in heads:
        table.add_column(heading, justify="right")
    for rank, option in enumerate(ranked, 1):
        found = option.by_policy[policy]
        cells = [
            f"{option.gpus:,}",
            hours(found.mean_jct_s),
            _change(option, found),
            hours(found.p99_jct_s),
            hours(found.mean_wait_s),
            f"{100 * found.gpu_utilisation:.0f}",
            f"{found.energy_kwh_per_day:,.0f}",
            *([_price(option)] if has_prices else []),
            *([f"{option.stranded_jobs:,}"] if strands else []),
        ]
        table.add_row(str(rank), line(option.name), *cells)
    return table


def _setup(plan: Plan) -> str:
    grown = "" if plan.grow == 1 else f", arriving {plan.grow:g} times as fast"
    return (
        f"{plan.jobs_compared:,} of {plan.jobs:,} jobs that can run on every simulated option"
        f"{grown}; {plan.windows} windows of {plan.jobs_per_window:,} jobs. Means over "
        f"{len(plan.speeds)} assumptions on speeds; changes in mean JCT against the cluster as it "
        "is, with 95 % intervals over windows."
    )


def _best(plan: Plan) -> str:
    first = plan.options[0]
    if first.name == _AS_IT_IS:
        return f"No option shortens completion times under {plan.ranked_by}."
    change = first.by_policy[plan.ranked_by].change_pct
    sure = "" if change.is_settled else "; the interval includes 0: a gain is not certain"
    return f"Best under {plan.ranked_by}: {first.name}, mean JCT {_percent(change)} %{sure}."


def _agreement(plan: Plan) -> str:
    tau = plan.agreement.kendall_tau
    if tau is None:
        return "Whether other windows give the same ranking cannot be said: all options are alike."
    return (
        f"Even and odd windows rank the options alike to Kendall's tau = {tau:.2f} (1 = the same "
        "order, 0 = no relation)."
    )


def _not_simulated(plan: Plan) -> list[str]:
    return [
        f"{one.name}: not possible for {one.stranded_jobs:,} of {plan.jobs:,} jobs, which would "
        "have no GPU to run on; not simulated"
        for one in plan.options
        if not one.is_simulated
    ]


def _verdict(plan: Plan) -> list[str]:
    return [_best(plan), *(f"{one.text}." for one in plan.worth), _agreement(plan)]


def shown(plan: Plan) -> RenderableType:
    """Return all that is printed of a plan."""
    order = [plan.ranked_by, *(name for name in plan.policies if name != plan.ranked_by)]
    sections = {
        "Verdict": _verdict(plan),
        "Not possible": _not_simulated(plan),
        "What depends on speeds": plan.disagreements,
        "What stands out today": [one.text for one in plan.findings],
        "Left out": plan.notes,
        "What is assumed": plan.assumptions,
    }
    parts: list[RenderableType] = [line(_setup(plan)), line("")]
    parts += [_table(plan, policy) for policy in order]
    for title, sentences in sections.items():
        parts += section(title, sentences) if sentences else []
    return Group(*parts)
