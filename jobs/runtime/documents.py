"""Prints a document in the form that a person asks for."""

from __future__ import annotations

from collections.abc import Callable

from jobs.runtime.forms import echo_for_programs, for_programs
from jobs.runtime.terminal import echo, width
from reconciler.report.document import as_json
from reconciler.report.values import Document


def echo_document(document: Document, output: str, as_text: Callable[[Document, int | None], str]) -> None:
    """Print the document to stdout as JSON or YAML, or as text with the columns of the terminal."""
    if for_programs(output):
        echo_for_programs(as_json(document), output)
    else:
        echo(as_text(document, width(output)), nl=False)
