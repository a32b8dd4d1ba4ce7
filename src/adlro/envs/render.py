"""Renders the state of a world as text, for `render_mode="ansi"`."""

from __future__ import annotations

from adlro.model.state import WHOLE, Records
from adlro.sim.world import World
from adlro.workloads.setting import Setting

_SHOWN_WAITING = 3  # waiting jobs that are listed


def _gpu(gpu: Records, node: Records) -> str:
    """Return the job on a GPU, the percentage used by slices, "-" if idle, or "x" if down."""
    if node["up"] == 0:
        return "x"
    if gpu["job"] >= 0:
        return str(gpu["job"])
    return f"{1 - gpu['free'] / WHOLE:.0%}" if gpu["free"] < WHOLE else "-"


def render(setting: Setting, world: World) -> str:
    """Return the time, a line per node with the job on each GPU, and the head of the queue."""
    w = world.totals[0]
    lines = [
        f"{w['now']:,.0f} s: {w['waiting']} waiting, {w['running']} running, "
        f"{w['finished']} of {len(world.arrivals)} done"
    ]
    names = setting.layout.node_names
    for name, node in zip(names, world.nodes, strict=True):
        first, end = node["first_gpu"], node["first_gpu"] + node["gpus"]
        cells = " ".join(_gpu(gpu, node) for gpu in world.gpus[first:end])
        lines.append(f"  {name:<{max(map(len, names))}}  {cells}")
    for waiting in world.queue[w["head"] : w["head"] + min(w["waiting"], _SHOWN_WAITING)]:
        job = world.jobs[waiting["job"]]
        lines.append(
            f"  next: job {waiting['job']}, {setting.scenario.types[job['type']].name}, "
            f"GPUs {job['gpus'] * job['share'] / WHOLE:g}, "
            f"waiting for {w['now'] - waiting['since']:,.0f} s"
        )
    return "\n".join(lines)
