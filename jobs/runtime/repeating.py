"""Prints again what a command shows, as kubectl does with -w: in place on a terminal, else each change."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from datetime import timedelta

from msgspec import Struct

from jobs.runtime.documents import echo_form
from jobs.runtime.forms import for_programs
from jobs.runtime.screen import echo_lines
from jobs.runtime.terminal import echo
from jobs.runtime.unchanged import is_unchanged
from reconciler.calendar.values import format_duration
from reconciler.features.planning.line import Line
from reconciler.model.errors import NotFound, ReconcilerError
from reconciler.model.structs import replace
from reconciler.report.values import Document

SHARE = 4
"""A pause is at least so many times as long as the look before it, which may be at thousands of nodes."""

_HOME_AND_CLEAR = "\x1b[H\x1b[2J"


Text = str | tuple[Line, ...]
"""What a command prints: a text, or lines of which some may be red."""


class Shown(Struct, frozen=True):
    """What a command prints, in which form, and the document that it is made of."""

    text: Text
    output: str
    document: Document

    def echo(self) -> None:
        """Print it to stdout."""
        if isinstance(self.text, str):
            echo_form(self.text, self.output)
        else:
            echo_lines(self.text)


def print_again_and_again(
    look: Callable[[], Shown],
    every: timedelta,
    *,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Look and print until Ctrl-C, with a pause of `every` or longer; return 0 if nobody reads it any more.

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
                return 0
        sleep(max(every.total_seconds(), SHARE * (clock() - began)))


def _print(shown: Shown, printed: Document | None) -> Document:
    """Print in place on a terminal; else below what was printed before, if something has changed since.

    Returns the document of what was printed last.
    """
    if sys.stdout.isatty() and not for_programs(shown.output):
        sys.stdout.write(_HOME_AND_CLEAR)
        replace(shown, text=_cut(shown.text)).echo()
    elif printed is not None and is_unchanged(printed, shown.document):
        return printed
    else:
        if printed is not None and shown.output != "json":
            echo("---" if shown.output == "yaml" else "")
        shown.echo()
    sys.stdout.flush()
    return shown.document


def _cut(text: Text) -> Text:
    """Return the lines that the terminal has room for; the cursor takes the last one."""
    room = max(shutil.get_terminal_size().lines - 1, 2)
    lines = text.splitlines() if isinstance(text, str) else text
    if len(lines) <= room:
        return text
    rest = f"and {len(lines) - room + 1} more lines; a larger terminal shows them"
    if isinstance(text, str):
        return "".join(f"{line}\n" for line in (*text.splitlines()[: room - 1], rest))
    return (*text[: room - 1], Line(rest))
