"""Checks whether a sample is complete: finds missing and old channels, and missing GPUs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from adlro.errors import ConfigError
from adlro.model.cluster import Layout
from adlro.model.gpu import find
from adlro.model.record import Record
from adlro.telemetry.attach import attach, gpu_name, model_of
from adlro.telemetry.names import Gpu
from adlro.telemetry.sample import NAMES, WHOLE_GPU, Sample

NEEDED = tuple(name for name in NAMES if name != "memory_total")


class GpuCheck(Record):
    """The readings of one GPU, their age, and whether they are fresh."""

    host: str
    gpu: int
    part: int | None  # of a divided GPU
    model: str
    age_s: float | None  # None = it has no reading
    is_fresh: bool
    values: dict[str, float | None]  # None = missing

    @property
    def known(self) -> list[bool]:
        """For each channel, True if it has a value."""
        return [value is not None for value in self.values.values()]

    @property
    def name(self) -> str:
        """The GPU's name as host/number, followed by the part if the GPU is divided."""
        return str(Gpu(self.host, self.gpu, WHOLE_GPU if self.part is None else self.part))


class ClusterCheck(Record):
    """Where a sample and a cluster disagree; GPUs are named as host/number."""

    name: str  # of the cluster
    missing: tuple[str, ...]  # GPUs of the cluster without a reading
    duplicated: tuple[str, ...]  # GPUs of the cluster with more than one row
    unattached: tuple[str, ...]  # rows that belong to no GPU of the cluster
    other_model: tuple[str, ...]  # GPUs of another model than the cluster's, with both models

    @property
    def is_complete(self) -> bool:
        """True if rows and GPUs match one to one, models agree and every GPU has a reading."""
        return not (self.missing or self.duplicated or self.unattached or self.other_model)


class Check(Record):
    """The output of `adlro telemetry check --json`."""

    source: str
    most_age_s: float
    needed: tuple[str, ...]
    hosts: int
    models: dict[str, int]  # GPUs of each
    unknown_models: tuple[str, ...]  # not in the catalogue
    fresh: dict[str, int]  # GPUs with a fresh value, for each channel
    notes: tuple[str, ...]
    gpus: tuple[GpuCheck, ...]
    cluster: ClusterCheck | None = None  # None = no cluster was given

    def old(self) -> list[GpuCheck]:
        """Return the GPUs whose readings are older than `most_age_s`."""
        return [gpu for gpu in self.gpus if (gpu.age_s or 0.0) > self.most_age_s]

    def ahead(self) -> list[GpuCheck]:
        """Return the GPUs whose readings are dated more than `most_age_s` in the future."""
        return [gpu for gpu in self.gpus if (gpu.age_s or 0.0) < -self.most_age_s]

    def gone(self) -> list[GpuCheck]:
        """Return the GPUs that were expected and have no reading at all."""
        return [gpu for gpu in self.gpus if gpu.age_s is None and not any(gpu.known)]

    def undated(self) -> list[GpuCheck]:
        """Return the GPUs with readings of unknown age, which do not count as fresh."""
        return [gpu for gpu in self.gpus if gpu.age_s is None and any(gpu.known)]

    def nameless(self) -> list[GpuCheck]:
        """Return the GPUs whose model is not named."""
        return [gpu for gpu in self.gpus if not gpu.model]

    def lacking(self, channel: str) -> list[GpuCheck]:
        """Return the GPUs that have readings, but none of this channel."""
        there = (gpu for gpu in self.gpus if gpu.age_s is not None or any(gpu.known))
        return [gpu for gpu in there if gpu.values[channel] is None]

    @property
    def is_complete(self) -> bool:
        """True if there are GPUs, and each has a fresh value of every needed channel.

        If a cluster was given, the GPUs must also be exactly those of the cluster.
        """
        count = len(self.gpus)
        if self.cluster is not None and not self.cluster.is_complete:
            return False
        return count > 0 and all(self.fresh[name] == count for name in self.needed)


def _is_in_catalogue(model: str) -> bool:
    try:
        find(model)
    except ConfigError:
        return False
    return True


def _known(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


def check_cluster(name: str, sample: Sample, cluster: Layout) -> ClusterCheck:
    """Compare the GPUs of a sample with those of a cluster, by host and number."""
    found = attach(sample, cluster)
    rows = [str(Gpu(*row)) for row in zip(sample.host, sample.gpu, sample.part, strict=True)]
    return ClusterCheck(
        name=name,
        missing=tuple(gpu_name(int(gpu), cluster) for gpu in found.missing),
        duplicated=tuple(gpu_name(int(gpu), cluster) for gpu in found.duplicated),
        unattached=tuple(rows[row] for row in found.unattached),
        other_model=tuple(
            f"{rows[row]} is {sample.model[row]!r}, not "
            f"{model_of(int(found.gpus[row]), cluster).name!r}"
            for row in found.other_model
        ),
    )


def check(
    source: str,
    sample: Sample,
    most_age_s: float,
    needed: Sequence[str],
    cluster: ClusterCheck | None = None,
) -> Check:
    """List what a sample holds and what it lacks.

    Args:
        source: where the sample comes from, to be shown.
        sample: the readings.
        most_age_s: age in seconds above which readings are not fresh.
        needed: channels that every GPU must have.
        cluster: comparison of the sample with a cluster; None = no cluster was given.
    """
    is_fresh = sample.is_fresh(most_age_s)
    there = ~np.isnan(sample.values) & is_fresh[:, None]
    models = dict(sorted(Counter(sample.model).items()))
    return Check(
        source=source,
        most_age_s=most_age_s,
        needed=tuple(needed),
        hosts=len(set(sample.host)),
        models=models,
        unknown_models=tuple(n for n in models if n and not _is_in_catalogue(n)),
        fresh={name: int(count) for name, count in zip(NAMES, there.sum(axis=0), strict=True)},
        notes=sample.notes,
        gpus=tuple(
            GpuCheck(
                host=host,
                gpu=int(sample.gpu[g]),
                part=None if sample.part[g] == WHOLE_GPU else int(sample.part[g]),
                model=sample.model[g],
                age_s=_known(sample.age[g]),
                is_fresh=bool(is_fresh[g]),
                values={n: _known(v) for n, v in zip(NAMES, sample.values[g], strict=True)},
            )
            for g, host in enumerate(sample.host)
        ),
        cluster=cluster,
    )
