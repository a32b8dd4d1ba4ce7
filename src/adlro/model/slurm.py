"""Settings of a Slurm controller that decide which job starts when: the table [slurm]."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from adlro.model.record import Record

Weight = Annotated[float, Field(ge=0, le=2**32 - 1)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Depth = Annotated[int, Field(ge=0, le=1_000_000)]
Tier = Annotated[int, Field(ge=0, le=65_535)]


class TresWeights(Record):
    """PriorityWeightTRES: weights of the job's share of its partition's cores, memory and GPUs."""

    cpu: Weight = 0.0
    mem: Weight = 0.0
    gpu: Weight = 0.0


class Slurm(Record):
    """Settings of Slurm for the policy `slurm`; the defaults are Slurm's own.

    With all weights 0, priority/multifactor orders jobs by submission, as priority/basic does.
    """

    priority_type: Literal["basic", "multifactor"] = "multifactor"
    weight_age: Weight = 0.0
    weight_fairshare: Weight = 0.0
    weight_job_size: Weight = 0.0
    weight_partition: Weight = 0.0
    weight_qos: Weight = 0.0  # of JOB.priority
    weight_tres: TresWeights = TresWeights()
    max_age_s: Annotated[float, Field(gt=0, le=1e9)] = 7 * 86_400.0
    favor_small: bool = False
    partition_factors: dict[str, Share] = Field(default_factory=dict)  # PriorityJobFactor / highest
    partition_tiers: dict[str, Tier] = Field(default_factory=dict)  # PriorityTier
    scheduler: Literal["backfill", "builtin"] = "backfill"
    default_queue_depth: Depth = 100  # jobs that the main scheduler looks at after an event
    sched_interval_s: Annotated[float, Field(gt=0, le=1e9)] = 60.0  # how often it looks at all
    bf_interval_s: Annotated[float, Field(ge=0, le=10_800)] = 30.0  # 0 = after every event
    bf_resolution_s: Annotated[float, Field(ge=1, le=3_600)] = 60.0
    bf_window_min: Annotated[float, Field(ge=1, le=43_200)] = 1_440.0
    bf_max_job_test: Count = 500  # jobs that one backfill cycle plans
    bf_max_job_user: Depth = 0  # of one user; 0 = no limit
