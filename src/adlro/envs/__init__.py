"""The simulator step by step: many copies at once, and as Gymnasium environments.

Importing this package registers `adlro/Cluster-v0`: `cluster.ClusterEnv`, and its vector form
`cluster_vector.ClusterVectorEnv`. Both are built on `worlds.Worlds`.
"""

from __future__ import annotations

from adlro import gymnasium_plugin
from adlro.errors import MissingExtraError

try:
    gymnasium_plugin.register()
except ImportError as exc:
    raise MissingExtraError("adlro.envs", "gym") from exc
