"""Reads the lines of an iCalendar file (RFC 5545) into components with their line numbers.

Only the properties that a caller names are read. Whatever else a program writes into its files is skipped,
so that it can't make a calendar unreadable.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from msgspec import Struct, field

NO_CALENDAR = "is not an iCalendar file, which begins with BEGIN:VCALENDAR"

_DEEPEST = 10
"""Components inside each other. RFC 5545 has three: VCALENDAR, VEVENT, VALARM."""

_MOST_COMPONENTS = 20_000
_LONGEST_VALUE = 100_000
"""Characters of a property that is read; a long list of EXDATE has a few thousand."""
_LONGEST_SHOWN = 2000
"""Characters of a property that is only shown, with its parameters."""

_BREAK = re.compile(r"\r\n|\n|\r")


class CalendarMistake(ValueError):
    """What is wrong with a calendar, with the line (from 1) if it is known."""

    def __init__(self, message: str, line: int = 0) -> None:
        """Put the line before the message."""
        super().__init__(f"line {line}: {message}" if line else message)


class Property(Struct, frozen=True):
    """A property: its name in capitals, its parameters by name in capitals, and its raw value."""

    name: str
    parameters: Mapping[str, str]
    value: str
    line: int


class Component(Struct):
    """A component: what stands between BEGIN and END. Its name is in capitals."""

    name: str
    line: int
    properties: list[Property] = field(default_factory=list)
    components: list[Component] = field(default_factory=list)

    def all(self, name: str) -> list[Property]:
        """Return its properties of this name."""
        return [one for one in self.properties if one.name == name]

    def one(self, name: str) -> Property | None:
        """Return its only property of this name, None if it has none; CalendarMistake if it has several."""
        found = self.all(name)
        if len(found) > 1:
            raise CalendarMistake(f"{self.name} has a second {name}", found[1].line)
        return found[0] if found else None


def read_components(text: str, wanted: Collection[str], shown: Collection[str] = ()) -> list[Component]:
    """Return the outermost components of a file, with the properties whose names are `wanted` or `shown`.

    Properties that are only shown to people are no mistake: their values are cut, and one that can't be read
    is left out. Raises CalendarMistake for a file that is cut off, nested too deep, or no iCalendar file.
    """
    found: list[Component] = []
    open_ones: list[Component] = []
    count = 0
    for number, line in _unfolded(text):
        name, rest = _name(line, number)
        if name == "BEGIN":
            count += 1
            if count > _MOST_COMPONENTS:
                raise CalendarMistake(f"the file has more than {_MOST_COMPONENTS} components", number)
            if len(open_ones) == _DEEPEST:
                raise CalendarMistake(f"components are nested deeper than {_DEEPEST} levels", number)
            component = Component(rest[1:].strip().upper(), number)
            (open_ones[-1].components if open_ones else found).append(component)
            open_ones.append(component)
        elif name == "END":
            ended = rest[1:].strip().upper()
            if not open_ones or open_ones[-1].name != ended:
                expected = f"END:{open_ones[-1].name}" if open_ones else "BEGIN:VCALENDAR"
                raise CalendarMistake(f"END:{ended[:60]} stands where {expected} is expected", number)
            open_ones.pop()
        elif not open_ones:
            raise CalendarMistake(NO_CALENDAR, number)
        elif name in wanted:
            open_ones[-1].properties.append(_property(name, rest, number))
        elif name in shown:
            with suppress(CalendarMistake):
                open_ones[-1].properties.append(_property(name, rest[:_LONGEST_SHOWN], number))
    if open_ones:
        missing = open_ones[-1]
        raise CalendarMistake(
            f"END:{missing.name} is missing for the BEGIN:{missing.name} on this line: the file is cut off",
            missing.line,
        )
    return found


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Yield each content line with the number of its first line in the file."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(_BREAK.split(text), 1):
        if line[:1] in (" ", "\t") and parts:
            parts.append(line[1:])
            continue
        if parts:
            yield first, "".join(parts)
        parts, first = ([line], number) if line.strip() else ([], number)
    if parts:
        yield first, "".join(parts)


def _name(line: str, number: int) -> tuple[str, str]:
    """Return the name of a content line in capitals, and the rest, which begins with `;` or `:`."""
    for index, character in enumerate(line):
        if character in ":;":
            return line[:index].strip().upper(), line[index:]
    raise CalendarMistake(f"{line[:60]!r} is not a line of an iCalendar file: it has no colon", number)


def _property(name: str, rest: str, number: int) -> Property:
    if len(rest) > _LONGEST_VALUE:
        raise CalendarMistake(f"{name} is longer than {_LONGEST_VALUE} characters", number)
    quoted = False
    begin = 1
    parts: list[str] = []
    for index, character in enumerate(rest):
        if character == '"':
            quoted = not quoted
        elif character in ":;" and not quoted:
            if index:
                parts.append(rest[begin:index])
            begin = index + 1
            if character == ":":
                parameters = (part.partition("=")[::2] for part in parts)
                named = {key.strip().upper(): value.strip().strip('"') for key, value in parameters}
                return Property(name, named, rest[begin:], number)
    raise CalendarMistake(f"{name} has no value", number)
