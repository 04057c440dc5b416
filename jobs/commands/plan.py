"""`reconciler plan`: what will start when, as a table and a chart, or as JSON."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import click

from jobs import options
from jobs.runtime.environment import Target
from jobs.runtime.forms import echo_for_programs, for_programs
from jobs.runtime.outside import Wiring
from jobs.runtime.screen import echo_lines, screen
from jobs.runtime.settings_source import SettingsSource, settings_from
from reconciler.calendar.values import format_duration
from reconciler.clients.kubernetes.connection import Connection
from reconciler.report.ahead.cases import LONGEST, SHORTEST, PlanAhead, plan_ahead
from reconciler.report.ahead.document import ahead_document
from reconciler.report.ahead.text import as_lines
from reconciler.report.document import as_json
from reconciler.run import examine
from reconciler.settings.load import parse_settings


def _covered(ctx: click.Context, param: click.Parameter, value: timedelta) -> timedelta:
    """Return the duration; one that is too short or too long is a usage error."""
    if SHORTEST <= value <= LONGEST:
        return value
    limits = f"write {format_duration(SHORTEST)} to {format_duration(LONGEST)}, such as 7d"
    raise click.BadParameter(f"{format_duration(value)} can't be shown; {limits}", ctx, param)


@click.command("plan")
@options.optional_config
@options.cluster
@click.option(
    "--until",
    type=options.DURATION,
    default="7d",
    show_default=True,
    callback=_covered,
    help="How far to look ahead, from 1h to 90d.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Print every case, also if the screen has fewer lines."
)
@options.output
def command(
    config: SettingsSource | None, target: Target, until: timedelta, everything: bool, output: str
) -> int:
    """Print what will start when, as a table and a chart. It only reads the cluster."""
    ahead = look_ahead(config, target, until)
    if for_programs(output):
        echo_for_programs(as_json(ahead_document(ahead)), output)
    else:
        echo_lines(as_lines(ahead, screen(everything=everything or output == "wide")))
    return 0


def look_ahead(config: SettingsSource | None, target: Target, until: timedelta) -> PlanAhead:
    """Return what will start from now until then; the cluster is only read.

    Without settings, the defaults apply, and a note says so.
    """
    now = datetime.now(UTC)
    settings = parse_settings("", "") if config is None else settings_from(config, target, now)
    connection = Connection(target.kubeconfig, target.context)
    try:
        found = examine(Wiring(connection, target).to_read(settings), settings, now)
    finally:
        connection.close()
    plan = found.plan
    if config is None:
        plan = replace(plan, notes=(options.WITHOUT_CONFIG, *plan.notes))
    labels = {node.name: node.labels for node in found.snapshot.nodes}
    calendar = settings.with_calendars(found.snapshot.for_settings.calendars).calendar
    return plan_ahead(plan, labels, calendar, now + until)
