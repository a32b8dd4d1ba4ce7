"""Write jobs.txt and nodes.txt beside this file: a made-up cluster as Slurm would describe it."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta
from pathlib import Path

FOLDER = Path(__file__).parent
JOBS = 600
BEGIN = datetime(2026, 3, 2, 6, 0, 0)
NODES = (("v", "v100", 2), ("q", "rtx_6000", 2), ("a", "a100", 1))  # letter, GPU, nodes of 4 GPUs
USERS = {  # account, name of the job, GPUs, median seconds, spread, requested minutes
    "ann": ("vision", "resnet", (1, 2, 4), 5400, 0.7, 480),
    "bob": ("vision", "augment", (1,), 700, 0.5, 60),
    "cat": ("language", "bert", (2, 4), 12_000, 0.5, 720),
    "dan": ("language", "tokens", (1,), 400, 0.9, 60),
    "eve": ("physics", "lammps", (1, 2), 3600, 1.0, 240),
}
FIELDS = (
    "JobIDRaw|JobName|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|"
    "Priority|ReqTRES|AllocTRES"
)


class Cluster:
    """Where jobs ran: first come, first served, on whichever model has room first."""

    def __init__(self) -> None:
        self._free = {gpu: [BEGIN] * (4 * count) for _, gpu, count in NODES}

    def run(self, submit: datetime, gpus: int, seconds: int) -> tuple[str, datetime]:
        """The model that a job is given, and when it starts."""
        ready = {gpu: max(submit, sorted(free)[gpus - 1]) for gpu, free in self._free.items()}
        model = min(ready, key=lambda gpu: ready[gpu])
        free = sorted(self._free[model])
        free[:gpus] = [ready[model] + timedelta(seconds=seconds)] * gpus
        self._free[model] = free
        return model, ready[model]


def job(number: int, submit: datetime, cluster: Cluster, rng: random.Random) -> str:
    """One line of sacct."""
    user = rng.choice(list(USERS))
    account, name, gangs, median, spread, minutes = USERS[user]
    gpus = rng.choice(gangs)
    seconds = min(round(median * math.exp(rng.gauss(0, spread))) + 5, 60 * minutes)
    model, start = cluster.run(submit, gpus, seconds)
    end = start + timedelta(seconds=seconds)
    state = (
        "TIMEOUT" if seconds == 60 * minutes else rng.choices(["COMPLETED", "FAILED"], [9, 1])[0]
    )
    asked = f"cpu={4 * gpus},mem={16 * gpus}G,node=1"
    times = "|".join(moment.isoformat() for moment in (submit, start, end))
    return (
        f"{number}|{name}-{number % 7}|{user}|{account}|gpu|normal|{state}|{times}|{seconds}|"
        f"{minutes}|100|{asked},gres/gpu={gpus}|{asked},gres/gpu:{model}={gpus},gres/gpu={gpus}\n"
    )


def jobs() -> str:
    """Some days of work, more by day than by night."""
    rng, now, lines, cluster = random.Random(7), BEGIN, [FIELDS + "\n"], Cluster()
    for number in range(1, JOBS + 1):
        rate = 1.2 + math.sin(2 * math.pi * (now.hour - 8) / 24)
        now += timedelta(seconds=round(rng.expovariate(rate / 850)))
        lines.append(job(number, now, cluster, rng))
    return "".join(lines)


def nodes() -> str:
    """The nodes as `scontrol show node --oneliner` prints them, without what nobody reads here."""
    return "".join(
        f"NodeName={letter}{node} CPUTot=32 Gres=gpu:{gpu}:4 RealMemory=192000 State=IDLE "
        "Partitions=gpu\n"
        for letter, gpu, count in NODES
        for node in range(1, count + 1)
    )


if __name__ == "__main__":
    (FOLDER / "jobs.txt").write_text(jobs(), encoding="utf-8")
    (FOLDER / "nodes.txt").write_text(nodes(), encoding="utf-8")
