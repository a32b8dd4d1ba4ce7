"""`adlro plan`: which GPUs to buy or to switch off, on the operator's own jobs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from adlro.cli import completion
from adlro.cli.history_options import Given, check_names, given, study_options, study_progress
from adlro.cli.options import FILE, check_json_file, hand_out, named_pairs, say_if_slow

if TYPE_CHECKING:
    from adlro.evaluate.plan import Plan
    from adlro.evaluate.purchase import Alternative
    from adlro.model.cluster import Cluster

_POLICIES = "slurm,easy-backfill,adlro"


class _Wishes(NamedTuple):
    """The options to compare, as given."""

    add: tuple[str, ...]
    remove: tuple[str, ...]
    prices: tuple[str, ...]
    budget: str | None
    partitions: tuple[str, ...]

    def alternatives(self, cluster: Cluster) -> tuple[list[Alternative], list[str]]:
        """Return the clusters of all options, and a line on each that the budget excludes.

        Raises:
            ConfigError: an option is wrong, or the budget buys nothing.
        """
        from adlro.errors import ConfigError
        from adlro.evaluate import purchase

        pairs = named_pairs(self.prices, "--price", "H200=32000")
        money = purchase.money(pairs, self.budget, cluster)
        added = {
            text: purchase.addition(text, cluster, money, self.partitions) for text in self.add
        }
        if self.add and not any(added.values()):
            raise ConfigError(f"--budget {self.budget}: it buys none of the options")
        notes = [
            f"add {text} is left out: it is above the budget of {self.budget}"
            for text, one in added.items()
            if one is None
        ]
        options = [one for one in added.values() if one is not None]
        options += [purchase.removal(text, cluster, money) for text in dict.fromkeys(self.remove)]
        return list({one.name: one for one in options}.values()), notes


def _plan(wanted: Given, wishes: _Wishes, policies: tuple[str, ...], grow: float) -> Plan:
    from adlro.evaluate.batch import Batch
    from adlro.evaluate.plan import evaluate
    from adlro.evaluate.plan_study import make_study
    from adlro.evaluate.variants import Variants

    source = wanted.source()
    options, notes = wishes.alternatives(source.cluster)
    with say_if_slow():
        variants = Variants(source)
        check_names(source.recorded["gpu_names"], variants.history)
        study, store = make_study(variants, options, policies, grow), wanted.store()
        with study_progress("planning", study.runs, store) as advance:
            found = evaluate(study, Batch(store, wanted.threads, advance))
    return found.model_copy(update={"notes": [*notes, *found.notes]})


def _factor(_ctx: click.Context, _option: click.Parameter, value: float) -> float:
    """Refuse nan, which click.FloatRange accepts."""
    if math.isnan(value):
        raise click.BadParameter("nan is no factor")
    return value


@click.command("plan")
@study_options
@click.option(
    "--add",
    multiple=True,
    metavar="4xH200",
    help="An option: buy these GPUs; 4xH200+8xL40S buys both, H200 as many as --budget allows. May "
    "be repeated.",
)
@click.option(
    "--remove",
    multiple=True,
    metavar="v100",
    help="An option: switch off all GPUs of a type or model; 8xV100 = so many, whole nodes first. "
    "May be repeated.",
)
@click.option("--budget", metavar="MONEY", help="Leave out options that cost more.")
@click.option(
    "--price", "prices", multiple=True, metavar="MODEL=MONEY", help="Of one GPU with its share of "
    "a node, e.g. H200=32000; any currency.",
)  # fmt: skip
@click.option(
    "--grow",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.01, 100),
    callback=_factor,
    help="Factor on the rate of arrivals: 1.3 = 30 % more jobs a day.",
)
@click.option(
    "--partition", "partitions_of_new", multiple=True, metavar="NAME", help="Of new nodes; may be "
    "repeated.  [default: all]",
)  # fmt: skip
@click.option(
    "--policies",
    default=_POLICIES,
    show_default=True,
    shell_complete=completion.policies,
    help="Schedulers to simulate; options are ranked under slurm.",
)
@click.option("--json", "json_file", type=FILE, help="Also write all figures here; - = print them.")
def command(
    add: tuple[str, ...],
    remove: tuple[str, ...],
    budget: str | None,
    prices: tuple[str, ...],
    grow: float,
    partitions_of_new: tuple[str, ...],
    policies: str,
    json_file: Path | None,
    **options: Any,  # noqa: ANN401  of click
) -> None:
    """Which GPUs to buy or to switch off: options compared on your own jobs.

    FILE is a history of jobs, such as the output of 'sacct' (docs/traces.md). All options play the
    same jobs, under three assumptions on speeds. Stopped work goes on where it ended.

    \b
    adlro plan jobs.txt --cluster cluster.toml --add 4xH200 --add 8xL40S --remove v100
    """  # noqa: D301  click wants the character itself
    from adlro.cli.plan_table import shown

    check_json_file(json_file)
    if not add and not remove:
        raise click.UsageError("name at least one option: --add 4xH200, or --remove v100")
    names = tuple(dict.fromkeys(name.strip() for name in policies.split(",") if name.strip()))
    wishes = _Wishes(tuple(dict.fromkeys(add)), remove, prices, budget, partitions_of_new)
    found = _plan(given(options), wishes, names, grow)
    hand_out(shown(found), found.model_dump_json(indent=2), json_file)
