"""The simulator as an environment for learners: many copies at once, or with Gymnasium.

Importing this package registers the Gymnasium environment `adlro/Cluster-v0`, which is
`cluster.ClusterEnv` or, as a vector environment, `cluster_vector.ClusterVectorEnv`. Both classes
are built on `worlds.Worlds`.
"""

from __future__ import annotations

from adlro import gymnasium_plugin
from adlro.errors import MissingExtraError

try:
    gymnasium_plugin.register()
except ImportError as exc:
    raise MissingExtraError("adlro.envs", "gym") from exc
