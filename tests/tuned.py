"""Small histories for `adlro tune`: one node, small jobs of account bio, gangs of account phys."""

import random

CLUSTER = """name = "toy"
[[nodes]]
name = "v"
hosts = ["v1"]
gpu = "V100"
gpus = 4
cores = 64
memory_gb = 256
"""
LARGE_FIRST = """SchedulerType=sched/backfill
PriorityType=priority/multifactor
PriorityWeightJobSize=100000
PriorityFavorSmall=No
"""
SMALL_FIRST = LARGE_FIRST.replace("PriorityFavorSmall=No", "PriorityFavorSmall=Yes")


def csv(seed=0, jobs=1000, load=0.85, gap=None):
    """The text of a history; gap: seconds between arrivals, if they are equal."""
    rng, lines, now = random.Random(seed), ["submit_time,run_s,gpus,account,requested_s"], 0.0
    for _ in range(jobs):
        is_small = rng.random() < 0.7
        run = rng.uniform(40, 80) if is_small else rng.uniform(500, 1500)
        work = 0.7 * 60 + 0.3 * 1000 * 4
        now += gap or rng.expovariate(4 * load / work)
        name, gpus = ("bio", 1) if is_small else ("phys", 4)
        lines.append(f"{now:.0f},{run:.0f},{gpus},{name},1800")
    return "\n".join(lines) + "\n"
