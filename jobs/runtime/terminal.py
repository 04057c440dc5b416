"""What commands print for a person: text from outside never controls the terminal."""

from __future__ import annotations

import click

from reconciler.report import safe


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print the text to stdout, or to stderr; control characters become visible escapes."""
    click.echo(safe.lines(text), err=err, nl=nl)
