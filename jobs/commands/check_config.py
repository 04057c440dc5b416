"""`reconciler check-config`: every mistake of a settings file at once, or what the settings mean."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from jobs import options
from jobs.runtime.environment import Target
from jobs.runtime.settings_source import SettingsSource, settings_from
from jobs.runtime.terminal import echo
from reconciler.settings.explain import explain_settings


@click.command("check-config")
@click.argument("config", metavar=options.SOURCE_NAME, type=options.SETTINGS_SOURCE)
@options.access
def command(config: SettingsSource, target: Target) -> int:
    """Print all mistakes in a settings file, or what happens to each kind of event."""
    echo(explain_settings(settings_from(config, target, datetime.now(UTC)), str(config)), nl=False)
    return 0
