"""Lines for a terminal: what it can show, and texts that fit into its columns."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from textwrap import wrap
from zoneinfo import ZoneInfo

from msgspec import Struct
from rich.cells import cell_len

from reconciler.calendar.values import in_zone
from reconciler.report import safe
from reconciler.report.ahead import clock_text, moment_text

NARROW = 80
"""Columns below which a case is not one row."""

_NARROWEST = 40
"""Columns below which a line is not made shorter."""


class Signs(Struct, frozen=True):
    """One column wide each. Letters and `!` are the same everywhere."""

    out: str
    span: str
    window: str
    freeze: str
    closed: str
    cut: str
    latest: str = "L"
    platform: str = "P"
    missed: str = "!"
    onwards: str = ">"
    unknown: str = "?"


BLOCKS = Signs(out="█", span="═", window="▒", freeze="x", closed="·", cut="…")
"""For a terminal with block characters."""

ASCII = Signs(out="#", span="=", window="+", freeze="x", closed=".", cut="~")
"""For every other terminal."""


class Screen(Struct, frozen=True):
    """What the text is for: so many columns, and lines if they are limited, with these signs."""

    columns: int = NARROW
    lines: int | None = None
    signs: Signs = BLOCKS


class Line(Struct, frozen=True):
    """A line without its end; `alarm` asks a terminal with colours to show it in red.

    One that stands `beside` a document for programs goes to stderr, so that the document stays as it is.
    """

    text: str = ""
    alarm: bool = False
    beside: bool = False


class Look(Struct, frozen=True):
    """From `now` on (UTC), in `zone`, `width` columns; `cut` stands for what has no room."""

    now: datetime
    zone: ZoneInfo
    width: int
    cut: str

    def moment(self, moment: datetime | None) -> str:
        """Return a moment in a few columns; None is `unknown`."""
        return moment_text(moment, self.now, self.zone)

    def line(self, text: str) -> str:
        """Return a text in one line, with its RFC 3339 moments in the zone."""
        return with_clocks([text], self.now, self.zone, named=False)[0]


def with_clocks(lines: Iterable[str], now: datetime, zone: ZoneInfo, *, named: bool = True) -> list[str]:
    """Return the lines without control characters; a moment on the day of `now` (aware) is a time of day.

    Moments are in `zone`, which is named at the first one of all lines, or with `named=False` nowhere.
    """
    shown = list(map(safe.line, lines))
    clock = partial(clock_text, now=now, zone=zone)
    return in_zone("\n".join(shown), zone, named=named, clock=clock).split("\n") if shown else []


def folded(line: str, width: int | None, indent: int | None = None) -> list[str]:
    """Return the line in lines of at most `width` columns (None: as it is); a longer word stays whole.

    `indent` is the column at which it goes on, by default two columns behind its beginning.
    """
    if width is None or cell_len(line) <= width:
        return [line]
    further = len(line) - len(line.lstrip()) + 2 if indent is None else indent
    return wrapped(line, max(width, _NARROWEST), further)


_SECOND = "\0"
"""The second column of a wide character; no text that is safe for a terminal has it."""


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Return the text in lines of at most `width` columns, the further ones indented; no word is broken.

    An empty text has no line.
    """
    if not text.isascii():
        text = "".join(each + _SECOND * (cell_len(each) - 1) for each in text)
    lines = wrap(text, width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_SECOND, "") for line in lines]


def shortened(text: str, width: int, mark: str, *, head: int | None = None) -> str:
    """Return the text in at most `width` columns, with `mark` for what is left out in the middle.

    `head` is how many columns of its beginning stay, by default half of them.
    """
    text = safe.line(text)
    if cell_len(text) <= width:
        return text
    room = max(width - cell_len(mark), 0)
    begin = _prefix(text, room // 2 if head is None else min(head, room))
    end = _prefix(text[::-1], room - cell_len(begin))[::-1]
    return f"{begin}{mark}{end}"


def padded(text: str, width: int) -> str:
    """Return the text with spaces behind it, up to so many columns."""
    return text + " " * max(width - cell_len(text), 0)


def short_names(names: Iterable[str], width: int, mark: str) -> dict[str, str]:
    """Return each name in at most `width` columns, so that as few of them as possible look the same."""
    known = list(dict.fromkeys(names))
    room = max(width - cell_len(mark), 0)
    heads = sorted(range(room + 1), key=lambda head: abs(head - room // 2))
    best: dict[str, str] = {}
    for head in heads:
        found = {name: shortened(name, width, mark, head=head) for name in known}
        if len(set(found.values())) > len(set(best.values())):
            best = found
        if len(set(best.values())) == len(known):
            break
    return best


def _prefix(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    taken = ""
    for character in text:
        if cell_len(taken) + cell_len(character) > width:
            break
        taken += character
    return taken
