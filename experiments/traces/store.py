"""Results of one policy on one trace, stored so that only what has changed is run again.

A result depends on the jobs and estimates that the policy meets, on its parameters, and on the
code that computes decisions and moves the simulated world; a fingerprint covers these and nothing
else, so that a change elsewhere leaves stored results valid.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

import grimp
import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

import adlro
from adlro.files import write_text
from adlro.policies.registry import Policy
from adlro.workloads.generate import generate
from adlro.workloads.jitter import Jitter, jittered
from adlro.workloads.setting import Setting

# Their effect is in the arrays of workloads, the layout and the parameters of policies; that of
# evaluate in _FIGURES.
_INPUTS = (
    "adlro.config", "adlro.errors", "adlro.estimates", "adlro.evaluate", "adlro.compile_cache",
    "adlro.policies.loading", "adlro.policies.lookahead", "adlro.policies.registry",
    "adlro.workloads",
)  # fmt: skip


_FIGURES = (  # modules that compute the figures of a run
    "adlro.evaluate.metrics", "adlro.evaluate.out_of_range", "adlro.policies.recording",
    "adlro.workloads.jitter",
)  # fmt: skip


class PolicyFigures(BaseModel):
    """Figures of one policy in W windows, means over the repetitions with jitter.

    Those "by third" are means over the windows that have the same place modulo THIRDS, so that each
    is of windows for tuning or of windows for claims.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    fingerprint: str
    jct_s: list[float]  # [W]
    p99_s: list[float]  # [W]
    gang_jct_s: list[list[float | None]]  # [gang sizes][W] None = no such job in the window
    jitter_sd_pct: list[float]  # [W] by third: of the mean JCT of a window over repetitions
    gpu_utilisation: list[float]  # [W] by third
    mean_wait_s: list[float]  # [W] by third
    outside: list[float] | None  # [W] by third: features outside the training range in a decision


@functools.cache
def _modules_of(policy: str) -> tuple[str, ...]:
    """Return the modules that compute the decisions of a policy, and those of the simulator."""
    graph = grimp.build_graph("adlro")
    for module in list(graph.modules):
        if module.startswith(_INPUTS):
            graph.remove_module(module)
    own = f"adlro.policies.{policy.replace('-', '_')}"
    roots = [own if own in graph.modules else "adlro.policies.adlro", "adlro.sim.simulator"]
    upstream = set().union(*(graph.find_upstream_modules(root) for root in roots))
    return tuple(sorted(upstream.union(roots)))


def _source(module: str) -> bytes:
    path = Path(adlro.__file__).parent.joinpath(*module.split(".")[1:])
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_bytes()


def inputs_hash(setting: Setting, seeds: Sequence[int], jitter: Jitter) -> bytes:
    """Hash the jobs and estimates of all windows, the cluster and the jitter."""
    digest = hashlib.blake2b(f"{jitter}".encode(), digest_size=16)
    for array in (setting.layout.pools, setting.layout.nodes, setting.layout.gpus):
        digest.update(array.tobytes())
    for seed in seeds:
        for array in jittered(generate(setting, seed), jitter.sigma, seed, 0):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


def fingerprint(policy: Policy, inputs: bytes) -> str:
    """Hash everything that the result of a policy depends on."""
    digest = hashlib.blake2b(inputs, digest_size=16)
    digest.update(f"{policy.memory} ".encode() + policy.params.tobytes())
    digest.update(b"" if policy.ranges is None else policy.ranges.model_dump_json().encode())
    digest.update(Path(__file__).with_name("cell.py").read_bytes())
    for module in (*_modules_of(policy.name), *_FIGURES):
        digest.update(module.encode() + b"\0" + _source(module))
    return digest.hexdigest()


def stored(path: Path, mark: str) -> PolicyFigures | None:
    """Return the stored figures of this fingerprint, if any."""
    try:
        found = PolicyFigures.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return found if found.fingerprint == mark else None


def store(path: Path, figures: PolicyFigures) -> None:
    """Write the figures of a policy."""
    write_text(path, figures.model_dump_json() + "\n")
