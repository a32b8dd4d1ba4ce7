"""Cost of one run-time estimate by the associative memory, from a job's fields to seconds."""

from __future__ import annotations

import numpy as np

from adlro.estimates.job_fields import JobFields
from adlro.estimates.run_times import RunTimes
from bench.clock import Setup, best_times
from bench.figure import Bar, Figure, figure

MODELS = ("A100 40GB", "V100 32GB", "T4")
_LEARNED = 12_000  # more than the memory holds, so it is full
_QUERIES = 200
_BAR = Bar("<", 200)


def jobs(count: int) -> list[JobFields]:
    """Return jobs of 300 users that differ in every field of a pattern."""
    rng = np.random.default_rng(5)
    users, names = rng.integers(0, 300, count), rng.integers(0, 60, count)
    return [
        JobFields(
            user=f"u{user}",
            account=f"a{user % 30}",
            queue=f"q{user % 4}",
            name=f"train_{name}",
            requested_s=3600.0 * (1 + name % 12),
            gpus=float(2 ** (name % 4)),
            cores=8.0,
            memory_mb=4096.0 * (1 + place % 7),
            submit_s=60.0 * place,
        )
        for place, (user, name) in enumerate(zip(users.tolist(), names.tolist(), strict=True))
    ]


def trained(models: tuple[str, ...], learned: list[JobFields]) -> RunTimes:
    """Return an estimator that has learned these jobs."""
    found = RunTimes(models)
    for place, job in enumerate(learned):
        ran_on = models[place % len(models)] if models else ""
        found.learn(job, 60.0 + 13 * (place % 97), 60.0 * place, place, ran_on)
    return found


def predicting(repeats: int) -> list[Figure]:
    """CPU microseconds per prediction, without GPU models and with three."""
    learned, queries = jobs(_LEARNED), jobs(_QUERIES)
    plain, mixed = trained((), learned), trained(MODELS, learned)

    def ask(found: RunTimes) -> None:
        for job in queries:
            found.predict(job)

    setups: list[Setup] = [lambda: lambda: ask(plain), lambda: lambda: ask(mixed)]
    plain_s, mixed_s = best_times(setups, repeats)
    what = "memory"
    return [
        figure(f"{what}: a prediction", 1e6 * plain_s / _QUERIES, "µs", _BAR),
        figure(f"{what}: a prediction, 3 GPU models", 1e6 * mixed_s / _QUERIES, "µs", _BAR),
    ]
