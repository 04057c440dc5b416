"""Prints a document in the form that a person asks for."""

from __future__ import annotations

from collections.abc import Callable

import click

from jobs.runtime.forms import for_programs, machine_text
from jobs.runtime.terminal import echo, width
from reconciler.report import safe
from reconciler.report.document import as_json
from reconciler.report.values import Document

AsText = Callable[[Document, int | None], str]


def in_form(document: Document, output: str, text: AsText, columns: int | None) -> str:
    """Return the document as JSON or YAML, or as text with so many columns (None: any number)."""
    return machine_text(as_json(document), output) if for_programs(output) else text(document, columns)


def echo_form(text: str, output: str) -> None:
    """Print to stdout what is in this form; what programs read stays as it is."""
    if for_programs(output):
        click.echo(safe.lines(text), nl=False)
    else:
        echo(text, nl=False)


def echo_document(document: Document, output: str, text: AsText) -> None:
    """Print the document to stdout as JSON or YAML, or as text with the columns of the terminal."""
    echo_form(in_form(document, output, text, width(output)), output)
