"""Registers `adlro/Cluster-v0` when gymnasium is imported, so that `gymnasium.make` knows it.

gymnasium 1.0 no longer loads the entry points `gymnasium.envs` of other packages. The file
`adlro_gymnasium.pth` of the installation imports this module when Python starts; it waits for
gymnasium, imports nothing else, and takes about 3 ms of a start.
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
    """Register the environment, single and vector, unless it is registered."""
    from gymnasium.envs import registration

    if "adlro/Cluster-v0" not in registration.registry:
        registration.register(
            id="adlro/Cluster-v0",
            entry_point="adlro.envs.cluster:ClusterEnv",
            vector_entry_point="adlro.envs.cluster_vector:ClusterVectorEnv",
        )


class _RegisteringLoader:
    """Loads gymnasium's environments as its own loader does, then registers ours."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the loader of gymnasium does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run gymnasium's module, then register the environment."""
        self._loader.exec_module(module)
        register()


class _Finder:
    """Finds gymnasium's environments once, and gives them the loader above."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of gymnasium's environments; None for every other module."""
        if name != _PACKAGE:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _RegisteringLoader(spec.loader)  # type: ignore[assignment]  # by its methods
        return spec


def install() -> None:
    """Wait for gymnasium, or register at once if it is imported."""
    if _PACKAGE in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _Finder())
