"""The simulator step by step: many copies at once, and as Gymnasium environments.

To import this registers `adlro/Cluster-v0`, whose single form is `cluster.ClusterEnv` and whose
vector form is `cluster_vector.ClusterVectorEnv`. `worlds.Worlds` is what both stand on.
"""

from __future__ import annotations

from adlro.errors import MissingExtraError

try:
    import gymnasium
except ImportError as exc:
    raise MissingExtraError("adlro.envs", "gym") from exc

gymnasium.register(
    id="adlro/Cluster-v0",
    entry_point="adlro.envs.cluster:ClusterEnv",
    vector_entry_point="adlro.envs.cluster_vector:ClusterVectorEnv",
)
