"""Which features and sources are switched on: the core finds their parts by a stage, and names none.

The part of a feature for a stage is the module `reconciler.features.NAME.STAGE`, such as `feature`,
`settings` or `commands`. A feature of one file, `reconciler.features.NAME`, has the stages `feature` and
`settings`.
Sources are the same below `reconciler.sources`, with the stage `source`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from types import ModuleType

_ROOMS = {"features": "feature", "sources": "source"}
"""The stage of a plugin of one file, by the room."""


def modules(stage: str) -> Iterator[ModuleType]:
    """Import the module of this stage of each plugin that has one, and nothing else; features come first."""
    for room, own in _ROOMS.items():
        for package in _packages(room):
            folder = _folder(package)
            # `find_spec` of importlib.util would import the package.
            if folder is not None and PathFinder.find_spec(f"{package}.{stage}", folder):
                yield import_module(f"{package}.{stage}")
            elif folder is None and stage in (own, "settings"):
                yield import_module(package)


def faces() -> Iterator[ModuleType]:
    """Import the `__init__.py` of each plugin that is a folder: it says what the plugin brings."""
    for room in _ROOMS:
        yield from (import_module(package) for package in _packages(room) if _folder(package) is not None)


def _packages(room: str) -> list[str]:
    """Return the modules of the plugins that `FEATURES` or `SOURCES` names, in this order."""
    listed = import_module(f"reconciler.{room}")
    return [f"reconciler.{room}.{name}" for name in getattr(listed, room.upper())]


def _folder(package: str) -> Sequence[str] | None:
    """Return where the modules of a plugin are, None for a plugin of one file."""
    spec = find_spec(package)
    if spec is None:
        raise ImportError(f"{package} is listed, but there is no such file or folder", name=package)
    return spec.submodule_search_locations
