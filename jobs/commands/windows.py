"""`reconciler windows`: whether a drain may start at a moment, and the next openings."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import click

from jobs import options
from reconciler.errors import SettingsError
from reconciler.settings.explain import parse_at, windows_as_data, windows_as_text
from reconciler.settings.load import load_settings


@click.command("windows")
@click.argument("file", type=options.SETTINGS_FILE)
@click.option("--at", help="A moment, in the settings' zone where it names none.  [default: now]")
@click.option(
    "--label", "labels", multiple=True, help="key=value of the node in question; again for more of them."
)
@options.output
def command(file: Path, at: str | None, labels: tuple[str, ...], output: str) -> int:
    """Say whether a drain may start at a moment, why, and when windows open next."""
    return windows(file, at=at, labels=labels, output=output)


def windows(file: Path, *, at: str | None, labels: tuple[str, ...], output: str) -> int:
    """Print whether a drain may start at a moment on a node with these labels, and the next openings."""
    settings = load_settings(file)
    try:
        moment = parse_at(at, settings) if at else datetime.now(UTC)
    except ValueError as error:
        raise SettingsError((f"--at: {error}",)) from error
    chosen = dict(label.partition("=")[::2] for label in labels) if labels else None
    if output == "json":
        click.echo(json.dumps(windows_as_data(settings, moment, chosen), indent=2))
    else:
        click.echo(windows_as_text(settings, moment, chosen), nl=False)
    return 0
