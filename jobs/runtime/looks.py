"""Looks at a cluster that repeat until Ctrl-C."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta

import click
from msgspec import Struct
from msgspec.structs import astuple

from jobs.runtime.output import echo, echo_form, for_programs
from reconciler.calendar.values import format_duration
from reconciler.model.errors import NotFound, ReconcilerError
from reconciler.model.limits import count_of
from reconciler.model.moments import from_text
from reconciler.model.values import replace
from reconciler.report import safe
from reconciler.report.lines import ASCII, BLOCKS, Line, Screen
from reconciler.report.values import Document

_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""What Python sets `LC_CTYPE` to in the locale C."""


def screen(*, everything: bool = False) -> Screen:
    """Return what stdout is: without a terminal, or with `everything`, its lines have no limit."""
    size = shutil.get_terminal_size()
    limited = sys.stdout.isatty() and not everything
    # The prompt needs the last line.
    lines = max(size.lines - 1, 1) if limited else None
    return Screen(size.columns, lines, BLOCKS if _shows_blocks() else ASCII)


def echo_lines(lines: Iterable[Line]) -> None:
    """Print the lines, those with an alarm in red on a terminal that wants colours.

    They go to stdout, and to stderr where they stand beside a document for programs.
    """
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    encoding = sys.stdout.encoding or "utf-8"
    for line in lines:
        if line.beside:
            echo(line.text, err=True)
            continue
        text = safe.line(line.text).encode(encoding, "backslashreplace").decode(encoding)
        click.echo(click.style(text, fg="red") if coloured and line.alarm else text, color=coloured)


def _shows_blocks() -> bool:
    """Whether stdout, by its encoding and the locale, shows block characters."""
    given = os.environ
    locale = given.get("LC_ALL") or given.get("LC_CTYPE") or given.get("LANG") or ""
    # Python itself replaces the locale C in LC_CTYPE, so LANG says what the person has chosen.
    if locale in _COERCED and not given.get("LC_ALL"):
        locale = given.get("LANG") or ""
    if locale in ("C", "POSIX"):
        return False
    try:
        "".join(astuple(BLOCKS)).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


CUT = timedelta(seconds=1)
"""Moments in documents are cut to whole seconds, each for itself."""

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")


def is_unchanged(before: Document, after: Document) -> bool:
    """Whether two documents say the same, each about the moment `at` (RFC 3339) of its own look.

    A moment that has moved with `at`, such as the planned start of a drain that may start now, is no change.
    Neither is when the settings were loaded: each look loads them. Nor is the last pass of the reconciler.
    """
    moved = from_text(after["at"]) - from_text(before["at"])
    return _same(_timeless(before), _timeless(after), moved)


def _timeless(document: Document) -> Document:
    settings = document["settings"]
    return {
        **document,
        "settings": settings and {**settings, "loadedAt": None, "ageSeconds": None},
        "reconciler": {**document.get("reconciler", {}), "lastPass": None},
    }


def _same(before: object, after: object, moved: timedelta) -> bool:
    if before == after:
        return True
    if isinstance(before, str) and isinstance(after, str):
        # Of the parts of a text, every second one is a moment.
        parts, later = _MOMENT.split(before), _MOMENT.split(after)
        return parts[::2] == later[::2] and all(
            moment == now or _moved(moment, now, moved)
            for moment, now in zip(parts[1::2], later[1::2], strict=True)
        )
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(_same(before[key], after[key], moved) for key in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(
            _same(one, other, moved) for one, other in zip(before, after, strict=True)
        )
    return False


def _moved(before: str, after: str, moved: timedelta) -> bool:
    try:
        return abs(from_text(after) - from_text(before) - moved) <= CUT
    except ValueError:
        # A text from outside may only look like a moment.
        return False


SHARE = 4
"""A pause is at least so many times as long as the look before it, which may be at thousands of nodes."""

_HOME_AND_CLEAR = "\x1b[H\x1b[2J"


Text = str | tuple[Line, ...]
"""What a command prints: a text, or lines of which some may be red."""


class Shown(Struct, frozen=True):
    """What a command prints, in which form, and the document that it is made of.

    `first` are lines above the text. `exit_code` is that of a command that ends with this.
    """

    text: Text
    output: str
    document: Document
    first: tuple[Line, ...] = ()
    exit_code: int = 0

    def echo(self) -> None:
        """Print it to stdout, and to stderr what stands beside it."""
        echo_lines(self.first)
        if isinstance(self.text, str):
            echo_form(self.text, self.output)
        else:
            echo_lines(self.text)


def show(look: Callable[[], Shown], every: timedelta | None) -> int:
    """Look and print once, or again after each pause of `every` until Ctrl-C; raises what a look raises.

    Return the exit code of what was shown last.
    """
    if every is not None:
        return print_again_and_again(look, every)
    shown = look()
    shown.echo()
    return shown.exit_code


def print_again_and_again(
    look: Callable[[], Shown],
    every: timedelta,
    *,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Look and print until Ctrl-C, with a pause of `every` or longer; return if nobody reads it any more.

    `sleep` and `clock` are in seconds. Raises what the first look raises, and NotFound at any time. Other
    errors are printed, because the API server may come back.
    """
    printed: Document | None = None
    while True:
        began = clock()
        try:
            shown = look()
        except NotFound:
            raise
        except ReconcilerError as error:
            if printed is None:
                raise
            echo(f"{error}; the next look is in {format_duration(every)}", err=True)
        else:
            try:
                printed = _print(shown, printed)
            except BrokenPipeError:
                # As Python's documentation says: the interpreter flushes stdout once more at its end.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return shown.exit_code
        sleep(max(every.total_seconds(), SHARE * (clock() - began)))


def _print(shown: Shown, printed: Document | None) -> Document:
    """Print in place on a terminal; else below what was printed before, if something has changed since.

    Returns the document of what was printed last.
    """
    if sys.stdout.isatty() and not for_programs(shown.output):
        sys.stdout.write(_HOME_AND_CLEAR)
        replace(shown, text=_cut(shown.text, len(shown.first))).echo()
    elif printed is not None and is_unchanged(printed, shown.document):
        return printed
    else:
        if printed is not None and shown.output != "json":
            echo("---" if shown.output == "yaml" else "")
        shown.echo()
    sys.stdout.flush()
    return shown.document


def _cut(text: Text, above: int) -> Text:
    """Return the lines that the terminal has room for below others; the cursor takes the last one."""
    room = max(shutil.get_terminal_size().lines - 1 - above, 2)
    lines = text.splitlines() if isinstance(text, str) else text
    if len(lines) <= room:
        return text
    rest = f"and {count_of(len(lines) - room + 1, 'more line')}; a larger terminal shows them"
    if isinstance(text, str):
        return "".join(f"{line}\n" for line in (*text.splitlines()[: room - 1], rest))
    return (*text[: room - 1], Line(rest))
