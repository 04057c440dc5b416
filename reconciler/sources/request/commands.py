"""`reconciler request`: writes and removes requests for maintenance on nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.by_hand import (
    ByHand,
    Said,
    arguments_for,
    by_hand,
    check_nodes,
    check_prefix,
    echo_each,
    echo_means,
    read_by_hand,
    why_not,
    words_for,
    write_nodes,
)
from jobs.runtime.environment import Target
from jobs.runtime.looks import echo_lines
from jobs.runtime.output import echo, width
from jobs.runtime.outside import examined, reconciler_of
from jobs.runtime.settings_source import SettingsSource, settings_in_use
from reconciler.model.errors import ClusterError, NotFound, SettingsError
from reconciler.model.event import Kind
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace as changed
from reconciler.model.writes import NodeWrite
from reconciler.report.document import Limit, limited, to_report
from reconciler.report.text import rows_as_text
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
    removed,
    requested,
)

_ROWS = 3
"""Nodes for which a request also prints what a pass would do now."""


class _KindName(click.ParamType[Kind]):
    name = "kind"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Kind:
        """Return the kind. Another text is a usage error that lists them all."""
        try:
            return parse_kind(str(value))
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param, "--kind") from error


class RequestOptions(Struct, frozen=True):
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
            return Request(self.kind, at, self.duration, self.id, self.reason, at=now.replace(microsecond=0))
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
) -> RequestOptions:
    given = (kind, not_before, duration, id, reason, replace or None)
    if cancel and any(one is not None for one in given):
        raise click.UsageError(
            "--cancel removes the whole request; give no other option of the request with it"
        )
    if not cancel and kind is None:
        raise click.UsageError("give --kind, or --cancel")
    return RequestOptions(kind, not_before, duration, id or "", reason or "", replace)


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
    asked: RequestOptions,
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
        chosen = _chosen(selector or nodes, hand.nodes(settings.keys.prefix))
        wish = changed(wish, by=hand.who) if wish is not None else None
        if policy.defaults:
            check_prefix(chosen, policy)

        def decided(node: Node) -> NodeWrite | RequestRefused | None:
            if wish is None:
                return cancelled(node, settings, hand.who, now)
            return requested(node, wish, settings, replace=asked.replace)

        refusals = [
            Said(node.name, write.because, ok=False)
            for node in chosen
            if isinstance(write := decided(node), RequestRefused)
        ]
        if refusals:
            echo_each(refusals, settings.time_zone)
            echo("nothing was written", err=True)
            return 1
        done, written = _write_all(chosen, decided, wish, settings, hand)
        if written:
            echo_means(_meaning(wish, nodes, selector, settings), settings.time_zone, now)
        if len(chosen) > _ROWS:
            arguments = arguments_for(nodes, selector)
            echo(f"\nreconciler report {arguments} prints what a pass would do now")
        elif not policy.defaults:
            _print_next(tuple(node.name for node in chosen), hand, settings)
        return 0 if done else 1


def _meaning(
    wish: Request | None, nodes: tuple[str, ...], selector: LabelSelector | None, settings: Settings
) -> Iterator[str]:
    """Yield in words what the request means, what it does not do, and what ends it."""
    which = words_for(nodes)
    if wish is None:
        yield f"A drain of {which} for the request stops, and a pass uncordons what it cordoned for it."
        return
    when = f"before {to_text(wish.not_before)}" if wish.not_before is not None else "as soon as it may"
    cancel = f"reconciler request {arguments_for(nodes, selector)} --cancel"
    if settings.mode is Mode.ENFORCE:
        yield f"The reconciler drains {which} {when}, and keeps the cordon until the request is removed."
    else:
        yield f"In mode {settings.mode}, no drain of {which} starts for the request."
    yield f"Holds, windows, freezes and the budget apply. To remove the request: {cancel}"


def _chosen(which: tuple[str, ...] | LabelSelector, nodes: dict[str, Node]) -> list[Node]:
    if isinstance(which, LabelSelector):
        found = [node for node in nodes.values() if which.matches(node.labels)]
        if not found:
            raise NotFound(f"no node matches {which}", status=404)
        return found
    check_nodes(which, nodes.keys())
    return [nodes[name] for name in dict.fromkeys(which)]


Decided = Callable[[Node], NodeWrite | RequestRefused | None]


def _write_all(
    nodes: list[Node], decided: Decided, wish: Request | None, settings: Settings, hand: ByHand
) -> tuple[bool, bool]:
    """Write to each node, and print each result; return whether all are as wanted, and any was written."""
    last: dict[str, tuple[Node, NodeWrite | RequestRefused | None]] = {}
    answers, written = list[Said](), False

    def decide(node: Node) -> NodeWrite | None:
        write = decided(node)
        last[node.name] = node, write
        return None if isinstance(write, RequestRefused) else write

    for node, problem in write_nodes(hand.cluster, nodes, read_by_hand(settings.keys.prefix), decide):
        before, write = last[node.name]
        if isinstance(write, RequestRefused):
            # Somebody was faster.
            answers.append(Said(node.name, write.because, ok=False))
        elif write is None:
            none = "has no request" if wish is None else "has this request already"
            answers.append(Said(node.name, none))
        elif problem:
            answers.append(Said(node.name, problem, ok=False))
        else:
            written = True
            done = removed(before, settings) if wish is None else f"requested: {describe(wish.text)}"
            answers.append(Said(node.name, done))
    echo_each(answers, settings.time_zone)
    return all(said.ok for said in answers), written


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
