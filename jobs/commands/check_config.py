"""`reconciler check-config`: every mistake of a settings file at once, or what the settings mean."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from jobs import options
from jobs.runtime.environment import Target
from jobs.runtime.settings_source import SettingsSource, settings_from
from jobs.runtime.terminal import echo
from reconciler.settings.explain import explain_settings
from reconciler.settings.warnings import warnings


@click.command("check-config")
@click.argument("config", metavar=options.SOURCE_NAME, type=options.SETTINGS_SOURCE)
@click.option("--strict", is_flag=True, help="Exit with 1 if there are warnings.")
@options.access
def command(config: SettingsSource, strict: bool, target: Target) -> int:
    """Print all mistakes in a settings file, or what happens to each kind of event.

    Warnings are about valid settings that probably do something else than meant. They go to stderr.
    """
    now = datetime.now(UTC)
    settings = settings_from(config, target, now)
    echo(explain_settings(settings, str(config)), nl=False)
    found = warnings(settings, now)
    for warning in found:
        echo(f"warning: {config}: {warning}", err=True)
    return int(strict and bool(found))
