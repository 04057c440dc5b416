"""Which features and sources are switched on: the core finds their parts by a stage, and names none.

The part of a feature for a stage is the module `reconciler.features.NAME.STAGE`, such as `feature`,
`settings` or `commands`. In a folder without `settings.py`, `process.py` and `commands.py`, `feature.py` has
the parts of all these stages. A feature of one file, `reconciler.features.NAME`, has the stages `feature` and
`settings`. Sources are the same below `reconciler.sources`, with the stage `source`; a feature may have
sources as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import NamedTuple, TypeVar

_ROOMS = {"features": "feature", "sources": "source"}
"""The stage of a plugin of one file, by the room."""

VALUES = {"feature": "FEATURE", "source": "SOURCES", "settings": "SECTIONS", "process": "PROCESS"}
"""The value in which the module of a stage says what it gives; for commands, the face has their names."""

SEE, PLAN, ACT, SET_UP = (
    "See what happens, and why",
    "Plan: what comes, and what another policy would do",
    "Act on nodes",
    "Set up",
)
"""The groups of commands, as the help shows them."""


class Command(NamedTuple):
    """What the help says of a command: its group, its line there, and how it is typed.

    `answers`: what the example is for, if the help shows it for the whole group, else empty.
    """

    group: str
    text: str
    example: str
    answers: str = ""


Given = TypeVar("Given")


def file_of(module: ModuleType) -> str:
    """Return the file of a module for messages, from the root of the repository."""
    return f"{module.__name__.replace('.', '/')}.py"


def by_name(
    what: str, given: Iterable[tuple[str, Iterable[Given]]], name: Callable[[Given], str]
) -> Mapping[str, Given]:
    """Return what each of these files gives, by its name; raises ValueError if two have the same name."""
    known: dict[str, Given] = {}
    files: dict[str, str] = {}
    for file, values in given:
        for value in values:
            key = name(value)
            if key in known:
                raise ValueError(f"{file}: {files[key]} has another {what} {key}")
            known[key], files[key] = value, file
    return known


_OTHERS = ("settings", "process", "commands")
_SOURCES_FIRST = ("source", "settings")


def modules(stage: str) -> Iterator[ModuleType]:
    """Import the module of this stage of each plugin that has one, and nothing else.

    Features come first, but the sources of features after all others, as their sections do.
    """
    rooms = reversed(_ROOMS.items()) if stage in _SOURCES_FIRST else _ROOMS.items()
    for room, own in rooms:
        for package in _packages(room):
            name = _module(package, own, stage)
            if name:
                module = import_module(name)
                if stage == own or name.endswith(f".{stage}") or hasattr(module, VALUES[stage]):
                    yield module


def faces() -> Iterator[ModuleType]:
    """Import the `__init__.py` of each plugin that is a folder: it says what the plugin brings."""
    for room in _ROOMS:
        yield from (import_module(package) for package in _packages(room) if _folder(package) is not None)


def commands_of(face: str) -> ModuleType:
    """Import the module with the commands of a plugin, by the name of its face."""
    return import_module(_module(face, _ROOMS[face.split(".")[1]], "commands"))


def _packages(room: str) -> list[str]:
    """Return the modules of the plugins that `FEATURES` or `SOURCES` names, in this order."""
    listed = import_module(f"reconciler.{room}")
    return [f"reconciler.{room}.{name}" for name in getattr(listed, room.upper())]


def _module(package: str, own: str, stage: str) -> str:
    """Return the module of a plugin for a stage, empty if it has none."""
    folder = _folder(package)
    if folder is None:
        return package if stage in (own, "settings") else ""

    # `find_spec` of importlib.util would import the package.
    def has(name: str) -> bool:
        return PathFinder.find_spec(f"{package}.{name}", folder) is not None

    if has(stage):
        return f"{package}.{stage}"
    # A source has no parts of a process and no commands, and its module imports much.
    served = _OTHERS if own == "feature" else ("settings",)
    small = stage in served and has(own) and not any(map(has, _OTHERS))
    return f"{package}.{own}" if small else ""


def _folder(package: str) -> Sequence[str] | None:
    """Return where the modules of a plugin are, None for a plugin of one file."""
    spec = find_spec(package)
    if spec is None:
        raise ImportError(f"{package} is listed, but there is no such file or folder", name=package)
    return spec.submodule_search_locations
