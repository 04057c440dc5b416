"""`reconciler plan`: what will start when, as a table and a chart, or as JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.environment import Target, connected
from jobs.runtime.looks import Shown, screen, show
from jobs.runtime.output import for_programs, machine_text
from jobs.runtime.outside import examined
from jobs.runtime.settings_source import SettingsInUse, SettingsSource, settings_to_show
from reconciler.calendar.values import format_duration
from reconciler.features.planning.text import ahead_document, as_lines
from reconciler.kubernetes.cluster import Cluster
from reconciler.model.errors import NotFound
from reconciler.model.node import Wanted
from reconciler.model.plan import Plan
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.report.ahead import PlanAhead, plan_ahead
from reconciler.report.document import as_json
from reconciler.settings.schema import Settings

SHORTEST = timedelta(hours=1)
"""The shortest time that a look ahead covers."""

LONGEST = timedelta(days=90)
"""The longest time that a look ahead covers."""


def _covered(ctx: click.Context, param: click.Parameter, value: timedelta) -> timedelta:
    """Return the duration; one that is too short or too long is a usage error."""
    if SHORTEST <= value <= LONGEST:
        return value
    limits = f"write {format_duration(SHORTEST)} to {format_duration(LONGEST)}, such as 7d"
    raise click.BadParameter(f"{format_duration(value)} can't be shown; {limits}", ctx, param)


class _Way(Struct, frozen=True):
    """In which form the plan is printed, whether with every case, and how often (None: once)."""

    everything: bool
    output: str
    every: timedelta | None


@click.command("plan")
@options.optional_config
@options.cluster
@click.option(
    "--until",
    type=options.DURATION,
    default="7d",
    show_default=True,
    callback=_covered,
    help="How far to look ahead, from 1h to 90d. Later cases are only counted.",
)
@options.selector
@options.as_one(
    "way",
    _Way,
    click.option(
        "--all",
        "everything",
        is_flag=True,
        help="Print every case, not only the most urgent that a terminal has lines for.",
    ),
    options.output,
    options.watch,
)
def plan(
    config: SettingsSource | None, target: Target, until: timedelta, selector: LabelSelector | None, way: _Way
) -> int:
    """Print what will start when, as a table and a chart. It only reads the cluster."""

    def look() -> Shown:
        policy = settings_to_show(config, target, datetime.now(UTC))
        shown = _shown(look_ahead(policy.settings, target, until, selector), policy, way)
        return replace(shown, exit_code=policy.exit_code)

    return show(look, way.every)


def _shown(ahead: PlanAhead, policy: SettingsInUse, way: _Way) -> Shown:
    document = policy.named_in(ahead_document(ahead))
    first = policy.first_lines(way.output, ahead.plan.reconciler, ahead.plan.now)
    if for_programs(way.output):
        return Shown(machine_text(as_json(document), way.output), way.output, document)
    room = screen(everything=way.everything or way.output == "wide")
    if room.lines is not None:
        room = replace(room, lines=max(room.lines - len(first), 1))
    return Shown((*first, *as_lines(ahead, room)), way.output, document)


def look_ahead(
    settings: Settings, target: Target, until: timedelta, selector: LabelSelector | None = None
) -> PlanAhead:
    """Return what will start from now until then, on the nodes with these labels; the cluster is only read.

    Raises NotFound if no node has the labels.
    """
    with connected(target) as connection:
        examination = examined(connection, target, settings)
        cluster = Cluster(connection, namespace=target.namespace)
        plan = examination.plan if selector is None else _of_nodes(examination.plan, selector, cluster)
    labels = {node.name: node.labels for node in examination.snapshot.nodes}
    calendar = settings.with_calendars(examination.snapshot.for_settings.calendars).calendar
    return plan_ahead(plan, labels, calendar, plan.now + until)


def _of_nodes(plan: Plan, selector: LabelSelector, cluster: Cluster) -> Plan:
    # A pass reads only the labels that the settings name.
    wanted = Wanted(
        frozenset(), "", labels=frozenset(requirement.key for requirement in selector.requirements)
    )
    names = {node.name for node in cluster.nodes(wanted) if selector.matches(node.labels)}
    if not names:
        raise NotFound(f"no node matches {selector}", status=404)
    nodes = tuple(node for node in plan.nodes if node.node in names)
    return replace(plan, nodes=nodes, notes=(*plan.notes, f"only nodes with {selector} are shown"))
