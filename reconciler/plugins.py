"""Which features and sources are switched on: the core finds their parts by a stage, and names none.

The part of a feature for a stage is the module `reconciler.features.NAME.STAGE`, such as `feature`,
`settings` or `commands`. In a folder without `settings.py`, `process.py` and `commands.py`, `feature.py` has
the parts of all these stages. A feature of one file, `reconciler.features.NAME`, has the stages `feature` and
`settings`. Sources are the same below `reconciler.sources`, with the stage `source`; a feature may have
sources as well.

Whatever asks all of them, such as a decision, asks them in the order of their names. Where that is not good
enough, a folder says in its `__init__.py` that it comes before or behind all that say nothing (`PLACE`).

A plugin that is installed is one module with the values of all its stages, see docs/plugins.md. It comes
after those of the program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import NamedTuple, TypeVar

from reconciler import ReconcilerError


class PluginError(ReconcilerError):
    """A plugin that is installed can't be used; the message names it, and says what to do."""

    exit_code = 2


_ROOMS = {"features": "feature", "sources": "source"}
"""The stage of a plugin of one file, by the room."""

VALUES = {
    "feature": "FEATURE",
    "source": "SOURCES",
    "settings": "SECTIONS",
    "process": "PROCESS",
    "simulation": "SIMULATED",
    "columns": "COLUMNS",
    "permissions": "PERMISSIONS",
    "keys": "KEYS",
}
"""The value in which the module of a stage says what it gives; for commands, the face has their names."""

ENTRY_POINT = "node_maintenance.plugins"
"""The group of entry points by which plugins that are installed are found."""

RELIES_ON = 1
"""The version of what an installed plugin may use, see docs/plugins.md. A plugin names the same."""

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


EARLY, LATE = -1, 1
"""What the `PLACE` of a plugin may be: before all that have none, and behind them."""

_OTHERS = ("settings", "process", "commands")
_SOURCES_FIRST = ("source", "settings")


def modules(stage: str) -> Iterator[ModuleType]:
    """Import the module of this stage of each plugin that has one, and nothing else.

    Features come first, but the sources of features after all others, as their sections do. Raises
    ImportError, with the file, for a module of the stage that says nothing of what it gives. A stage of none
    of the `VALUES` may give what it likes, such as the catalogue of metrics.
    """
    value = VALUES.get(stage)
    rooms = reversed(_ROOMS.items()) if stage in _SOURCES_FIRST else _ROOMS.items()
    for room, own in rooms:
        for package in _packages(room):
            name = _module(package, own, stage)
            if name:
                module = import_module(name)
                if value is None or hasattr(module, value):
                    yield module
                elif stage == own or name.endswith(f".{stage}"):
                    raise ImportError(f"{module.__file__} has no {value}", name=name)
    yield from (plugin.module for plugin in installed() if hasattr(plugin.module, value or stage))


def faces() -> Iterator[ModuleType]:
    """Import the modules with the `COMMANDS` of plugins: `__init__.py` in each folder, and installed ones."""
    for room in _ROOMS:
        yield from (import_module(package) for package in _packages(room) if _folder(package) is not None)
    yield from (plugin.module for plugin in installed())


def commands_of(face: str) -> ModuleType:
    """Import the module with the commands of a plugin, by the name of its face."""
    if any(plugin.module.__name__ == face for plugin in installed()):
        return import_module(face)
    return import_module(_module(face, _ROOMS[face.split(".")[1]], "commands"))


def names(room: str) -> tuple[str, ...]:
    """Return the names of the plugins in `features` or `sources`, in their order.

    Raises ImportError for a folder without a module of any stage, for one beside a file of its name, and for
    a `PLACE` that is none; the message names the file.
    """
    return _found(room, *import_module(f"reconciler.{room}").__path__)


@cache
def _found(room: str, *paths: str) -> tuple[str, ...]:
    stages = {*VALUES, "commands", "steps"} - {*_ROOMS.values()} | {_ROOMS[room]}
    places: dict[str, int] = {}
    for found in iter_modules(paths):
        path = f"reconciler/{room}/{found.name}"
        places[found.name] = 0
        if not found.ispkg:
            continue
        package = import_module(f"reconciler.{room}.{found.name}")
        if not stages & {module.name for module in iter_modules(package.__path__)}:
            raise ImportError(f"{path} has none of {', '.join(f'{stage}.py' for stage in sorted(stages))}")
        if any(Path(folder).with_suffix(".py").exists() for folder in package.__path__):
            raise ImportError(f"{path}.py and {path}/ are one plugin: remove one of them")
        places[found.name] = getattr(package, "PLACE", 0)
        if places[found.name] not in (EARLY, 0, LATE):
            raise ImportError(f"{path}/__init__.py: PLACE is {places[found.name]}, and not EARLY or LATE")
    return tuple(sorted(places, key=lambda name: (places[name], name)))


def _packages(room: str) -> list[str]:
    """Return the modules of the plugins of a room, in their order."""
    return [f"reconciler.{room}.{name}" for name in names(room)]


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
    return spec.submodule_search_locations if spec is not None else None


class Installed(NamedTuple):
    """A plugin that is installed: its module, and its name and package, as messages have them."""

    module: ModuleType
    name: str
    package: str

    def __str__(self) -> str:
        return f"the plugin {self.name} of {self.package}"

    def refused(self, why: str) -> PluginError:
        """Return the error that this plugin can't be used, with what a person can do."""
        return PluginError(
            f"{self}: {why}. Nothing is started: install a version of it for RELIES_ON = {RELIES_ON}, or "
            "uninstall it; see docs/plugins.md"
        )


@cache
def installed() -> tuple[Installed, ...]:
    """Import the plugins that are installed, sorted by name. Raises PluginError if one does not fit."""
    if is_any_installed():
        # A plugin's checks come after those of the program, and its module may import these.
        import_module("reconciler.profiles.checks")
    return load_installed()


@cache
def load_installed() -> tuple[Installed, ...]:
    """Return what `installed` does. For the module of the checks, which is then not yet loaded itself."""
    if not is_any_installed():
        return ()
    from importlib.metadata import entry_points

    loaded: dict[str, Installed] = {}
    for point in sorted(entry_points(group=ENTRY_POINT), key=lambda point: point.name):
        package = f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
        plugin = Installed(ModuleType(point.module), point.name, package)
        if point.name in loaded:
            raise plugin.refused(f"it has the name of a plugin of {loaded[point.name].package}")
        try:
            plugin = plugin._replace(module=import_module(point.module))
        except Exception as error:
            raise plugin.refused(f"it can't be loaded: {type(error).__name__}: {error}") from error
        version = getattr(plugin.module, "RELIES_ON", None)
        if version != RELIES_ON:
            raise plugin.refused(f"it has RELIES_ON = {version}, and this program has {RELIES_ON}")
        loaded[point.name] = plugin
    return tuple(loaded.values())


@cache
def is_any_installed() -> bool:
    """Whether the files of a package name a plugin: a start without one imports no importlib.metadata."""
    return any(
        ENTRY_POINT in file.read_text(encoding="utf-8")
        for folder in sys.path
        for file in Path(folder or ".").glob("*-info/entry_points.txt")
    )


Given = TypeVar("Given")


def file_of(module: ModuleType) -> str:
    """Return the file of a module for messages, from the root of the repository, or the plugin installed."""
    for plugin in installed():
        if plugin.module is module:
            return str(plugin)
    return f"{module.__name__.replace('.', '/')}.py"


def by_name(
    what: str, given: Iterable[tuple[str, Iterable[Given]]], name: Callable[[Given], str]
) -> Mapping[str, Given]:
    """Return what each of these files gives, by its name.

    If two have the same name, raises PluginError if the second is in a plugin installed, else ValueError.
    """
    known: dict[str, Given] = {}
    files: dict[str, str] = {}
    for file, values in given:
        for value in values:
            key = name(value)
            if key in known:
                why = f"{files[key]} has another {what} {key}"
                for plugin in installed():
                    if str(plugin) == file:
                        raise plugin.refused(why)
                raise ValueError(f"{file}: {why}")
            known[key], files[key] = value, file
    return known
