"""`reconciler check-config`: every mistake of a settings file at once, or what the settings mean."""

from __future__ import annotations

from pathlib import Path

import click

from jobs.options import SETTINGS_FILE
from jobs.runtime.terminal import echo
from reconciler.settings.explain import explain_settings
from reconciler.settings.load import load_settings


@click.command("check-config")
@click.argument("file", type=SETTINGS_FILE)
def command(file: Path) -> int:
    """Print all mistakes in a settings file, or what happens to each kind of event."""
    echo(explain_settings(load_settings(file), str(file)), nl=False)
    return 0
