"""Prints again what a command shows, as kubectl does with -w: in place on a terminal, else each change."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from jobs.runtime.documents import echo_form
from jobs.runtime.forms import for_programs
from jobs.runtime.terminal import echo
from reconciler.calendar.values import format_duration
from reconciler.errors import NotFound, ReconcilerError
from reconciler.report.values import Document

SHARE = 4
"""A pause is at least so many times as long as the look before it, which may be at thousands of nodes."""

_HOME_AND_CLEAR = "\x1b[H\x1b[2J"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command prints, in which form, and what of it counts as a change."""

    text: str
    output: str
    changes: str

    @classmethod
    def of(cls, document: Document, text: str, output: str) -> Shown:
        """Return the text of a document; its moment and the age of its settings are no change."""
        settings = document["settings"]
        timeless = {**document, "at": None, "settings": settings and {**settings, "ageSeconds": None}}
        return cls(text, output, json.dumps(timeless))


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
    before: str | None = None
    while True:
        began = clock()
        try:
            shown = look()
        except NotFound:
            raise
        except ReconcilerError as error:
            if before is None:
                raise
            echo(f"{error}; the next look is in {format_duration(every)}", err=True)
        else:
            try:
                _print(shown, before)
            except BrokenPipeError:
                # As Python's documentation says: the interpreter flushes stdout once more at its end.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            before = shown.changes
        sleep(max(every.total_seconds(), SHARE * (clock() - began)))


def _print(shown: Shown, before: str | None) -> None:
    """Print the text in place on a terminal; else below the one before, if something has changed."""
    if sys.stdout.isatty() and not for_programs(shown.output):
        sys.stdout.write(_HOME_AND_CLEAR)
        echo(_cut(shown.text), nl=False)
    elif shown.changes != before:
        if before is not None and shown.output != "json":
            echo("---" if shown.output == "yaml" else "")
        echo_form(shown.text, shown.output)
    sys.stdout.flush()


def _cut(text: str) -> str:
    """Return the lines that the terminal has room for; the cursor takes the last one."""
    room = max(shutil.get_terminal_size().lines - 1, 2)
    lines = text.splitlines()
    if len(lines) <= room:
        return text
    left = len(lines) - room + 1
    return "".join(
        f"{line}\n" for line in [*lines[: room - 1], f"and {left} more lines; a larger terminal shows them"]
    )
