"""Reads YAML with positions, as 1.2 (`read_yaml`) or as maintenance-controller does (`read_go_yaml`).

PyYAML reads YAML 1.1, where 22:00 is the number 1320, and the last of two duplicate keys wins silently.
This module uses only the parser of PyYAML, and resolves scalars by the core schema of YAML 1.2: `22:00` and
`no` are text, and duplicate keys are mistakes. For Go's yaml.v2, which reads YAML 1.1, `yes` and `on` are
true, `010` is 8, and there are anchors, aliases and merge keys (`<<`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from decimal import Decimal

import yaml
from msgspec import Struct, field
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
)

from reconciler.model.content import REFERENCE
from reconciler.model.values import replace
from reconciler.settings.mistakes import ChangedScalar, Mistake, Path, Place

DEEPEST = 40
_LONGEST = 1_000_000  # the size limit of a ConfigMap

_NULL = re.compile(r"~|null|Null|NULL|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]{1,400}|0o[0-7]{1,400}|0x[0-9a-fA-F]{1,400}")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)

# YAML ends a text without quotes at a brace if it is in `{…}`, so `{webhook: ${URL}}` would be a mistake.
# These two private characters stand for the braces of a reference, so that every place stays where it is.
_HIDDEN = str.maketrans("{}", "\uf8d0\uf8d1")
_SHOWN = str.maketrans("\uf8d0\uf8d1", "{}")


class Document(Struct):
    """The value of a file, the line and column of each key (from 1), and the mistakes in its YAML.

    `changed` are the numbers and booleans that are not the text as it is written, such as `1.10`.
    """

    value: object = None
    places: dict[Path, Place] = field(default_factory=dict)
    mistakes: list[tuple[Place, Mistake]] = field(default_factory=list)
    changed: list[ChangedScalar] = field(default_factory=list)

    def place(self, path: Path) -> Place:
        """Return the place of a key, or of its nearest parent that is in the file."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (1, 1))


class BrokenYaml(Exception):
    """A mistake after which nothing else can be read."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place


def read_yaml(text: str) -> Document:
    """Read one document. Mistakes are in the result, never raised."""
    return read_with(Reader, text)


def read_with(kind: type[Reader], text: str) -> Document:
    """Read one document with this kind of reader. Mistakes are in the result, never raised."""
    document = Document()
    if len(text) > _LONGEST:
        document.mistakes.append(((1, 1), Mistake((), "is longer than the limit for a settings file (1 MB)")))
        return document
    try:
        kind(document, text).read()
    except BrokenYaml as error:
        document.mistakes.append((error.place, Mistake((), str(error))))
    except yaml.YAMLError as error:
        place = _place_of(error, text)
        line = (text.split("\n")[place[0] - 1 : place[0]] or [""])[0]
        parts = (getattr(error, "context", None), getattr(error, "problem", None))
        words = ", ".join(str(part) for part in parts if part) or " ".join(str(error).split())
        if line[place[1] - 1 : place[1]] == "\t" or line[: len(line) - len(line.lstrip())].count("\t"):
            words = "this line has a tab before its text; YAML is indented with spaces only"
        document.mistakes.append((place, Mistake((), f"not YAML: {words}")))
    return document


class Reader:
    """Makes a value of the events of one document. Raises Broken, and yaml.YAMLError."""

    def __init__(self, document: Document, text: str) -> None:
        """Prepare to read the text into the document."""
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
        self.document = document
        hidden = REFERENCE.sub(lambda found: found[0].translate(_HIDDEN), text)
        self._events: Iterator[Event] = yaml.parse(hidden, Loader=loader)

    def read(self) -> None:
        """Read the document."""
        started = 0
        for event in self._events:
            if not isinstance(event, DocumentStartEvent):
                continue
            started += 1
            first = next(self._events)
            if started == 1:
                self.document.value = self._value(first, ())
            elif not (isinstance(first, ScalarEvent) and first.value == ""):
                raise BrokenYaml(
                    place_of_event(event),
                    "a second document starts here, but a settings file has only one: keep the one that you "
                    "want to use, and remove the other one and this line, '---'",
                )

    def _value(self, event: Event, path: Path) -> object:
        if len(path) > DEEPEST:
            raise BrokenYaml(place_of_event(event), f"is nested deeper than {DEEPEST} levels")
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            return self.anchored(event, path)
        return self.content(event, path)

    def anchored(self, event: Event, path: Path) -> object:
        """Return the value of an alias, or of an event with an anchor."""
        del path
        raise BrokenYaml(
            place_of_event(event), "anchors (&) and aliases (*) are not supported; repeat the value"
        )

    def content(self, event: Event, path: Path) -> object:
        """Return the value of an event that is no alias."""
        if isinstance(event, ScalarEvent):
            return self._scalar(event, path)
        if isinstance(event, MappingStartEvent):
            return self.mapping(path)
        items: list[object] = []
        while not isinstance(item := next(self._events), SequenceEndEvent):
            here = (*path, len(items))
            self.document.places[here] = place_of_event(item)
            items.append(self._value(item, here))
        return items

    def mapping(self, path: Path) -> dict[str, object]:
        """Return the mapping that has begun."""
        mapping: dict[str, object] = {}
        while not isinstance(key := next(self._events), MappingEndEvent):
            if not isinstance(key, ScalarEvent):
                raise BrokenYaml(place_of_event(key), "a key must be plain text")
            # Keys are always text: `1:` is the name of a label, not a number.
            name = str(key.value).translate(_SHOWN)
            here = (*path, name)
            if name in mapping:
                message = f"is a duplicate; the first one is on line {self.document.places[here][0]}"
                self.document.mistakes.append((place_of_event(key), Mistake(here, message)))
                self._value(next(self._events), here)
                continue
            self.document.places[here] = place_of_event(key)
            mapping[name] = self._value(next(self._events), here)
        return mapping

    def _scalar(self, event: ScalarEvent, path: Path) -> object:
        text = str(event.value).translate(_SHOWN)
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            self.document.mistakes.append(
                (place_of_event(event), Mistake(path, f"tags like {event.tag} are not supported"))
            )
            return text
        if event.tag or event.style not in (None, ""):
            return text
        value = self.plain(text)
        if value is not None and (read := _as_text(value)) != text:
            self.document.changed.append(ChangedScalar(path, place_of_event(event), text, read))
        return value

    def plain(self, text: str) -> object:
        """Return the value of a scalar without quotes."""
        return plain(text)


def plain(text: str) -> object:
    """Return the value of a scalar without quotes, by the core schema of YAML 1.2."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def place_of_event(event: Event) -> Place:
    """Return the line and the column where an event begins, from 1."""
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)


def _place_of(error: yaml.YAMLError, text: str) -> Place:
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return (mark.line + 1, mark.column + 1)
    before = text[: getattr(error, "position", None) or 0]
    return (before.count("\n") + 1, len(before) - before.rfind("\n"))


_MOST = 100_000
"""Values that a file may have, with those of its aliases each time."""

_WORDS = dict.fromkeys(("y", "yes", "true", "on"), True) | dict.fromkeys(("n", "no", "false", "off"), False)
_FLAGS = {form: flag for word, flag in _WORDS.items() for form in (word, word.title(), word.upper())}
_GO_INT = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]{1,16}|0[bB][01]{1,64}|0[oO]?[0-7]{1,22}|[1-9][0-9]{0,18}|0)")
_BASES = {"x": 16, "b": 2, "o": 8}
_EXPONENTS = range(-4, 6)
"""With these, a number is written without an exponent."""


class GoFloat(float):
    """A number with a point. As text it is what Go makes of it: `1.0` is 1, and `1.10` is 1.1."""

    def __str__(self) -> str:
        """Return the number as Go's `%v` does."""
        exact = Decimal(repr(float(self)))
        if not exact.is_finite():
            return repr(float(self))
        exact = exact.normalize()
        if exact.adjusted() in _EXPONENTS:
            return f"{exact:f}"
        digits, _, exponent = f"{exact:e}".partition("e")
        return f"{digits}e{int(exponent):+03d}"


def go_plain(text: str) -> object:
    """Return the value of a scalar without quotes, as Go's yaml.v2 resolves it."""
    if text in _FLAGS:
        return _FLAGS[text]
    number = text.replace("_", "")
    if text[:1] not in ("", "_") and _GO_INT.fullmatch(number):
        return _whole(number)
    found = plain(number if text[:1].isdecimal() else text)
    if found is None:
        return None
    try:
        return GoFloat(found) if isinstance(found, int | float) else text
    except OverflowError:
        return text


def _whole(text: str) -> int:
    digits = text.lstrip("-+")
    base = 10 if digits[0] != "0" or digits == "0" else _BASES.get(digits[1].lower(), 8)
    return int(text, base)


def read_go_yaml(text: str) -> Document:
    """Read one document. Mistakes are in the result, never raised."""
    return read_with(_GoReader, text)


def unlike(
    ours: object, theirs: object, path: Path = (), secret: Collection[str] = ()
) -> Iterator[tuple[Path, str]]:
    """Yield what two readings of one file understand differently: its path, and what each of them reads.

    What is below one of the keys `secret` is not shown.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in ours:
            yield from unlike(ours[key], theirs.get(key), (*path, key), secret)
    elif isinstance(ours, list) and isinstance(theirs, list):
        for place, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from unlike(mine, other, (*path, place), secret)
    elif _as_text(ours) != _as_text(theirs):
        hidden = not set(path).isdisjoint(secret)
        mine, other = ("one thing", "another") if hidden else map(_as_text, (ours, theirs))
        yield path, f"is {mine} here, and {other} in maintenance-controller, which reads YAML 1.1"


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _GoReader(Reader):
    """Shares the value of an anchor with its aliases, and counts it each time."""

    def __init__(self, document: Document, text: str) -> None:
        super().__init__(document, text)
        self._made = 0
        self._anchors: dict[str, tuple[object, int, int, Path, list[ChangedScalar]]] = {}

    def plain(self, text: str) -> object:
        return go_plain(text)

    def content(self, event: Event, path: Path) -> object:
        self._count(1, event)
        return super().content(event, path)

    def anchored(self, event: Event, path: Path) -> object:
        name = str(getattr(event, "anchor", ""))
        if not isinstance(event, AliasEvent):
            before, changes = self._made, len(self.document.changed)
            value = self.content(event, path)
            changed = self.document.changed[changes:]
            self._anchors[name] = value, self._made - before, _height(value), path, changed
            return value
        if name not in self._anchors:
            raise BrokenYaml(place_of_event(event), f"the alias *{name} has no anchor &{name} before it")
        value, size, height, there, changed = self._anchors[name]
        self._count(size, event)
        if len(path) + height > DEEPEST:
            raise BrokenYaml(place_of_event(event), f"is nested deeper than {DEEPEST} levels")
        self.document.changed += [
            replace(change, path=(*path, *change.path[len(there) :])) for change in changed
        ]
        return value

    def mapping(self, path: Path) -> dict[str, object]:
        found = super().mapping(path)
        if "<<" not in found:
            return found
        merged: dict[str, object] = {}
        others = found.pop("<<")
        for other in reversed(others if isinstance(others, list) else [others]):
            if not isinstance(other, dict):
                raise BrokenYaml(self.document.place((*path, "<<")), "<< needs a mapping, or a list of them")
            merged |= other
        return merged | found

    def _count(self, size: int, event: Event) -> None:
        self._made += size
        if self._made > _MOST:
            raise BrokenYaml(place_of_event(event), f"the file has more than {_MOST} values with its aliases")


def _height(value: object) -> int:
    """Return how many levels a value has below it. `_MOST` limits its size, and `DEEPEST` its depth."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max((1 + _height(each) for each in below), default=0)
