"""`reconciler request`: writes and removes requests for maintenance on nodes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.by_hand import (
    ByHand,
    by_hand,
    check_nodes,
    check_prefix,
    read_by_hand,
    why_not,
    write_nodes,
)
from jobs.runtime.environment import Target
from jobs.runtime.looks import echo_lines
from jobs.runtime.output import echo, width
from jobs.runtime.outside import examined, reconciler_of
from jobs.runtime.settings_source import SettingsSource, settings_in_use
from reconciler.model.errors import ClusterError, NotFound, SettingsError
from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.model.selector import LabelSelector
from reconciler.model.writes import NodeWrite
from reconciler.report.document import Limit, limited, to_report
from reconciler.report.text import rows_as_text, shown
from reconciler.settings.schema import Mode, Settings
from reconciler.sources.request.settings import SECTION
from reconciler.sources.request.source import (
    KINDS,
    Request,
    RequestRefused,
    cancelled,
    describe,
    parse_kind,
    parse_not_before,
    requested,
)


class _KindName(click.ParamType[Kind]):
    name = "kind"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Kind:
        """Return the kind. Another text is a usage error that lists them all."""
        try:
            return parse_kind(str(value))
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param, "--kind") from error


class Asked(Struct, frozen=True):
    """What to write on nodes; `kind` None cancels. `not_before` is as it was typed."""

    kind: Kind | None
    not_before: str | None
    duration: timedelta | None
    id: str
    reason: str
    replace: bool

    def request(self, zone: tzinfo, now: datetime) -> Request | None:
        """Return the request, None to cancel; SettingsError for what can't be requested."""
        if self.kind is None:
            return None
        try:
            at = parse_not_before(self.not_before, zone, now) if self.not_before is not None else None
        except ValueError as error:
            raise SettingsError((f"--not-before: {error}",)) from error
        try:
            return Request(self.kind, at, self.duration, self.id, self.reason)
        except ValueError as error:
            raise SettingsError((str(error),)) from error


def _asked(
    kind: Kind | None,
    not_before: str | None,
    duration: timedelta | None,
    id: str | None,  # noqa: A002 - the option's name
    reason: str | None,
    replace: bool,
    cancel: bool,
) -> Asked:
    given = (kind, not_before, duration, id, reason, replace or None)
    if cancel and any(one is not None for one in given):
        raise click.UsageError(
            "--cancel removes the whole request; give no other option of the request with it"
        )
    if not cancel and kind is None:
        raise click.UsageError("give --kind, or --cancel")
    return Asked(kind, not_before, duration, id or "", reason or "", replace)


@click.command("request")
@options.nodes
@options.selector
@options.as_one(
    "asked",
    _asked,
    click.option(
        "--kind",
        type=_KindName(),
        metavar="|".join(KINDS),
        help="The kind of the event, in upper or lower case.",
    ),
    click.option(
        "--not-before",
        help="When it begins: 2h from now, a date and time in the time zone of the settings, or RFC 3339.  "
        "[default: as soon as the settings allow]",
    ),
    click.option("--duration", type=options.DURATION, help="How long it takes.  [default: unknown]"),
    click.option("--id", help="A name for it, such as a ticket's.  [default: none]"),
    click.option("--reason", help="The reason, shown in reports.  [default: none]"),
    click.option("--replace", is_flag=True, help="Overwrite a different request."),
    click.option("--cancel", is_flag=True, help="Remove the request, whatever it is."),
)
@options.optional_config
@options.cluster
def request(
    nodes: tuple[str, ...],
    selector: LabelSelector | None,
    asked: Asked,
    config: SettingsSource | None,
    target: Target,
) -> int:
    """Request maintenance of nodes, or cancel the request.

    Nothing is written unless it can be written to all of the nodes.
    """
    if bool(nodes) == (selector is not None):
        raise click.UsageError("name the nodes, or give --selector")
    now = datetime.now(UTC)
    policy = settings_in_use(config, target, now)
    settings = policy.settings
    wish = asked.request(settings.time_zone, now)
    if wish is not None and not SECTION.of(settings).enabled:
        raise SettingsError(("these settings ignore requests; set sources.requests.enabled: true",))
    with by_hand(target) as hand:
        reconciler = reconciler_of(hand.connection, target, settings)
        echo_lines(policy.first_lines(reconciler=reconciler, now=hand.now()))
        found = _chosen(selector or nodes, hand.nodes(settings.keys.prefix))
        if policy.defaults:
            check_prefix(found, policy)

        def decided(node: Node) -> NodeWrite | RequestRefused | None:
            if wish is None:
                return cancelled(node, settings)
            return requested(node, wish, settings, replace=asked.replace)

        if _is_refused(found, decided, settings):
            return 1
        done = _write_all(found, decided, wish, settings, hand)
        if not policy.defaults:
            _print_next(tuple(node.name for node in found), hand, settings)
        return 0 if done else 1


def _chosen(which: tuple[str, ...] | LabelSelector, nodes: dict[str, Node]) -> list[Node]:
    if isinstance(which, LabelSelector):
        found = [node for node in nodes.values() if which.matches(node.labels)]
        if not found:
            raise NotFound(f"no node matches {which}", status=404)
        return found
    check_nodes(which, nodes.keys())
    return [nodes[name] for name in dict.fromkeys(which)]


Decided = Callable[[Node], NodeWrite | RequestRefused | None]


def _print_refusal(node: str, refused: RequestRefused, settings: Settings) -> None:
    # A request of somebody else may have lines of its own; here it is one line.
    echo(shown([f"{node}: {refused.because}"], settings.time_zone, None), err=True, nl=False)


def _is_refused(nodes: list[Node], decided: Decided, settings: Settings) -> bool:
    """Whether the request is refused on any of the nodes; print every refusal."""
    refusals = [(node.name, write) for node in nodes if isinstance(write := decided(node), RequestRefused)]
    for node, refused in refusals:
        _print_refusal(node, refused, settings)
    if refusals:
        echo("nothing was written", err=True)
    return bool(refusals)


def _write_all(
    nodes: list[Node], decided: Decided, wish: Request | None, settings: Settings, hand: ByHand
) -> bool:
    """Write to each node, and print each result; return whether all nodes are as wanted."""
    last: dict[str, NodeWrite | RequestRefused | None] = {}
    failed = False

    def decide(node: Node) -> NodeWrite | None:
        last[node.name] = write = decided(node)
        return None if isinstance(write, RequestRefused) else write

    for node, problem in write_nodes(hand.cluster, nodes, read_by_hand(settings.keys.prefix), decide):
        write = last[node.name]
        if isinstance(write, RequestRefused):
            # Somebody was faster.
            failed = True
            _print_refusal(node.name, write, settings)
        elif write is None:
            echo(f"{node.name}: {'has no request' if wish is None else 'has this request already'}")
        elif problem:
            failed = True
            echo(f"{node.name}: {problem}", err=True)
        else:
            done = "request removed" if wish is None else f"requested: {describe(wish.text)}"
            echo(shown([f"{node.name}: {done}"], settings.time_zone, width()), nl=False)
    return not failed


def _print_next(names: tuple[str, ...], hand: ByHand, settings: Settings) -> None:
    """Print what a pass would do about the nodes now. Nothing depends on it, so it may fail."""
    try:
        plan = examined(hand.connection, hand.target, settings).plan
    except ClusterError as error:
        echo(f"warning: what a pass does next is not known ({why_not(error)})", err=True)
        return
    report = limited(to_report(plan, rehearsed=True), Limit(names))
    only = ", which writes nothing" if settings.mode is Mode.OBSERVE else ""
    echo(f"\nWhat a pass in mode {settings.mode}{only} would do now:")
    echo(rows_as_text(report, width()), nl=False)
    if report.filter is not None and report.filter.quiet:
        echo(f"\nnothing about {', '.join(report.filter.quiet)}")
