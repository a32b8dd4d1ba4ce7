"""Toy histories of one's own cluster, long enough to fine-tune on, and tiny settings for that."""

from __future__ import annotations

import numpy as np

from adlro.config.files import load_scenario
from adlro.config.scenario import Scenario
from adlro.train import fine_tuning
from adlro.train.fine_tuning import FineTuningPlan, FineTuningRequest
from adlro.train.hyperparameters import (
    FineTuningHyperparameters,
    SelectionSettings,
    TuningSettings,
)

JOBS = 900
CLUSTER = """
[cluster]
[[cluster.nodes]]
name = "volta"
gpu = "V100"
gpus = 4
cores = 64
memory_gb = 64
[[cluster.nodes]]
name = "tee"
gpu = "T4"
gpus = 4
cores = 64
memory_gb = 64
"""
TUNING = TuningSettings(
    generations=4, pairs=2, episodes=2, sigma=0.1, rate=0.05, averaging=0.5, settling=1,
    family_share=0.3, evaluate_every=2,
)  # fmt: skip


def rows_of(jobs=JOBS, *, seed=0, users=4, run_s=None, other_from=None) -> str:
    """Jobs as CSV; those from number `other_from` on have other times, sizes, users and names."""
    rng = np.random.default_rng(seed)
    lines, now = ["id,submit_time,run_s,gpus,user,name,requested_s"], 0
    for k in range(jobs):
        if k == other_from:
            rng = np.random.default_rng(seed + 1)
        is_other = other_from is not None and k >= other_from
        now += int(rng.integers(1, 400 if is_other else 120))
        size = int(np.exp(rng.normal(7.0 if is_other else 5.5, 1.0))) + 1
        user = f"{'new' if is_other else 'user'}{int(rng.integers(users))}"
        size = run_s if run_s is not None else size
        gpus = int(rng.integers(1, 3))
        lines.append(f"j{k},{now},{size},{gpus},{user},{user}-job,{3 * size}")
    return "\n".join(lines) + "\n"


def write(folder, rows=None, more="", history='speeds = "measured-mix"', jobs=50) -> Scenario:
    """The scenario that plays these jobs, read from its file in the folder."""
    (folder / "jobs.csv").write_text(rows_of() if rows is None else rows)
    text = (
        f'jobs = {jobs}\nload = 0.8\nusers = 20\nestimates = "memory"\n{more}\n'
        f'[history]\nfile = "jobs.csv"\n{history}\n{CLUSTER}'
    )
    path = folder / "mine.toml"
    path.write_text(text)
    return load_scenario(path)


def request(scenario: Scenario, start=fine_tuning.SHIPPED, seed=0, **changes) -> FineTuningRequest:
    """A request with settings of seconds."""
    usual = {
        "tuning": TUNING,
        "selection": SelectionSettings(loads=(), seeds=4, final_seeds=5),
        **fine_tuning.hyperparameters(scenario, str(start)),
    }
    used = FineTuningHyperparameters(**{**usual, **changes})
    return FineTuningRequest(
        algorithm=fine_tuning.NAME, scenario=scenario, seed=seed, hyperparameters=used
    )


def plan(asked: FineTuningRequest) -> FineTuningPlan:
    return FineTuningPlan(request=asked, hyperparameters=asked.hyperparameters)
