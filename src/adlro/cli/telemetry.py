"""`adlro telemetry`: checks the telemetry readings of real GPUs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adlro.cli.options import FILE, check_json_file, hand_out

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from adlro.model.cluster import Layout
    from adlro.telemetry.check import Check, ClusterCheck, GpuCheck
    from adlro.telemetry.prometheus import Endpoint
    from adlro.telemetry.sample import Sample

_SHOWN = 4  # GPUs named in a line
_BROKEN = {"utilisation": "utili-\nsation", "bandwidth": "band-\nwidth"}  # to fit 80 columns
_BROKEN |= {"temperature": "tempe-\nrature", "memory_used": "memory\nused"}
_BROKEN |= {"memory_total": "memory\ntotal"}


class _Seconds(click.FloatRange):
    """A number of seconds above 0 and up to a limit; NaN is refused."""

    def __init__(self, most: float) -> None:
        super().__init__(min=0, max=most, min_open=True)

    def convert(
        self,
        value: Any,  # noqa: ANN401  click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Convert as click does, and refuse NaN, which click's ranges accept."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail("nan is not a time", param, ctx)
        return number


@click.group("telemetry")
def command() -> None:
    """Read the telemetry of real GPUs."""


def _first(names: Sequence[str]) -> str:
    """List the first few names, and say how many more there are."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _some(gpus: Sequence[GpuCheck], with_age: bool = False) -> str:
    return _first(
        [f"{gpu.name} ({abs(gpu.age_s or 0):,.0f} s)" if with_age else gpu.name for gpu in gpus]
    )


def _missing(found: Check) -> list[str]:
    """Return lines about GPUs that disappeared, and about channels that the other GPUs lack."""
    gone = found.gone()
    gaps = [f"gone, though seen within the last hour: {_some(gone)}"] if gone else []
    for name in found.needed:
        lacking = found.lacking(name)
        if lacking:
            every = len(lacking) == len(found.gpus) - len(gone)
            gaps.append(f"missing: {name} of {'every GPU' if every else _some(lacking)}")
    return gaps


def _cluster_lines(found: ClusterCheck | None) -> list[str]:
    """Return one line for each kind of disagreement between the sample and the cluster."""
    if found is None:
        return []
    listed = {
        f"of {found.name}, without a reading": found.missing,
        f"of {found.name}, with more than one reading": found.duplicated,
        f"not of {found.name}": found.unattached,
        f"of another model than {found.name} says": found.other_model,
    }
    return [f"{what}: {_first(names)}" for what, names in listed.items() if names]


def lines(found: Check) -> list[str]:
    """Return one line for each kind of missing or old reading."""
    if not found.gpus:
        known = "dcgm-exporter, ROCm's (--prefix, if not none or amd_) and amd_smi_exporter"
        notes = [f"note: {note}" for note in found.notes]
        seen = f"no GPU seen; understood are the metrics of {known}"
        return [seen, *_cluster_lines(found.cluster), *notes]
    listed = [*_cluster_lines(found.cluster), *_missing(found)]
    if old := found.old():
        listed.append(f"older than {found.most_age_s:g} s: {_some(old, with_age=True)}")
    if ahead := found.ahead():
        what = f"from more than {found.most_age_s:g} s in the future"
        listed.append(f"{what}: {_some(ahead, with_age=True)}; are the clocks right?")
    if undated := found.undated():
        listed.append(f"of unknown age: {_some(undated)}")
    if nameless := found.nameless():
        listed.append(f"without the name of the model: {_some(nameless)}")
    if found.unknown_models:
        names = ", ".join(repr(name) for name in found.unknown_models)
        listed.append(f"not in the catalogue of GPUs: {names}")
    listed += [f"note: {note}" for note in found.notes]
    return [*listed, "all fresh" if found.is_complete else "something is missing or old"]


def _table(found: Check) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from adlro.telemetry.web import shown

    title = f"GPUs with a reading of at most {found.most_age_s:g} s"
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title=title, title_justify="left")
    table.title_style = ""
    table.add_column("model", overflow="fold")
    for heading in ("GPUs", *found.fresh):
        table.add_column(_BROKEN.get(heading, heading), justify="right", no_wrap=True)
    for model, count in found.models.items():
        own = [gpu for gpu in found.gpus if gpu.model == model]
        fresh = [
            sum(gpu.is_fresh and gpu.values[name] is not None for gpu in own)
            for name in found.fresh
        ]
        cells = [f"{number:,}" for number in (count, *fresh)]
        table.add_row(Text(shown(model) or "?"), *cells)
    return table


def _shown(found: Check) -> Group:
    from rich.console import Group
    from rich.text import Text

    from adlro.telemetry.web import clean

    hosts = f"{found.hosts:,} host{'' if found.hosts == 1 else 's'}"
    head = (
        f"{found.source}: {len(found.gpus):,} GPU{'' if len(found.gpus) == 1 else 's'} on {hosts}"
    )
    shown_lines = [Text(clean(line)) for line in lines(found)]
    return Group(Text(clean(head)), *([_table(found)] if found.gpus else []), *shown_lines)


def _read(source: Endpoint, kind: str) -> Sample:
    from adlro.telemetry import amd, exposition, nvml, prometheus

    if kind == "prometheus":
        return prometheus.read(source, lost=True)
    if kind == "exporter":
        return exposition.read(source)
    return nvml.read(nvml.load()) if kind == "nvml" else amd.read()


def _layout(cluster: str | None) -> Layout | None:
    """Return the cluster that --cluster names; None if the option is not given."""
    from adlro.config.files import find_cluster
    from adlro.model.cluster import lay_out

    return None if cluster is None else lay_out(find_cluster(cluster))


def _needed(text: str | None) -> tuple[str, ...]:
    """Return the channels that --need names, or the default ones.

    Raises:
        ConfigError: there is no such channel.
    """
    from adlro.errors import ConfigError, suggestion
    from adlro.telemetry.check import NEEDED
    from adlro.telemetry.sample import NAMES

    if text is None:
        return NEEDED
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in names:
        if name not in NAMES:
            raise ConfigError(f"--need: no channel {name!r}; {suggestion(name, NAMES)}")
    return names


@command.command("check")
@click.option("--prometheus", metavar="URL", help="Ask a Prometheus, such as http://host:9090.")
@click.option(
    "--exporter", metavar="URL", help="Read an exporter's page, http://host:9400/metrics."
)
@click.option("--nvml", is_flag=True, help="Read this host's NVIDIA GPUs (extra nvidia).")
@click.option("--amd", is_flag=True, help="Read this host's AMD GPUs.")
@click.option("--prefix", default="", help="Prefix of ROCm's metrics, if not none or amd_.")
@click.option(
    "--max-age",
    type=_Seconds(86_400),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Older readings are marked.",
)
@click.option(
    "--timeout",
    type=_Seconds(600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for an answer.",
)
@click.option(
    "--need",
    metavar="LIST",
    help="Channels to insist on, with commas: of utilisation, memory_used, memory_total, "
    "bandwidth, temperature, power and errors.  [default: all but memory_total]",
)
@click.option(
    "--cluster",
    metavar="FILE",
    help="Compare with the GPUs of a cluster file (TOML) or of a scenario.",
)
@click.option("--json", "json_file", type=FILE, help="Also write all readings here; - = print.")
@click.pass_context
def check(
    ctx: click.Context,
    prometheus: str | None,
    exporter: str | None,
    nvml: bool,
    amd: bool,
    prefix: str,
    max_age: float,
    timeout: float,
    need: str | None,
    cluster: str | None,
    json_file: Path | None,
) -> None:
    """Show which readings of the GPUs there are, which are missing and which are old.

    Ends with status 0 if every GPU has a fresh reading of every channel of --need and the GPUs are
    those of --cluster, with 1 if not, and with 2 if no source answered.
    """
    asked = {"prometheus": prometheus, "exporter": exporter, "nvml": nvml, "amd": amd}
    kinds = [kind for kind, wanted in asked.items() if wanted]
    if len(kinds) != 1:
        raise click.UsageError("say one of --prometheus URL, --exporter URL, --nvml, --amd", ctx)

    from adlro.telemetry.check import check as check_sample
    from adlro.telemetry.check import check_cluster
    from adlro.telemetry.prometheus import Endpoint
    from adlro.telemetry.web import Limits

    check_json_file(json_file)
    needed, kind, layout = _needed(need), kinds[0], _layout(cluster)
    url = prometheus or exporter or ""
    sample = _read(Endpoint(url, prefix, Limits(seconds=timeout)), kind)
    compared = None if layout is None else check_cluster(str(cluster), sample, layout)
    found = check_sample(url or kind, sample, max_age, needed, compared)
    hand_out(_shown(found), found.model_dump_json(indent=2), json_file)
    if not found.is_complete:
        ctx.exit(1)
