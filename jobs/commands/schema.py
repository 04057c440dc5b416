"""`reconciler schema`: the JSON Schema of the settings file."""

from __future__ import annotations

import json

import click

from reconciler.settings.reference import json_schema


@click.command("schema")
def command() -> int:
    """Print the JSON Schema of the settings file, for editors."""
    click.echo(json.dumps(json_schema(), indent=2))
    return 0
