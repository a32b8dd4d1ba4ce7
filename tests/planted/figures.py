"""How strong the plants are in a scheduled history; times in seconds, loads and uses as shares."""

from typing import NamedTuple

HOUR = 3600


class Figures(NamedTuple):
    """What the three plants come to. The span is from the first to the last submission."""

    span: int
    use: dict[str, float]  # by model, within the span
    load: dict[str, float]  # by partition: GPU-seconds of its jobs by those of its nodes
    load_of_nodes: dict[str, float]  # the same with the jobs of partitions that share its nodes
    waits: dict[str, float]  # mean by account
    wait: float  # mean of all jobs
    waits_equal: dict[str, float]  # without the weight that starves an account
    wait_equal: float
    backlog: dict[str, float]  # by partition: GPU-seconds submitted in the span and not yet done


def measure(site, runs, equal):
    """The figures of a site's runs, and of the runs without the weight."""
    span = max(run.job.submit for run in runs)
    models = {node.name: node.gpu for node in site.nodes}
    use = dict.fromkeys(models.values(), 0)
    for run in runs:
        inside = max(0, min(run.end, span) - run.start) * run.job.per_node
        for name in run.nodes:
            use[models[name]] += inside
    own = {part.name: 0 for part in site.partitions}
    late = dict.fromkeys(own, 0)
    for run in runs:
        own[run.job.partition] += run.job.run * run.job.gpus
        late[run.job.partition] += (run.end - max(run.start, min(run.end, span))) * run.job.gpus
    sharing = {name: _sharing(site, name) for name in own}
    return Figures(
        span,
        {model: used / (span * site.gpus(model=model)) for model, used in use.items()},
        {name: asked / (span * site.gpus(name)) for name, asked in own.items()},
        {name: sum(own[n] for n in sharing[name]) / (span * site.gpus(name)) for name in own},
        waits(runs), _mean([run.wait for run in runs]),
        waits(equal), _mean([run.wait for run in equal]),
        late,
    )  # fmt: skip


def waits(runs):
    """Mean wait by account."""
    accounts = sorted({run.job.account for run in runs})
    return {name: _mean([r.wait for r in runs if r.job.account == name]) for name in accounts}


def _sharing(site, name):
    """The partition and those that have one of its nodes."""
    return {other for node in site.nodes if name in node.partitions for other in node.partitions}


def _mean(values):
    return sum(values) / len(values)
