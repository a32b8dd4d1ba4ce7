"""Registers `adlro/Cluster-v0` when gymnasium is imported, so that `gymnasium.make` knows it.

gymnasium 1.0 no longer loads the entry points `gymnasium.envs` of other packages. Instead, the
installed file `adlro_gymnasium.pth` imports this module and calls `install` whenever Python starts.
This adds an import hook for gymnasium, imports nothing else, and takes about 3 ms.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's own would be an import, and this module is imported at each start
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_PACKAGE = "gymnasium.envs"


def register() -> None:
    """Register the single and the vector environment, unless they are registered already."""
    from gymnasium.envs import registration

    if "adlro/Cluster-v0" not in registration.registry:
        registration.register(
            id="adlro/Cluster-v0",
            entry_point="adlro.envs.cluster:ClusterEnv",
            vector_entry_point="adlro.envs.cluster_vector:ClusterVectorEnv",
        )


class _RegisteringLoader:
    """Loader that runs the original loader of `gymnasium.envs`, then registers our environment."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module as the original loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module of gymnasium, then register our environment."""
        self._loader.exec_module(module)
        register()


class _Finder:
    """Import hook that gives `gymnasium.envs` the loader above; it removes itself after use."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of `gymnasium.envs` with the loader above; None for other modules."""
        if name != _PACKAGE:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _RegisteringLoader(spec.loader)  # type: ignore[assignment]  # by its methods
        return spec


def install() -> None:
    """Register the environment now if gymnasium is imported; otherwise when it is imported."""
    if _PACKAGE in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _Finder())
