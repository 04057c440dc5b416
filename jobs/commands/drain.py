"""`reconciler drain`: drains nodes by hand, with the flags of kubectl drain and our own drainer.

A person waits for this command, so it imports neither a pass nor the settings. It imports the drainer and the
progress display only after the nodes are cordoned.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import click
from msgspec import Struct

from jobs import options
from jobs.runtime.by_hand import EventsByHand, author, prefix_in_use, read_by_hand, write_decided
from jobs.runtime.clock import SystemClock
from jobs.runtime.environment import Target, connected, itself
from jobs.runtime.output import echo, echo_for_programs, for_programs
from jobs.runtime.process import Leading, Observers, Surroundings, companions_of, evicted
from jobs.runtime.supervised import ended_by_signals
from reconciler.drain.claim import ClaimRefused, claim
from reconciler.drain.filters import Action, Survey, survey
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.ledger import read_holds
from reconciler.kubernetes.nodes import BY_HAND
from reconciler.model.drains import DrainOptions, DrainOrder, DrainProgress, Grace, Phase, PodWaits, WaitLimit
from reconciler.model.errors import ClusterError, Forbidden, NotFound, Rejected, Unauthorized
from reconciler.model.instructions import PersonHold, instructions_of
from reconciler.model.keys import keys_of
from reconciler.model.limits import count_of
from reconciler.model.node import Node, Wanted
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.model.writes import NodeWrite, other_prefixes

_MOST_COMPLAINTS = 3
"""Warnings about what the drain does without: two about Events on pods, one about traces."""


class DrainCommand(Struct, frozen=True):
    """Which nodes to drain, and how. `timeout` None: no timeout. `prefix` None: that of the cluster."""

    names: tuple[str, ...]
    selector: LabelSelector | None
    prefix: str | None
    options: DrainOptions
    timeout: timedelta | None
    dry_run: bool
    output: str


def _pods(
    ignore_daemonsets: bool,
    delete_emptydir_data: bool,
    force: bool,
    grace_period: int,
    pod_selector: LabelSelector | None,
    disable_eviction: bool,
    skip_wait_for_delete_timeout: int,
    pods_may_wait: timedelta,
    ignore_holds: bool,
) -> DrainOptions:
    """Return the drain options of the flags, without the prefix. For some flags, 0 or -1 means off."""
    skip_after = timedelta(seconds=skip_wait_for_delete_timeout)
    return DrainOptions(
        ignore_daemonsets=ignore_daemonsets,
        evict_empty_dir=delete_emptydir_data,
        evict_unmanaged=force,
        strict=True,
        grace=Grace(grace_period if grace_period >= 0 else None),
        skip_terminating_after=skip_after or None,
        pod_selector=pod_selector,
        use_delete=disable_eviction,
        waits=PodWaits(WaitLimit(SystemClock().now(), pods_may_wait)),
        ignore_holds=ignore_holds,
    )


_pod_options = options.as_one(
    "pods",
    _pods,
    click.option("--ignore-daemonsets", is_flag=True, help="Skip pods of DaemonSets."),
    click.option(
        "--delete-emptydir-data", is_flag=True, help="Evict pods with an emptyDir. Its data is lost."
    ),
    click.option(
        "--force", is_flag=True, help="Evict pods without a controller. Nothing creates them again."
    ),
    click.option(
        "--grace-period",
        type=int,
        default=-1,
        show_default=True,
        help="The grace period in seconds. -1: that of each pod.",
    ),
    click.option("--pod-selector", type=options.SELECTOR, help="Evict only pods with these labels."),
    click.option(
        "--disable-eviction", is_flag=True, help="Delete pods, without regard to PodDisruptionBudgets."
    ),
    click.option(
        "--skip-wait-for-delete-timeout",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Do not wait for pods that terminate for more seconds than this. 0: wait.",
    ),
    click.option(
        "--pods-may-wait",
        type=options.DURATION,
        default="1h",
        show_default=True,
        help="How long to wait for pods whose label asks for it (wait-completed).",
    ),
    click.option("--ignore-holds", is_flag=True, help="Also drain nodes that a person holds."),
)


def _asked(
    nodes: tuple[str, ...],
    selector: LabelSelector | None,
    prefix: str | None,
    pods: DrainOptions,
    timeout: timedelta,
    dry_run: bool,
    output: str,
) -> DrainCommand:
    if bool(nodes) == (selector is not None):
        raise click.UsageError("name the nodes, or give --selector")
    return DrainCommand(nodes, selector, prefix, pods, timeout or None, dry_run, output)


@click.command("drain")
@options.as_one(
    "asked",
    _asked,
    options.nodes,
    options.selector,
    options.prefix,
    _pod_options,
    click.option(
        "--timeout",
        type=options.DURATION,
        default="0s",
        show_default=True,
        help="The timeout for each node. 0s: no timeout.",
    ),
    click.option("--dry-run", is_flag=True, help="Print what would happen to each pod. Write nothing."),
    options.output,
)
@options.cluster
def command(asked: DrainCommand, target: Target) -> int:
    """Cordon and drain nodes by hand, with the flags of kubectl drain.

    Ctrl-C leaves the nodes cordoned. The same command continues, and `reconciler release` undoes it.
    """
    return drain(asked, target)


def drain(asked: DrainCommand, target: Target) -> int:
    """Cordon, claim and drain the nodes together. Return 0 when all are drained, else 1.

    Ctrl-C stops evictions. The nodes stay cordoned and claimed: the same command continues, and
    `reconciler release` undoes it.
    """
    with connected(target) as connection:
        prefix = prefix_in_use(asked.prefix, connection, target.namespace)
        asked = replace(asked, options=replace(asked.options, prefix=prefix))
        # The claim is written on the node, so no lock is needed: a pass holds a claimed node.
        cluster = Cluster(connection, guard=lambda: None, namespace=target.namespace, field_manager=BY_HAND)
        nodes = _chosen(asked, cluster)
        if not nodes:
            return 1
        ledger = _Ledger(connection, target)
        held = _held(nodes, asked, ledger)
        if asked.dry_run:
            return _rehearse(asked, cluster, nodes, held, author(connection))
        return _drain(asked, ledger, cluster, nodes, held)


def _wanted(asked: DrainCommand) -> Wanted:
    return replace(read_by_hand(asked.options.prefix), conditions=frozenset({"Ready"}))


def _chosen(asked: DrainCommand, cluster: Cluster) -> list[Node]:
    """Return the nodes. If one of them does not exist, print this and return none."""
    wanted = _wanted(asked)
    if asked.selector is not None:
        nodes = [node for node in cluster.nodes(wanted) if asked.selector.matches(node.labels)]
        if not nodes:
            echo("no node has these labels", err=True)
        return nodes
    nodes, missing = [], False
    for name in dict.fromkeys(asked.names):
        try:
            nodes.append(cluster.node(name, wanted))
        except NotFound:
            missing = True
            echo(f"{name}: there is no such node", err=True)
    return [] if missing else nodes


class _Ledger:
    """The holds of all nodes and of pools.

    Whoever may drain nodes need not have access to it. Then these holds are not known, and this is printed.
    """

    def __init__(self, connection: Connection, target: Target) -> None:
        self.connection, self.target = connection, target
        self._readable = True

    def holds(self) -> tuple[PersonHold, ...]:
        """Return the holds as they are now; none if they are not known."""
        if not self._readable:
            return ()
        try:
            return read_holds(self.connection, self.target.namespace)
        except (Forbidden, Rejected, Unauthorized) as error:
            self._readable = False
            echo(f"warning: holds with --all and --pool are not known: {error.because}", err=True)
            return ()


def _held(nodes: list[Node], asked: DrainCommand, ledger: _Ledger) -> Mapping[str, PersonHold]:
    """Return what people hold of these nodes, by name. With --ignore-holds it is only printed."""
    of_many, now, prefix = ledger.holds(), SystemClock().now(), asked.options.prefix
    held: dict[str, PersonHold] = {}
    for node in nodes:
        hold = instructions_of(node, prefix, now, of_many).hold
        # Without one, a hold under the prefix of another installation counts.
        for other in other_prefixes(node, prefix) if hold is None else ():
            theirs = instructions_of(node, other, now).hold
            if theirs is not None:
                hold = replace(theirs, prefix=other)
                break
        if hold is not None:
            held[node.name] = hold
    if not asked.options.ignore_holds:
        return held
    for name, hold in held.items():
        echo(f"{name}: warning: {hold.words(name)}; it is drained all the same", err=True)
    return {}


def _options(asked: DrainCommand, cluster: Cluster, node: Node) -> tuple[DrainOptions, Survey]:
    """Return the options with the DaemonSets that are gone, and the verdicts on the pods."""
    pods = cluster.pods(node.name)
    options = replace(asked.options, gone_daemonsets=cluster.gone_daemonsets(pods))
    return options, survey(pods, options, now=SystemClock().now())


def _rehearse(
    asked: DrainCommand, cluster: Cluster, nodes: list[Node], held: Mapping[str, PersonHold], who: str
) -> int:
    pods: list[dict[str, Any]] = []
    lines: list[str] = []
    refused: list[dict[str, str]] = []
    for node in nodes:
        _, seen = _options(asked, cluster, node)
        claimed = claim(node, asked.options.prefix, who, SystemClock().now(), held.get(node.name))
        taken = claimed.because if isinstance(claimed, ClaimRefused) else ""
        count = len(seen.refused)
        because = taken or (f"{count} pod{'s' if count > 1 else ''} may not be evicted" if count else "")
        if because:
            refused.append({"node": node.name, "because": because})
        if not node.unschedulable and not taken:
            lines.append(f"{node.name}: would be cordoned")
        if because:
            lines.append(f"{node.name}: would not be drained: {because}")
        evict = "delete" if asked.options.use_delete else "evict"
        for verdict in seen.verdicts:
            namespace, _, name = verdict.pod.partition("/")
            # A pod that the drain waits for leaves without a request of ours.
            action = evict if verdict.action == Action.WAIT else verdict.action
            reasons = list(verdict.reasons)
            does = f"not {evict}" if because and action != Action.SKIP else action
            why = f": {'; '.join(reasons)}" if reasons else ""
            lines.append(f"{node.name}: would {does} {verdict.pod}{why}")
            pods.append(
                {
                    "node": node.name,
                    "namespace": namespace,
                    "name": name,
                    "action": action,
                    "reasons": reasons,
                }
            )
    if for_programs(asked.output):
        from reconciler.report.document import as_json

        names = [node.name for node in nodes]
        document = {"version": "v1", "dryRun": True, "nodes": names, "pods": pods, "refused": refused}
        echo_for_programs(as_json(document), asked.output)
    else:
        for line in (*lines, "dry run: nothing was written"):
            echo(line)
    return 1 if refused else 0


def _drain(
    asked: DrainCommand, ledger: _Ledger, cluster: Cluster, nodes: list[Node], held: Mapping[str, PersonHold]
) -> int:
    clock, stop, events = (
        SystemClock(),
        threading.Event(),
        _EventsToWrite(author(ledger.connection), ledger.connection),
    )
    claimed = [node for node in nodes if _claim(node, held.get(node.name), asked, cluster, events)]
    # `hold --all --now` writes the ledger, and lists the nodes then: it finds the claims, or is found here.
    holds = () if asked.options.ignore_holds else ledger.holds()
    claimed = [node for node in claimed if not _is_stopped(node, holds, events)]
    failed = len(claimed) < len(nodes)
    # As with kubectl, a refused pod leaves the node cordoned, and nothing is evicted from it.
    orders = [order for node in claimed if (order := _order(node, asked, cluster, clock, events)) is not None]
    failed |= len(orders) < len(claimed)
    ended = _drained(orders, asked, ledger, cluster, events, stop)
    by_name = {node.name: node for node in claimed}
    for order in orders:
        failed |= not _print_end(order, ended[order.node], asked, stopped=stop.is_set())
        events.end(by_name[order.node], ended[order.node], stopped=stop.is_set())
    events.write()
    return 128 + signal.SIGINT if stop.is_set() else int(failed)


def _drained(
    orders: list[DrainOrder],
    asked: DrainCommand,
    ledger: _Ledger,
    cluster: Cluster,
    events: _EventsToWrite,
    stop: threading.Event,
) -> Mapping[str, DrainProgress]:
    """Carry out the orders until all drains have ended, or `stop` is set by a signal; return the drains."""
    from jobs.runtime.progress import Bars
    from reconciler.drain.drainer import Drainer
    from reconciler.kubernetes.scale.evictions import SharedEvictions

    complaints: list[str] = []
    connection, clock = ledger.connection, SystemClock()
    evictions = SharedEvictions(connection, guard=lambda: None, prefix=asked.options.prefix)
    observers = Observers().add(Surroundings("drain", {}, complaints.append))
    leading = Leading(
        connection,
        cluster,
        ledger.target,
        itself(),
        clock,
        guard=lambda: None,
        eviction_guard=lambda: None,
        observers=observers,
        warn=complaints.append,
    )
    beside = companions_of(leading)
    with ended_by_signals(stop), Bars(observers.progressed) as bars, observers:
        for companion in beside:
            companion.drains()
        on_evicted = partial(evicted, beside)
        drainer = Drainer(observers.evictor(evictions), clock, on_progress=bars.show, on_evicted=on_evicted)
        try:
            for order in orders:
                observers.ordered(order)
                drainer.start(order)
            # Only now, because the drains must not wait for them.
            events.write()
            while not stop.is_set() and not drainer.wait(0):
                drainer.wait(0.5)
        finally:
            drainer.close()
            for companion in beside:
                companion.close()
    for complaint in complaints[:_MOST_COMPLAINTS]:
        echo(f"warning: {complaint}; everything else goes on", err=True)
    return drainer.progress()


class _EventsToWrite:
    """The Events about this command that are not written yet."""

    def __init__(self, who: str, connection: Connection) -> None:
        self.who = who
        self._events = EventsByHand(connection)
        self._notices: list[tuple[Node, Notice]] = []

    def add(self, node: Node, reason: str, message: str, *, warning: bool = False) -> None:
        """Add one Event."""
        kind = NoticeType.WARNING if warning else NoticeType.NORMAL
        self._notices.append((node, Notice(reason, message, kind)))

    def end(self, node: Node, ended: DrainProgress, *, stopped: bool) -> None:
        """Add how the drain of a node ended; a node that is gone needs no Event."""
        pods = f"{ended.gone} of {count_of(ended.total, 'pod')} gone"
        match ended.phase:
            case Phase.NODE_GONE:
                return
            case Phase.DRAINED:
                self.add(node, "MaintenanceDrained", f"drained by {self.who}, by hand: {pods}")
            case Phase.TIMED_OUT:
                blocked = "; ".join(f"{blocker.pod}: {blocker.because}" for blocker in ended.blockers)
                message = f"not drained in time by {self.who}, by hand: {pods}"
                self.add(
                    node,
                    "MaintenanceDrainTimedOut",
                    f"{message}; {blocked}" if blocked else message,
                    warning=True,
                )
            case _:
                how = "was stopped" if stopped else f"failed: {ended.error}"
                message = f"the drain by {self.who}, by hand, {how}; {pods}"
                self.add(node, "MaintenanceStopped", message, warning=True)

    def write(self) -> None:
        """Write what was added since the last time."""
        notices, self._notices = self._notices, []
        for node, notice in notices:
            self._events.write(node, notice)


def _claim(
    node: Node, hold: PersonHold | None, asked: DrainCommand, cluster: Cluster, events: _EventsToWrite
) -> bool:
    decided: list[NodeWrite | ClaimRefused | None] = []

    def decide(node: Node) -> NodeWrite | None:
        decided.append(claim(node, asked.options.prefix, events.who, SystemClock().now(), hold))
        return decided[-1] if isinstance(decided[-1], NodeWrite) else None

    try:
        write_decided(cluster, node, _wanted(asked), decide)
    except ClusterError as error:
        echo(f"{node.name}: {error}", err=True)
        return False
    write = decided[-1]
    if isinstance(write, ClaimRefused):
        echo(f"{node.name}: {write.because}", err=True)
        return False
    if write is None:
        echo(f"{node.name}: goes on")
        return True
    if write.unschedulable:
        events.add(node, "MaintenanceCordon", f"cordoned by {events.who}, to drain it by hand")
    echo(f"{node.name}: {'cordoned' if write.unschedulable else 'was cordoned already'}")
    return True


def _is_stopped(node: Node, holds: tuple[PersonHold, ...], events: _EventsToWrite) -> bool:
    """Return whether one of these holds of many nodes stops the drain before it begins, and print it."""
    now = SystemClock().now()
    hold = next((one for one in holds if one.stops and one.applies(node.pool, now)), None)
    if hold is None:
        return False
    because = f"{hold.words(node.name)}; nothing was evicted"
    events.add(
        node,
        "MaintenanceStopped",
        f"the drain by {events.who}, by hand, did not begin: {because}",
        warning=True,
    )
    echo(f"{node.name}: {because}; it stays cordoned, reconciler release {node.name} undoes it", err=True)
    return True


def _order(
    node: Node, asked: DrainCommand, cluster: Cluster, clock: SystemClock, events: _EventsToWrite
) -> DrainOrder | None:
    try:
        options, seen = _options(asked, cluster, node)
    except ClusterError as error:
        echo(f"{node.name}: {error}", err=True)
        return None
    for warning in seen.warnings:
        echo(f"{node.name}: warning: {warning}", err=True)
    if seen.refused:
        for blocker in seen.refused:
            echo(f"{node.name}: cannot delete {blocker.pod}: {blocker.because}", err=True)
        because = "; ".join(f"{one.pod}: {one.because}" for one in seen.refused)
        message = f"the drain by {events.who}, by hand, evicts nothing: {because}"
        events.add(node, "MaintenanceStopped", message, warning=True)
        undo = f"reconciler release {node.name} undoes it"
        echo(f"{node.name}: nothing was evicted; it stays cordoned, {undo}", err=True)
        return None
    return DrainOrder(
        node=node.name,
        uid=node.uid,
        since=clock.now(),
        timeout=asked.timeout,
        options=options,
        node_ready=node.ready,
        why=f"drained by {events.who}, by hand",
    )


def _print_end(order: DrainOrder, ended: DrainProgress, asked: DrainCommand, *, stopped: bool) -> bool:
    if ended.phase in (Phase.DRAINED, Phase.NODE_GONE):
        for blocker in ended.kept:
            echo(f"{order.node}: {blocker.pod} stays: it {blocker.because}", err=True)
        for sender in ended.coming:
            echo(f"{order.node}: {sender.words(order.node)}", err=True)
        release = keys_of(asked.options.prefix).release(order.node)
        stays = f"; it stays out of service until `{release}`" if ended.phase is Phase.DRAINED else ""
        echo(f"{order.node}: {ended.phase}, {count_of(ended.gone, 'pod')} gone{stays}")
        return True
    for blocker in ended.blockers:
        echo(f"{order.node}: {blocker.pod}: {blocker.because}", err=True)
    what = "stopped" if stopped else f"{ended.phase}{f': {ended.error}' if ended.error else ''}"
    left = f"{count_of(ended.total - ended.gone, 'pod', 'are')} left"
    echo(
        f"{order.node}: {what}; {left}; the same command goes on, reconciler release {order.node} undoes it",
        err=True,
    )
    return False
