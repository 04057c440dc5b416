"""`reconciler plan`: what will start when, as a table and a chart, or as JSON."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.by_hand import whole_names
from jobs.runtime.environment import Target, connected
from jobs.runtime.looks import Shown, screen, show
from jobs.runtime.output import for_programs, machine_text
from jobs.runtime.outside import examined
from jobs.runtime.settings_source import SettingsSource, settings_to_show
from reconciler.calendar.values import format_duration
from reconciler.features.planning.text import ahead_document, as_lines
from reconciler.kubernetes.cluster import Cluster
from reconciler.model.errors import NotFound
from reconciler.model.explanation import NamespacePods
from reconciler.model.limits import excerpt
from reconciler.model.node import Node, Wanted
from reconciler.model.plan import Plan
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.report.ahead import PlanAhead, plan_ahead
from reconciler.report.document import as_json
from reconciler.report.of_namespace import pods_of
from reconciler.settings.schema import Settings
from reconciler.starts.budget import pool_of

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


class _PlanOutput(Struct, frozen=True):
    """In which form the plan is printed, whether with every case, and how often (None: once)."""

    everything: bool
    output: str
    every: timedelta | None


class PlanFilter(Struct, frozen=True):
    """Which nodes a plan shows: those with these names, of this pool and with these labels (none: all).

    With a `namespace`, it shows its pods, and the nodes that run them.
    """

    nodes: tuple[str, ...] = ()
    pool: str | None = None
    selector: LabelSelector | None = None
    namespace: str | None = None

    def of(
        self, plan: Plan, fleet: Collection[Node], cluster: Cluster, pods: NamespacePods | None
    ) -> tuple[Plan, NamespacePods | None]:
        """Return the plan and the pods of the namespace, of these nodes only.

        `pods` are those on all nodes. Raises NotFound if there are no such nodes.
        """
        known = {node.name for node in fleet}
        names = set(whole_names(self.nodes, known))
        shown, words = names or known, ["nodes named " + ", ".join(sorted(names))] if names else []
        if self.pool is not None:
            shown = shown & {node.name for node in fleet if pool_of(node) == self.pool}
            words.append(f"nodes of the pool {excerpt(self.pool)}")
        if self.selector is not None:
            # A pass reads only the labels that the settings name.
            keys = frozenset(requirement.key for requirement in self.selector.requirements)
            read = cluster.nodes(Wanted(frozenset(), "", labels=keys))
            shown = shown & {node.name for node in read if self.selector.matches(node.labels)}
            words.append(f"nodes with {self.selector}")
        if pods is not None:
            pods = replace(pods, moves=tuple(move for move in pods.moves if move.node in shown))
            shown = set(pods.nodes)
            words.append(f"nodes that run pods of the namespace {excerpt(pods.namespace)}")
        if not words:
            return plan, pods
        if not shown:
            raise NotFound(f"no node matches {' and '.join(words)}", status=404)
        note = f"only {' and '.join(words)} are shown"
        rows = tuple(node for node in plan.nodes if node.node in shown)
        return replace(plan, nodes=rows, notes=(*plan.notes, note)), pods


@click.command("plan")
@options.as_one("chosen", PlanFilter, options.nodes, options.pool, options.selector, options.namespace)
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
@options.as_one(
    "way",
    _PlanOutput,
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
    chosen: PlanFilter, config: SettingsSource | None, target: Target, until: timedelta, way: _PlanOutput
) -> int:
    """Print what will start when, as a table and a chart.

    It only reads the cluster. NODES limit the rows. The end of a node's name is enough if one node has it,
    such as 000001.
    `plan -n shop` says which pods of the namespace shop move, when, and what keeps the others.
    """

    def look() -> Shown:
        policy = settings_to_show(config, target, datetime.now(UTC))
        ahead = look_ahead(policy.settings, target, until, chosen)
        document = policy.named_in(ahead_document(ahead))
        first = policy.first_lines(way.output, ahead.plan.reconciler, ahead.plan.now)
        if for_programs(way.output):
            text = machine_text(as_json(document), way.output)
            return Shown(text, way.output, document, first, policy.exit_code)
        room = screen(everything=way.everything or way.output == "wide")
        if room.lines is not None:
            room = replace(room, lines=max(room.lines - len(first), 1))
        return Shown((*first, *as_lines(ahead, room)), way.output, document, exit_code=policy.exit_code)

    return show(look, way.every)


def look_ahead(
    settings: Settings, target: Target, until: timedelta, chosen: PlanFilter | None = None
) -> PlanAhead:
    """Return what will start from now until then, on these nodes (None: all); the cluster is only read.

    Raises NotFound if there are none.
    """
    with connected(target) as connection:
        chosen = chosen or PlanFilter()
        examination = examined(connection, target, settings, namespace=chosen.namespace)
        pods = None
        if chosen.namespace is not None:
            events = assess(examination.snapshot, examination.plan.now)
            pods = pods_of(examination, events, chosen.namespace, settings)
        cluster = Cluster(connection, namespace=target.namespace)
        plan, pods = chosen.of(examination.plan, examination.snapshot.nodes, cluster, pods)
    labels = {node.name: node.labels for node in examination.snapshot.nodes}
    calendar = settings.with_calendars(examination.snapshot.for_settings.calendars).calendar
    return replace(plan_ahead(plan, labels, calendar, plan.now + until), pods=pods)
