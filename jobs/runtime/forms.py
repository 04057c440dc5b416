"""The forms of output for programs: a document as JSON, or the same document as YAML."""

from __future__ import annotations

import click

from reconciler.report import safe


def for_programs(output: str) -> bool:
    """Whether this form of output is read by programs: json or yaml. People read the other forms."""
    return output in ("json", "yaml")


def machine_text(json_text: str, output: str) -> str:
    """Return the JSON text of a document in the form json or yaml, with one line's end."""
    if output == "json":
        return f"{json_text.rstrip()}\n"
    # Few people want YAML, and its import takes a tenth of a second.
    from jobs.runtime.yaml_document import as_yaml

    return as_yaml(json_text)


def echo_for_programs(json_text: str, output: str) -> None:
    """Print the JSON text of a document to stdout in the form json or yaml."""
    click.echo(safe.lines(machine_text(json_text, output)), nl=False)
