"""Files of other programs that a feature takes over: which settings of ours say what such a file says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import yaml
from msgspec import Struct, field

from reconciler import plugins
from reconciler.settings.mistakes import Mistake, Path, spelt

UNKNOWN = "has no effect: the program does not have this key"


class Translation(Struct, frozen=True):
    """What a file says here.

    `settings` are ours, as a file has them, and `shown` is the same without secrets. `meanings` say of each
    key of the file what it means, in its order. `places` is where a key of ours is from in the file.
    `mistakes` have paths in the file.
    """

    settings: dict[str, Any]
    shown: dict[str, Any]
    meanings: tuple[tuple[Path, str], ...] = ()
    places: Mapping[Path, Path] = field(default_factory=dict)
    mistakes: tuple[Mistake, ...] = ()

    def place_of(self, path: Path) -> Path:
        """Return where in the file a key of ours is from, or what is around it; empty if from nowhere."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, ())

    @property
    def block(self) -> str:
        """The settings as YAML, to be written beside `profiles`."""
        return yaml.safe_dump(self.shown, sort_keys=False, allow_unicode=True, width=100)


class Original(Struct, frozen=True):
    """A file of another program: how it is recognized by its content, and what it says here.

    A feature has these in the list `ORIGINALS` of its `settings.py`.
    """

    name: str
    is_one: Callable[[Mapping[str, Any]], bool]
    translate: Callable[[Mapping[str, Any]], Translation]


class Key(Struct, frozen=True):
    """A key of such a file, and what it is here: a key of ours with the same value, or what is said of it."""

    path: Path
    ours: Path = ()
    words: str = ""

    @property
    def meaning(self) -> str:
        """What it means, in words."""
        return f"is {spelt(self.ours)}{f'; {self.words}' if self.words else ''}" if self.ours else self.words


_STEPS = [(step, key) for step in ("podDeletion", "podEviction") for key in ("period", "timeout")]
_DRAIN = "has no effect: a drain goes on until the node is empty (drain.timeout)"
_FORCE = "has no effect: a PodDisruptionBudget is never ignored; see drain.escalation"

OF_DRAINS = (
    *(Key(("intervals", *step), words=_DRAIN) for step in _STEPS),
    Key(("intervals", "podEviction", "force"), words=_FORCE),
)
"""What both files of controllers beside maintenance-controller's own say of drains."""


def original_of(value: Mapping[str, Any]) -> Original | None:
    """Return which of the files that features know this is, None for any other."""
    known = (each for module in plugins.modules("settings") for each in getattr(module, "ORIGINALS", ()))
    return next((each for each in known if each.is_one(value)), None)


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield every value of a file that is no mapping, with its path."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from leaves(each, (*path, str(key)))
    else:
        yield path, value


def translate(
    value: Mapping[str, Any], keys: Iterable[Key], settings: dict[str, Any], *, apart: Path = ()
) -> Translation:
    """Return the settings with what these keys say; what is below `apart` is left to the caller."""
    known = {key.path: key for key in keys}
    meanings: list[tuple[Path, str]] = []
    places: dict[Path, Path] = {}
    for path, content in leaves(value):
        if apart and path[: len(apart)] == apart:
            continue
        key = known.get(path, Key(path, words=UNKNOWN))
        meanings.append((path, key.meaning))
        if key.ours and content is not None:
            put(settings, key.ours, content)
            places[key.ours] = path
    return Translation(settings, settings, tuple(meanings), places)


def put(settings: dict[str, Any], path: Path, content: object) -> None:
    """Set a value at a path in settings, with the mappings around it."""
    for key in path[:-1]:
        settings = settings.setdefault(str(key), {})
    settings[str(path[-1])] = content
