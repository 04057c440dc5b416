"""Mistakes in a settings file, their messages, and the keys that its sections know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from msgspec import Struct
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from reconciler.calendar.values import literal, near
from reconciler.model.content import Secret

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


Path = tuple[str | int, ...]
Place = tuple[int, int]


def spelt(path: Path) -> str:
    """Return a path as Kubernetes writes it: `windows[1].start`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


class Mistake(Struct, frozen=True):
    """What is wrong, as a text, and the path of keys to it. Numbers are list indexes, from 0."""

    path: Path
    message: str


class ChangedScalar(Struct, frozen=True):
    """A number or a boolean whose text as YAML has `read` it is not the one that is `written` in the file."""

    path: Path
    place: Place
    written: str
    read: str


class KeyWarning(Struct, frozen=True):
    """A warning: the key of the file, such as `budget.spacing`, what happens, and what to change.

    `line` is that of the key, 0 if it is not known.
    """

    key: str
    message: str
    change: str
    line: int = 0

    def __str__(self) -> str:
        """Return the warning as one line."""
        return f"{self.key}: {self.message}; {self.change}"


class Mistakes(ValueError):
    """Several mistakes at once, so that a validator does not stop at the first."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        """Combine mistakes whose paths start at the section of the validator."""
        super().__init__("; ".join(mistake.message for mistake in mistakes))
        self.mistakes = mistakes


Known = Callable[[Path], list[str]]
"""Returns the keys that a section has, by its path."""


def mistakes_of(
    details: ErrorDetails,
    known: Known,
    of_features: Callable[[Path], bool] = lambda _path: False,
    secret: Collection[str] = (),
) -> Iterator[Mistake]:
    """Convert an error of pydantic, with messages for the author of the file.

    `of_features` says whether features add keys of their own to the section at a path. `secret` are the
    sections that have secrets.
    """
    # pydantic reports an invalid key of a mapping as `key.[key]`.
    path: Path = tuple(part for part in details["loc"] if part != "[key]")
    context: dict[str, Any] = details.get("ctx") or {}
    error = context.get("error")
    if isinstance(error, Mistakes):
        for mistake in error.mistakes:
            yield Mistake((*path, *mistake.path), mistake.message)
    elif isinstance(error, ValueError):
        yield Mistake(path, str(error))
    else:
        given = details["input"]
        if path and path[0] in secret and isinstance(given, str) and details["type"].endswith("_type"):
            given = Secret(given)  # What was meant as a secret may stand in a wrong place.
        yield Mistake(path, _words(details, given, path, known, of_features(path[:-1])))


def unknown_key(word: str, known: Iterable[str], *, of_features: bool = False) -> str:
    """Return what is said of a key that a section does not know, with what was probably meant.

    `of_features`: features add keys to this section, so the key may be that of a feature that is not there.
    """
    names = sorted(known)
    if meant := near(word, names):
        return f"unknown key{meant}"
    absent = ", or that of a feature that this program is built without" if of_features else ""
    return f"unknown key{absent}; the keys here are {', '.join(names)}"


def _words(details: ErrorDetails, given: object, path: Path, known_at: Known, of_features: bool) -> str:
    match details["type"]:
        case "extra_forbidden":
            return unknown_key(str(path[-1]), known_at(path[:-1]), of_features=of_features)
        case "missing":
            return "is missing"
        case "enum" | "literal_error":
            # The text of pydantic is `'Observe', 'Enforce' or 'Finish'`.
            expected = str((details.get("ctx") or {}).get("expected", ""))
            words = [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(",")]
            return f"{literal(given)} is not one of {', '.join(words)}{near(str(given), words)}"
        case "bool_type":
            meant = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
            word = str(given).lower()
            word = meant.get(word, word if word in ("true", "false") else "")
            return f"{literal(given)} is neither true nor false" + (f"; did you mean {word}?" if word else "")
        case "string_type":
            return f"{literal(given)} is not text" + ("" if given is None else "; write it in quotes")
        case "int_type" | "int_parsing":
            return f"{literal(given)} is not a whole number"
        case "too_long" if isinstance(given, list):
            return f"has {len(given)} entries; the limit is {(details.get('ctx') or {}).get('max_length')}"
        case "tuple_type" | "list_type":
            if isinstance(given, dict):
                return "a mapping is not a list; write `- ` before its first key, and indent the other keys"
            example = "a, b" if given is None else literal(given)
            return f"{literal(given)} is not a list; write it like [{example}]"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{literal(given)} is not a mapping of keys to values"
    return details["msg"]


class Key(Struct, frozen=True):
    """A key and its path. In the path, `*` is a name that the user chooses, and `[]` a list entry."""

    path: tuple[str, ...]
    field: FieldInfo

    @property
    def name(self) -> str:
        """The path as text: `windows[].start`, `conditions.*.for`."""
        return ".".join(self.path).replace(".[]", "[]")


def keys(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[Key]:
    """Yield every key below a section. A section comes before its own keys."""
    for field in model.model_fields.values():
        here = (*path, str(field.alias))
        yield Key(here, field)
        below, step = _section(field)
        if below is not None:
            yield from keys(below, (*here, *step))


def keys_at(model: type[BaseModel], path: Path) -> list[str]:
    """Return the keys of the section at a path of a file. Empty if the path is not a section."""
    current: type[BaseModel] | None = model
    rest = list(path)
    while rest and current is not None:
        name = rest.pop(0)
        field = next((each for each in current.model_fields.values() if each.alias == name), None)
        if field is None:
            return []
        current, step = _section(field)
        rest = rest[len(step) :]
    return [str(field.alias) for field in current.model_fields.values()] if current is not None else []


def _section(field: FieldInfo) -> tuple[type[BaseModel] | None, tuple[str, ...]]:
    """Return the section that a field holds, and the path step into it: none, `[]` or `*`."""
    return _section_of(field.annotation)


def _section_of(annotation: Any) -> tuple[type[BaseModel] | None, tuple[str, ...]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ()
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is UnionType:
        found = (_section_of(each) for each in arguments)
        return next((each for each in found if each[0] is not None), (None, ()))
    if origin is tuple and arguments:
        return _section_of(arguments[0])[0], ("[]",)
    if origin is dict:
        return _section_of(arguments[1])[0], ("*",)
    return None, ()
