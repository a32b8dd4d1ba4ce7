"""The algorithms of `adlro train`, by name."""

from __future__ import annotations

from typing import Any

from adlro.train import adlro, adlro_preemptive, fine_tuning, paper_dqn
from adlro.train.run import Algorithm

ALGORITHMS: dict[str, Algorithm[Any, Any]] = {
    each.name: each
    for each in (
        adlro.ALGORITHM,
        adlro_preemptive.ALGORITHM,
        paper_dqn.ALGORITHM,
        fine_tuning.ALGORITHM,
    )
}
