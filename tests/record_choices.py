"""Record states with the shipped policy's choices: `python tests/record_choices.py`, run by hand.

Run it only when a new policy is shipped: policies/loading/test_shipped.py checks that every other
change leaves these choices as they are. The file has plain arrays only, with the rows of all states
concatenated. Only waiting and running jobs and the last arrivals are stored, renumbered; no choice
may depend on other jobs.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib.recfunctions import repack_fields
from numpy.typing import NDArray

from adlro.config.files import adjusted, find_scenario
from adlro.evaluate.explanation import decision_of, watch
from adlro.model.state import DECISION, GPU, JOB, NODE, POOL, RUNNING, WAITING
from adlro.model.view import RECENT, View
from adlro.nets.q_network import flat, scratch_size
from adlro.policies import adlro, registry
from adlro.policies.loading import learned
from adlro.workloads.generate import generate
from adlro.workloads.setting import prepare

FILE = Path(__file__).parent / "data" / "shipped_choices.npz"
ROWS = {
    "jobs": JOB,
    "queue": WAITING,
    "running": RUNNING,
    "pools": POOL,
    "nodes": NODE,
    "gpus": GPU,
}
TABLES, NUMBERS = ("est", "eligible", "recent"), ("now", "arrived")
KINDS = (
    ("paper16", {"load": 0.6}),
    ("paper16", {"load": 0.8}),
    ("paper16", {"load": 0.95}),
    ("paper16", {"load": 0.9, "estimates": "noisy:0.5"}),
    ("paper16-single", {}),
    ("paper16-surge", {}),
    ("hetero64", {"load": 1.5}),
    ("gavel16", {}),
    ("rough64", {}),
    ("quotas64", {}),
)
JOBS = 300  # of a run
SEEDS = range(0, 10_000, 2_111)  # five, below those kept for claims
OF_A_RUN = 4  # states, half of them where the choice is not Min-Min's if there are such
CLEARLY = 1e-6  # by which the choice's score is the best: rounding may differ between machines


class Recorded(NamedTuple):
    """States, and the choice in each."""

    weights: str  # sha256 of the policy's weights
    origins: list[str]  # scenario and seed
    views: list[View]
    choices: np.ndarray  # [S, 2] job and pool, -1 = to wait


def kept_jobs(view: View) -> NDArray[np.int64]:
    """Jobs that wait, run or arrived last."""
    return np.union1d(np.union1d(view.queue["job"], view.running["job"]), view.recent[-RECENT:])


def compact(view: View) -> View:
    """Return a state with only these jobs, renumbered in the same order."""
    kept = kept_jobs(view)
    queue, running, gpus = view.queue.copy(), view.running.copy(), view.gpus.copy()
    for rows in (queue, running):
        rows["job"] = np.searchsorted(kept, rows["job"])
    gpus["job"] = np.where(gpus["job"] < 0, -1, np.searchsorted(kept, gpus["job"]))
    return view._replace(
        jobs=view.jobs[kept], est=view.est[kept], queue=queue, running=running, gpus=gpus,
        recent=np.searchsorted(kept, view.recent[-RECENT:]),
    )  # fmt: skip


def choices(views, params) -> np.ndarray:
    """Choices of the learned policy: [S, 2] job and pool, -1 = wait."""
    found = np.full((len(views), 2), -1)
    for row, view in zip(found, views, strict=True):
        out = np.zeros(1, DECISION)
        memory = np.zeros(scratch_size(len(view.gpus), len(view.pools)))
        if adlro.decide(view, params, memory, out):
            row[:] = out["job"][0], out["pool"][0]
    return found


def _of_a_run(name, changes, seed, params) -> list[View]:
    """States of one run whose choice does not depend on rounding."""
    setting = prepare(adjusted(find_scenario(name), jobs=JOBS, **changes))
    policy = registry.load("adlro", setting)._replace(params=params)
    otherwise, as_min_min = [], []

    def see(view, answered, out):
        decision = decision_of(view, answered, out, policy)
        if decision is not None and len(decision.options) > 1:
            best, second = sorted(option.score for option in decision.options)[:2]
            differs = decision.chosen != decision.planned
            if second - best > CLEARLY:
                (otherwise if differs else as_min_min).append(compact(decision.view))
        return False

    watch(setting, generate(setting, seed), policy, seed, see)
    first = _spread(otherwise, OF_A_RUN // 2)
    return first + _spread(as_min_min, OF_A_RUN - len(first))


def _spread(views, count):
    """Select `count` states from short to long queues; single-job states only if necessary."""
    queues = sorted(views, key=lambda view: len(view.queue))
    alone = sum(len(view.queue) == 1 for view in views)
    first = min(alone, max(len(views) - count, 0))
    at = np.linspace(first, len(views) - 1, min(count, len(views))).astype(int)
    return [queues[i] for i in at]


def record() -> Recorded:
    """States of all scenarios and seeds with the shipped policy's choices."""
    shipped = learned.shipped()
    params, origins, views = flat(shipped.network), [], []
    for (name, changes), seed in itertools.product(KINDS, SEEDS):
        found = _of_a_run(name, changes, seed, params)
        views += found
        origins += [f"{name} {changes} seed {seed}"] * len(found)
    return Recorded(shipped.card.sha256_weights, origins, views, choices(views, params))


def save(recorded: Recorded, file: Path = FILE) -> None:
    """Write recorded states as plain arrays."""
    weights, origins, views, chosen = recorded
    arrays = {"weights": np.array(weights), "origins": np.array(origins), "choices": chosen}
    for name in NUMBERS:
        arrays[name] = np.array([getattr(view, name) for view in views])
    for name in ROWS:
        rows = [getattr(view, name) for view in views]
        arrays[name] = repack_fields(np.concatenate(rows))
        arrays[f"{name}_of_state"] = np.array([len(part) for part in rows])
    for name in TABLES:
        tables = [getattr(view, name) for view in views]
        arrays[name] = np.concatenate([table.ravel() for table in tables])
        arrays[f"{name}_of_state"] = np.array([table.shape for table in tables])
    file.parent.mkdir(exist_ok=True)
    np.savez_compressed(file, **arrays)


IGNORED = ("partition", "unused")  # recorded fields that no feature read


def as_records(rows: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert recorded rows to the current dtype; new fields are 0, removed ones are refused.

    Fields that no feature ever read may be gone.
    """
    result = np.zeros(len(rows), dtype)
    for name in rows.dtype.names:
        if name not in IGNORED:
            result[name] = rows[name]
    return result


def load(file: Path = FILE) -> Recorded:
    """Read what `save` wrote."""
    with np.load(file, allow_pickle=False) as archive:
        arrays = dict(archive)
    parts = {name: arrays[name].tolist() for name in NUMBERS}
    for name, dtype in ROWS.items():
        borders = np.cumsum(arrays[f"{name}_of_state"])[:-1]
        parts[name] = [as_records(rows, dtype) for rows in np.split(arrays[name], borders)]
    for name in TABLES:
        shapes = arrays[f"{name}_of_state"]
        cells = np.split(arrays[name], np.cumsum(shapes.prod(axis=1))[:-1])
        parts[name] = [part.reshape(shape) for part, shape in zip(cells, shapes, strict=True)]
    views = [View(*row) for row in zip(*(parts[name] for name in View._fields), strict=True)]
    return Recorded(str(arrays["weights"]), arrays["origins"].tolist(), views, arrays["choices"])


if __name__ == "__main__":
    save(record())
