"""What commands print for a person: text from outside never controls the terminal."""

from __future__ import annotations

import shutil
import sys

import click

from jobs.program import in_own_words
from reconciler.report import safe


def width(output: str = "text") -> int | None:
    """Return the number of columns to fold lines at, None if stdout is no terminal or `output` is wide."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() and output != "wide" else None


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print the text to stdout, or to stderr; control characters become visible escapes.

    Commands of the program stand in it as the person who reads it types them.
    """
    click.echo(safe.lines(in_own_words(text)), err=err, nl=nl)
