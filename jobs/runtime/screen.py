"""The screen of a person: its size, its signs and its colours."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable

import click
from msgspec.structs import astuple

from reconciler.features.planning.line import Line
from reconciler.features.planning.signs import ASCII, BLOCKS
from reconciler.features.planning.text import Screen
from reconciler.report import safe

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
    """Print the lines to stdout; those with an alarm are red on a terminal that wants colours."""
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    encoding = sys.stdout.encoding or "utf-8"
    for line in lines:
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
