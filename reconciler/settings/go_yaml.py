"""Reads a file of maintenance-controller as it does itself: YAML 1.1, as Go's yaml.v2 understands it.

`yes` and `on` are true, `010` is 8, and there are anchors, aliases and merge keys (`<<`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from yaml.events import AliasEvent, Event

from reconciler.settings.mistakes import Path
from reconciler.settings.yaml import DEEPEST, Broken, Document, Reader, place_of_event, plain, read_with

_MOST = 100_000
"""Values that a file may have, with those of its aliases each time."""

_WORDS = dict.fromkeys(("y", "yes", "true", "on"), True) | dict.fromkeys(("n", "no", "false", "off"), False)
_FLAGS = {form: flag for word, flag in _WORDS.items() for form in (word, word.title(), word.upper())}
_INT = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]{1,16}|0[bB][01]{1,64}|0[oO]?[0-7]{1,22}|[1-9][0-9]{0,18}|0)")
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
    if text[:1] not in ("", "_") and _INT.fullmatch(number):
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


def unlike(ours: object, theirs: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield what two readings of one file understand differently: its path, and what each of them reads.

    What a notification has may be a secret, so it is not shown.
    """
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in ours:
            yield from unlike(ours[key], theirs.get(key), (*path, key))
    elif isinstance(ours, list) and isinstance(theirs, list):
        for place, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
            yield from unlike(mine, other, (*path, place))
    elif _as_text(ours) != _as_text(theirs):
        mine, other = ("one thing", "another") if "notify" in path else map(_as_text, (ours, theirs))
        yield path, f"is {mine} here, and {other} in maintenance-controller, which reads YAML 1.1"


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class _GoReader(Reader):
    """Shares the value of an anchor with its aliases, and counts it each time."""

    def __init__(self, document: Document, text: str) -> None:
        super().__init__(document, text)
        self._made = 0
        self._anchors: dict[str, tuple[object, int, int]] = {}

    def plain(self, text: str) -> object:
        return go_plain(text)

    def content(self, event: Event, path: Path) -> object:
        self._count(1, event)
        return super().content(event, path)

    def anchored(self, event: Event, path: Path) -> object:
        name = str(getattr(event, "anchor", ""))
        if not isinstance(event, AliasEvent):
            before = self._made
            value = self.content(event, path)
            self._anchors[name] = value, self._made - before, _height(value)
            return value
        if name not in self._anchors:
            raise Broken(place_of_event(event), f"the alias *{name} has no anchor &{name} before it")
        value, size, height = self._anchors[name]
        self._count(size, event)
        if len(path) + height > DEEPEST:
            raise Broken(place_of_event(event), f"is nested deeper than {DEEPEST} levels")
        return value

    def mapping(self, path: Path) -> dict[str, object]:
        found = super().mapping(path)
        if "<<" not in found:
            return found
        merged: dict[str, object] = {}
        others = found.pop("<<")
        for other in reversed(others if isinstance(others, list) else [others]):
            if not isinstance(other, dict):
                raise Broken(self.document.place((*path, "<<")), "<< needs a mapping, or a list of them")
            merged |= other
        return merged | found

    def _count(self, size: int, event: Event) -> None:
        self._made += size
        if self._made > _MOST:
            raise Broken(place_of_event(event), f"the file has more than {_MOST} values with its aliases")


def _height(value: object) -> int:
    """Return how many levels a value has below it. `_MOST` limits its size, and `DEEPEST` its depth."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max((1 + _height(each) for each in below), default=0)
