"""`reconciler windows`: whether a drain may start at a moment, the next openings, and the next fortnight."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click

from jobs import options
from jobs.runtime.environment import Target
from jobs.runtime.fortnight import fortnight
from jobs.runtime.looks import echo_lines, screen
from jobs.runtime.output import echo, echo_for_programs, for_programs
from jobs.runtime.settings_source import SettingsInUse, SettingsSource, settings_in_use, with_calendars
from reconciler.model.errors import SettingsError
from reconciler.model.values import replace
from reconciler.report.lines import Line, Look
from reconciler.settings.explain import parse_at, windows_as_data, windows_as_text


@click.command("windows")
@click.argument("config", metavar=f"[{options.SOURCE_NAME}]", type=options.SETTINGS_SOURCE, required=False)
@click.option(
    "--at", help="A moment. Without an offset, it is in the time zone of the settings.  [default: now]"
)
@click.option(
    "--label", "labels", multiple=True, help="A label of the node, as key=value. Repeat it for more labels."
)
@options.cluster
@options.output
def command(
    config: SettingsSource | None, target: Target, at: str | None, labels: tuple[str, ...], output: str
) -> int:
    """Print whether a drain may start at a moment, why, the next openings, and a chart.

    A column of the chart is open if a drain may start in it.
    """
    now = datetime.now(UTC)
    policy = settings_in_use(config, target, now)
    settings, notes = with_calendars(policy.settings, target, now)
    for note in notes:
        echo(f"warning: {note}", err=True)
    return windows(replace(policy, settings=settings), at=at, labels=labels, output=output)


def windows(policy: SettingsInUse, *, at: str | None, labels: tuple[str, ...], output: str) -> int:
    """Print whether a drain may start at a moment on a node with these labels, and the next openings."""
    settings = policy.settings
    try:
        moment = parse_at(at, settings) if at else datetime.now(UTC)
    except ValueError as error:
        raise SettingsError((f"--at: {error}",)) from error
    chosen = dict(label.partition("=")[::2] for label in labels) if labels else None
    if for_programs(output):
        document = policy.named_in(windows_as_data(settings, moment, chosen))
        policy.first_line(output)
        echo_for_programs(json.dumps(document, indent=2), output)
    else:
        for line in policy.first_line(output):
            echo(line)
        echo(windows_as_text(settings, moment, chosen), nl=False)
        seen = screen(everything=True)
        look = Look(moment, settings.time_zone, seen.columns, seen.signs.cut)
        echo_lines([Line(), *fortnight(settings.calendar, chosen, look, seen.signs)])
    return 0
