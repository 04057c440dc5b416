"""Observe: read what a pass needs, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime, timedelta
from enum import Enum
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from reconciler.drain.workloads import GROUP_LABELS, MOST, group_of, in_one_namespace
from reconciler.model.clocks import own_times
from reconciler.model.content import CalendarText
from reconciler.model.errors import ClusterError, Late, ReconcilerError, Unauthorized, Unreachable
from reconciler.model.event import Reading
from reconciler.model.limits import EARLIEST
from reconciler.model.moments import to_text
from reconciler.model.node import (
    POOL_ANNOTATIONS,
    READ_LABELS,
    UPGRADE_ANNOTATIONS,
    US,
    Node,
    Wanted,
    upgraded_pools,
)
from reconciler.model.pod import Pod, claims_of
from reconciler.model.polling import AnyMemory, Listing
from reconciler.model.ports import (
    COUNTS,
    Beside,
    ClusterReader,
    LockReader,
    Look,
    LookRequest,
    Outside,
    PartialReader,
    SourceClient,
    WritableOutside,
    read_of,
)
from reconciler.model.problems import LEDGER, NAMESPACES, PODS, Faults, Gaps, expected, guarded, internal
from reconciler.model.reconciler import Reconciler, beside
from reconciler.model.record import Record, Unreadable, record_of
from reconciler.model.selector import LabelSelector, parse_selector_text
from reconciler.model.snapshot import (
    Agents,
    Aside,
    Ledger,
    Problems,
    ReadAhead,
    ReadForSettings,
    Remediator,
    ServerVersion,
    Snapshot,
)
from reconciler.model.values import replace
from reconciler.passes.parts import Parts
from reconciler.passes.plugin import Observed, SourceContext, Wants, readings_of
from reconciler.passes.polled import PolledSource
from reconciler.passes.store import Store
from reconciler.profiles.judging import is_struck
from reconciler.settings.policies import Start
from reconciler.settings.schema import Mode, Settings

T = TypeVar("T")

RULES = "drain.rules that select namespaces by label are not applied"

_ANNOTATIONS = POOL_ANNOTATIONS | UPGRADE_ANNOTATIONS
"""Annotations that every pass reads on nodes, also if the settings need none of them."""

_UNREACHABLE_AT_MOST = 3
"""Pod lists without an answer after which a pass asks for no more: each takes the whole time for retries."""

_SOON = timedelta(minutes=15)
"""A maintenance that comes sooner is drained for at once."""

_JUST_BEGUN = timedelta(seconds=10)
"""How long a drain may take to show the pods of its node, before a pass reads them itself."""

_FEW = 20
"""Up to so many nodes, a pass reads the pods although their drains have just begun, if no cordon waits."""

_NEXT_PASS = "its pods are read in the next pass, because this one is the first to see its maintenance"

_GROUPED_AT_MOST = 100
"""Nodes with pods of groups that are looked at, the first ones by name: each takes a request."""


class Rehearsal(Enum):
    """A pass that writes nothing, and reads what a pass reads.

    For a person who asks, it also reads the pods of a notice that is too short for a pass to read them. For a
    preview it reads besides what is needed to find room on other nodes.
    """

    PLAIN = "plain"
    ASKED = "asked"
    WITH_PREVIEW = "with a preview"


def observe(
    outside: Outside,
    settings: Settings,
    now: datetime,
    parts: Parts,
    store: Store | None = None,
    rehearsal: Rehearsal | None = None,
) -> Snapshot:
    """Return the snapshot of one pass; raises ClusterError if the nodes or the ledger can't be read.

    Whatever is wrong with one node, or with another read, is a problem in the snapshot. A rehearsed pass
    needs permissions on nodes only. `now` is aware. Services are queried if the settings enable their source
    and the ledger says that a query is due.

    Pods are read, with a request each, for the nodes that drain, those on which a drain has left pods, and
    those on which the platform has started while they may not be empty. There are no other requests per node
    but those of `outside.ahead`, which are bounded. With a `store`, the snapshot has the nodes that may not
    rest; `Store.settle` says which do. If two nodes or more wait for a drain, the pods of groups are read,
    with one list for each kind of group, and then those of the nodes with pods of the same group.
    """
    reader, gaps = outside.reader, Gaps(rehearsal is not None)
    context = _Context(outside, parts, settings, now, gaps)
    wants = parts.wants(settings)
    of_nodes = wanted(settings, parts, capacity=rehearsal is Rehearsal.WITH_PREVIEW)

    # The nodes, and what says the same of all of them.
    look = reader.look(
        LookRequest(of_nodes, wants.agents, wants.remediator, wants.server, changes=store is not None)
    )
    nodes = look.in_order if store is None else store.chosen(look, now)
    agents = _agents(look, gaps)
    remediator = _remediator(look, gaps)
    version, problem, _ = _read(partial(read_of, look.server), "the version of the API server")
    server = version or ServerVersion(problem=problem)

    ledger, doubts = _ledger(look, settings, now, gaps)
    objects, unread_objects = parts.read_objects(outside, settings, ledger, gaps)

    # The services, if their time has come. Their answers may wake nodes that rest.
    fleet = _fleet(context, of_nodes, nodes)
    every_node = store.all if store is not None else lambda: nodes
    memories, unpolled = _poll(context, every_node, ledger, fleet.records)
    readable = SourceContext(settings, now, agents, memories, server)
    if store is not None:
        holds = [hold for hold in ledger.holds if not hold.word.ended(now)]
        # A node that AKS upgrades is out of service, so it does not rest.
        woken = store.woken(readable, (holds, remediator, upgraded_pools(fleet.nodes, Faults())))
        fleet = fleet if woken is None else _fleet(context, of_nodes, woken)

    # What the sources say of each node, which nodes the platform has met, and which wait for a drain.
    readings: dict[str, tuple[Reading, ...]] = {}
    problems = dict(fleet.problems)
    struck: list[str] = []
    waiting: set[str] = set()
    on = tuple(parts.sources.switched_on(settings))
    for node in fleet.nodes:
        record = fleet.records.get(node.name)
        try:
            readings[node.name] = readings_of(node, on, readable)
            if is_struck(node, record, readings[node.name], settings):
                struck.append(node.name)
            if _may_start(node, record, readings[node.name], settings):
                waiting.add(node.name)
        except Exception as error:  # noqa: BLE001 - one node's data harms that node only
            readings[node.name] = ()
            problems[node.name] = internal(f"node {node.name}: its sources can't be read", error)

    # What features read for themselves, and the machines that they read.
    machine_of = partial(parts.machine_of, settings=settings)
    observed = Observed(fleet.nodes, fleet.records, memories, settings, now, readings, machine_of)
    of_features, unread_for_features = parts.observe(outside, observed)
    machines, unread_machines = parts.machines(outside, observed)

    # The nodes that drain, and those whose pods something else depends on.
    draining = [name for name, record in fleet.records.items() if record.being_drained or record.keeps_pods]
    # Pods that a drain has left hold the machine of their node.
    held = [name for name in machines if name in fleet.records and fleet.records[name].in_maintenance]
    busy = list(dict.fromkeys((*draining, *struck, *held)))

    namespaces, namespaces_problem = _namespaces(reader, settings, gaps)
    calendars, unread_calendars = _calendars(context, ledger)

    # The nodes that wait for a drain: whether it can end, and which of them it is better to drain together.
    # A mode that cordons nothing has the time to read, and so has what a person asks for.
    reads_first = settings.mode is Mode.OBSERVE or rehearsal not in (None, Rehearsal.PLAIN)
    soon: Set[str] = frozenset() if reads_first else _due_and_new(waiting, fleet, readings, context)
    groups, ungrouped = _groups(reader, waiting - soon, settings, gaps)
    ahead = ReadAhead()
    unread_ahead: tuple[str, ...] = ()
    if outside.ahead is not None:
        asked = sorted(waiting.difference(busy, soon), key=lambda name: (_first_date(readings[name]), name))
        # For those in `soon` there is no time, so this pass reads of no node what was not read before.
        read = partial(outside.ahead.read, asked, now, drains=bool(busy), asks=not soon)
        ahead, unread_ahead = guarded("whether drains can end is not known", read, ReadAhead())
        unread = {**ahead.unread, **dict.fromkeys(soon - set(busy), _NEXT_PASS)}
        # A preview reads all labels. It must not know more than the passes whose forecast it shows.
        ahead = replace(ahead, unread=unread, labels=_labels(wants, settings))

    begun = _just_begun(outside, fleet.records, now, 0 if soon else _FEW).difference(struck, machines)
    pods, unread_pods = _pods(outside, fleet.nodes, [name for name in busy if name not in begun], gaps)
    return Snapshot(
        nodes=fleet.nodes,
        readings=readings,
        records=fleet.annotations,
        pods=pods,
        attached=_attached(outside, fleet.records, pods),
        for_settings=ReadForSettings(
            namespaces,
            groups,
            calendars,
            ahead,
            machines=machines,
            objects=objects,
            of_features=of_features,
            server=server,
        ),
        agents=agents,
        remediator=remediator,
        ledger=ledger,
        memories=memories,
        disagreement=reader.disagreement(),
        itself=outside.itself,
        reconciler=_beside_others(outside, settings, fleet, store),
        problems=Problems(
            (
                *doubts,
                *unread_objects,
                *unread_for_features,
                *unread_machines,
                *unpolled,
                *unread_calendars,
                *ungrouped,
                *unread_ahead,
            ),
            problems,
            unread_pods,
            namespaces_problem,
            tuple(gaps.unseen.values()),
        ),
        aside=Aside(reader.resting()) if isinstance(reader, PartialReader) else Aside(),
    )


_OTHERS = 5
"""Locks of other reconcilers that a pass reads at most: each takes a request."""


def _beside_others(outside: Outside, settings: Settings, fleet: _Fleet, store: Store | None) -> Reconciler:
    """Return who acts on the nodes, with the reconcilers that have begun records with another lock.

    So have those, later, that were there before us and select the same nodes: their first starts may fall
    into the same pass as ours. Nodes that the settings do not select may be those of another reconciler.

    Without such records and reconcilers nothing is read. A lock that can't be read is none: it would stop us
    for ever.
    """
    own, reader = outside.reconciler, outside.reader
    records = fleet.records
    ours = (node.name for node in fleet.nodes if settings.in_fleet(node.labels) and node.name in records)
    named = {records[name].lock for name in ours}
    # Also those that rest: whether there are two does not depend on a case.
    nodes = fleet.nodes if store is None or not own.rivals else store.all()
    named |= {rival.lock for rival in own.rivals if _selects_ours(rival, settings, nodes)}
    locks = sorted(named - {"", own.lock})
    if not locks or not own.lock or not isinstance(reader, LockReader):
        return own
    others = []
    for lock in locks[:_OTHERS]:
        what, read = f"the lock in namespace {lock} is not read", partial(reader.reconciler_of, lock)
        with suppress(ClusterError):
            others.append(expected(what, read))
    return beside(own, (other for other in others if other is not None))


def _selects_ours(rival: Reconciler, settings: Settings, nodes: Iterable[Node]) -> bool:
    """Whether another reconciler selects one of these nodes that our settings select, by the labels read.

    One that has not ended a pass yet may be there for other nodes.
    """
    if rival.selects is None:
        return False
    try:
        selector = parse_selector_text(rival.selects)
    except ValueError:
        return False
    if not {each.key for each in selector.requirements} <= settings.label_keys() | READ_LABELS:
        # Other labels were not read.
        return False
    return any(settings.in_fleet(node.labels) and selector.matches(node.labels) for node in nodes)


class _Context(Struct, frozen=True):
    """What a pass reads with; `now` is aware, `gaps` notes what it may not read."""

    outside: Outside
    parts: Parts
    settings: Settings
    now: datetime
    gaps: Gaps


class _Fleet(Struct, frozen=True):
    """Nodes with their records.

    `annotations` has each record, or why it can't be read, and `records` those that can. `problems` are those
    of single nodes.
    """

    nodes: tuple[Node, ...]
    annotations: Mapping[str, Record | Unreadable]
    records: Mapping[str, Record]
    problems: Mapping[str, str]


def _fleet(context: _Context, of_nodes: Wanted, nodes: Sequence[Node]) -> _Fleet:
    reader, settings = context.outside.reader, context.settings
    nodes = reader.completed(nodes, of_nodes)
    # After the nodes were read: their answer too says what time it is.
    times = own_times(context.now, reader.disagreement())
    nodes = tuple(node.believed(times) for node in nodes)
    annotations: dict[str, Record | Unreadable] = {}
    problems: dict[str, str] = {}
    for node in nodes:
        try:
            record = record_of(node, settings.keys.prefix)
        except Exception as error:  # noqa: BLE001 - one node's data harms that node only
            problems[node.name] = internal(f"node {node.name}: its record can't be read", error)
            continue
        if record is not None:
            annotations[node.name] = record
    adopts = partial(context.parts.adopts, settings=settings)
    nodes = _with_owners(reader, nodes, annotations, adopts)
    records = {name: record for name, record in annotations.items() if isinstance(record, Record)}
    return _Fleet(nodes, annotations, records, problems)


def wanted(settings: Settings, parts: Parts, *, capacity: bool = False) -> Wanted:
    """Return which parts of a node these settings need.

    A preview needs all labels, because any of them may matter for a pod's placement.
    """
    of_parts = parts.wants(settings)
    return Wanted(
        conditions=of_parts.conditions | {"Ready"},
        annotation_prefix=settings.keys.prefix,
        annotations=of_parts.annotations | _ANNOTATIONS,
        capacity=capacity,
        labels=None if capacity else _labels(of_parts, settings),
        system_uuid=of_parts.system_uuid,
    )


def _labels(of_parts: Wants, settings: Settings) -> frozenset[str]:
    return of_parts.labels | READ_LABELS | settings.label_keys()


def _ledger(look: Look, settings: Settings, now: datetime, gaps: Gaps) -> tuple[Ledger, tuple[str, ...]]:
    """Return the ledger as it counts, and a note about one that can't be read now."""
    follows = "the last start and earlier answers of polled sources are not known, nor holds of all nodes"
    ledger = gaps.read(LEDGER, partial(read_of, look.ledger), follows)
    if ledger is None:
        # Nobody knows when the last drain started, so none may start now that `budget.spacing` holds.
        held = settings.budget.spacing > timedelta()
        return Ledger(unread=f"needs {gaps.unseen[LEDGER].needs}") if held else Ledger(), ()
    as_of = ledger.as_of
    if as_of is None:
        return ledger, ()
    # A hold that has ended since the last read may have been extended, so it still holds its nodes.
    holds = tuple(
        replace(hold, word=replace(hold.word, until=None))
        if hold.word.ended(now) and not hold.word.ended(as_of)
        else hold
        for hold in ledger.holds
    )
    note = (
        f"the ledger can't be read, so what it had at {to_text(as_of)} counts: nodes are cordoned, and no"
        " drain begins; a newer hold of all nodes or of a pool is not known"
    )
    return replace(ledger, holds=holds), (note,)


def _read(work: Callable[[], T], what: str, gaps: Gaps | None = None) -> tuple[T | None, str, str]:
    """Return what was read; or None, the problem, and the permission that is missing for it, if that is why.

    Raises only Unauthorized, and nothing without gaps. What is unreadable is unknown, and nothing else is.
    """
    try:
        return expected(f"{what} can't be read", work), "", ""
    except ClusterError as error:
        if gaps is not None and isinstance(error, Unauthorized) and not gaps.tolerates(error):
            raise
        return None, str(error), error.needs


def _agents(look: Look, gaps: Gaps) -> Agents:
    agents, problem, needs = _read(partial(read_of, look.agents), "the node agents", gaps)
    agents = agents or Agents(installed=True, problem=problem, needs=needs)
    if not agents.needs:
        return agents
    gaps.missing("the node agents", agents.needs, "their events are unknown on every node", agents.problem)
    return replace(agents, problem=f"needs {agents.needs}")


def _remediator(look: Look, gaps: Gaps) -> Remediator:
    what, follows = "AKS's remediator-config", "whether AKS drains nodes for Freeze itself is not known"
    remediator, problem, needs = _read(partial(read_of, look.remediator), what, gaps)
    remediator = remediator or Remediator(problem=problem, needs=needs)
    if remediator.needs:
        gaps.missing(what, remediator.needs, follows, remediator.problem)
    return remediator


_OPENED_AT_MOST = 20
"""Nodes that a pass asks about, each by one request, when somebody has uncordoned them."""


def _with_owners(
    reader: ClusterReader,
    nodes: tuple[Node, ...],
    records: Mapping[str, object],
    adopts: Callable[[Node], str],
) -> tuple[Node, ...]:
    """Return the nodes, each without a record with whose cordon it has, as far as a pass takes that over.

    A node in maintenance that is not cordoned has who uncordoned it.
    """
    opened = [
        node
        for node in nodes
        if not node.unschedulable
        and isinstance(record := records.get(node.name), Record)
        and record.in_maintenance
    ]
    if opened:
        by = {node.name: reader.uncordoned_by(node) for node in opened[:_OPENED_AT_MOST]}
        nodes = tuple(replace(node, uncordoned_by=by.get(node.name, "")) for node in nodes)
    unclear = [node for node in nodes if node.unschedulable and node.name not in records]
    ours = reader.cordoned_by_us(unclear) if unclear else frozenset()
    owners = {node.name: US if node.name in ours else adopts(node) for node in unclear}
    if not any(owners.values()):
        return nodes
    return tuple(
        replace(node, cordon_of=owners[node.name]) if owners.get(node.name) else node for node in nodes
    )


def _just_begun(outside: Outside, records: Mapping[str, Record], now: datetime, few: int) -> frozenset[str]:
    """Return the nodes whose drains will show their pods in a moment: of many that began some seconds ago.

    Up to `few` have their pods read, so that all that follows from them is said at once.
    """
    if not isinstance(outside, WritableOutside):
        return frozenset()
    drains = outside.drainer.progress()

    def has_begun(name: str, record: Record) -> bool:
        drain, progress = record.drain_under_way, drains.get(name)
        runs = progress is not None and progress.goes_on(record.uid)
        return runs and drain is not None and now - drain.drain.since < _JUST_BEGUN

    begun = [name for name, record in records.items() if has_begun(name, record)]
    return frozenset(begun if len(begun) > few else ())


def _pods(
    outside: Outside, nodes: Iterable[Node], names: Sequence[str], gaps: Gaps
) -> tuple[dict[str, tuple[Pod, ...]], dict[str, str]]:
    """Return the pods of these of the nodes, and in words whose pods can't be read; raises only Unauthorized.

    Those of a node whose drain watches them need no request.
    """
    pods: dict[str, tuple[Pod, ...]] = {}
    if names and isinstance(outside, WritableOutside):
        uids = {node.name: node.uid for node in nodes}
        watched = ((name, outside.drainer.watched_pods(name, uids[name])) for name in names)
        pods = {name: known for name, known in watched if known is not None}
    problems: dict[str, str] = {}
    silent, reader = 0, outside.reader
    for name in names:
        if name in pods:
            continue
        if silent >= _UNREACHABLE_AT_MOST:
            problems[name] = "they were not requested, because the API server did not answer for other nodes"
            continue
        try:
            pods[name] = expected(f"node {name}: its pods can't be read", partial(reader.pods, name))
        except Unauthorized as error:
            if not gaps.tolerates(error):
                raise
            problems[name] = gaps.note(PODS, error, "no drain has a preview")
        except ClusterError as error:
            problems[name] = str(error)
            silent += isinstance(error, Unreachable)
    return pods, problems


def _attached(
    outside: Outside, records: Mapping[str, Record], pods: Mapping[str, tuple[Pod, ...]]
) -> Mapping[str, tuple[str, ...]]:
    """Return the volumes of pods that left, on nodes whose drain only another process knows, by one list."""
    if not isinstance(outside, WritableOutside):
        return {}
    known, reader = outside.drainer.progress(), outside.reader
    claims = {
        name: claims_of(pods[name])
        for name, record in records.items()
        if record.drain_under_way is not None
        and name in pods
        and (name not in known or known[name].uid != record.uid)
    }
    # Without an answer the drainer waits for them.
    found, _, _ = _read(partial(reader.attached, claims), "the volumes") if claims else ({}, "", "")
    return found or {}


def _namespaces(
    reader: ClusterReader, settings: Settings, gaps: Gaps
) -> tuple[Mapping[str, Mapping[str, str]], str]:
    chosen = [rule.namespaces for rule in settings.drain.rules]
    if not any(isinstance(selector, LabelSelector) and not selector.selects_all for selector in chosen):
        return {}, ""
    try:
        return expected("the namespaces can't be read", reader.namespaces), ""
    except Unauthorized as error:
        if not gaps.tolerates(error):
            raise
        return {}, gaps.note(NAMESPACES, error, RULES)
    except ClusterError as error:
        return {}, str(error)


def _calendars(context: _Context, ledger: Ledger) -> tuple[Mapping[str, CalendarText], tuple[str, ...]]:
    """Return what was read of the calendars, and a note for each whose newest content can't be used.

    The ledger has what an earlier pass, perhaps of another process, has read of them.
    """
    outside, settings = context.outside, context.settings
    places = settings.calendar_places()
    if not places or outside.calendars is None:
        return settings.calendar_texts, ()
    what = ("calendars", *(place.name for place in places))
    asks = partial(outside.calendars.read, places)
    read: Mapping[str, CalendarText] = {}
    problems: tuple[str, ...] = ()
    try:
        read = outside.beside.read(what, asks, counts=COUNTS, most=1)
    except Late as error:
        read = {place.name: CalendarText(unread=str(error)) for place in places}
    except ClusterError as error:
        # A calendar that can't be read is an answer, so this is an error in the program.
        problems = (f"internal error: the calendars can't be read: {error}",)
    found, of_feature = context.parts.calendars(places, read, ledger, context.now)
    notes = [
        f"the calendar {name} can't be read: {one.unread}; it allows no start before a deadline"
        if one.unread
        else f"the calendar {name}: {one.note}"
        for name, one in found.items()
        if one.unread or one.note
    ]
    return found, (*problems, *of_feature, *notes)


def _may_start(node: Node, record: Record | None, readings: tuple[Reading, ...], settings: Settings) -> bool:
    """Whether a drain may start: an event of a kind that drains is reported, and no maintenance has begun."""
    if (record is not None and record.in_maintenance) or not settings.manages(node.labels):
        return False
    policies = settings.policies(node.labels)
    reported = (signal for reading in readings for signal in reading.signals)
    meant = (policies[signal.kind, signal.condition] for signal in reported)
    return any(policy is not None and policy.drain for policy in meant)


def _due_and_new(
    waiting: Set[str], fleet: _Fleet, readings: Mapping[str, tuple[Reading, ...]], context: _Context
) -> Set[str]:
    """Return the nodes that this pass cordons before anything is read, because their maintenance comes soon.

    So does it for those that start as early as they may. Only the pass that first sees a maintenance does
    that. The next one reads the pods, and comes at once.
    """
    due: set[str] = set()
    for node in fleet.nodes:
        if node.name not in waiting or node.name in fleet.records:
            continue
        policies = context.settings.policies(node.labels)
        signals = (signal for reading in readings[node.name] for signal in reading.signals)
        meant = (policies[signal.kind, signal.condition] for signal in signals)
        early = any(policy is not None and policy.start is Start.EARLY for policy in meant)
        if early or _first_date(readings[node.name]) <= context.now + _SOON:
            due.add(node.name)
    return due


def _first_date(readings: Iterable[Reading]) -> datetime:
    """Return the first date of what the sources report (UTC); what has none may come at any moment."""
    return min((one.not_before or EARLIEST for each in readings for one in each.signals), default=EARLIEST)


def _groups(
    reader: ClusterReader, waiting: Set[str], settings: Settings, gaps: Gaps
) -> tuple[dict[str, frozenset[str]], tuple[str, ...]]:
    """Return the groups with pods on the nodes that wait for a drain, and why they are not known, if so.

    Only groups with pods on several of these nodes count, and only on nodes whose pods are of one namespace.
    Without them each node is drained at its own time. Raises only Unauthorized.
    """
    if len(waiting) <= 1 or settings.drain.groups_together <= timedelta():
        return {}, ()

    def read() -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for label in GROUP_LABELS:
            for pod in reader.pods_with(label):
                group = group_of(pod) if pod.node in waiting else ""
                if group and len(found.setdefault(pod.node, set())) < MOST:
                    found[pod.node].add(group)
        several = Counter(group for groups in found.values() for group in groups)
        shared = sorted(node for node, groups in found.items() if any(several[one] > 1 for one in groups))
        chosen = [node for node in shared[:_GROUPED_AT_MOST] if in_one_namespace(reader.pods(node))]
        return {node: frozenset(found[node]) for node in chosen}

    try:
        return expected("groups of pods can't be read", read), ()
    except Unauthorized as error:
        if not gaps.tolerates(error):
            raise
        gaps.note(PODS, error, "no drain has a preview")
        return {}, ()
    except ClusterError as error:
        return {}, (f"groups of pods can't be read, so their nodes are not drained together: {error}",)


def _poll(
    context: _Context,
    every_node: Callable[[], tuple[Node, ...]],
    ledger: Ledger,
    records: Mapping[str, Record],
) -> tuple[dict[str, AnyMemory], tuple[str, ...]]:
    """Return the valid answers of each enabled polled source, after the queries that are due, and the notes.

    A source that ends in an error keeps the answers that it had.
    """
    settings, now = context.settings, context.now
    sources = [source for source in context.parts.sources.polled if source.enabled(settings)]
    if not sources:
        return {}, ()
    nodes = every_node()
    managed = tuple(node for node in nodes if settings.manages(node.labels))
    memories: dict[str, AnyMemory] = {}
    problems: list[str] = []
    notes: set[str] = set()
    for source in sources:
        client = context.outside.clients.get(source.name)
        memory, lost = source.kept.known(ledger)
        problems += lost
        followed = {
            name
            for name, record in records.items()
            if guarded(f"{source.name} may follow {name}", partial(source.follows, record), False)[0]
        }
        every = source.section(settings).every

        def polled(
            source: PolledSource[Any, Any] = source,
            memory: AnyMemory = memory,
            followed: set[str] = followed,
            client: SourceClient | None = client,
            every: timedelta = every,
        ) -> AnyMemory:
            # Twice, because the answer of a list shows which VMs are queried alone.
            for _ in range(2):
                scopes = source.due(managed, memory, now, followed=followed)
                if client is not None and scopes:
                    listings = _ask(context.outside.beside, client, source.name, scopes)
                    notes.update(f"{source.name}: {one.note}" for one in listings if one.note)
                    # For every node: one that is managed again soon has the events that it had before.
                    memory = source.remembered(memory, listings, nodes, every, now)
            return memory

        memories[source.name], found = guarded(f"{source.name} is not queried", polled, memory)
        problems += found
    return memories, (*problems, *sorted(notes))


def _ask(
    beside: Beside, client: SourceClient, source: str, scopes: Sequence[Any]
) -> Sequence[Listing[Any, Any]]:
    """Return the answers, none if they come later: then a later pass remembers them.

    After an error in the client, each scope has a problem, and so its pause.
    """
    try:
        return beside.read((source, "asked"), partial(client.ask, scopes), most=1)
    except Late:
        return ()
    except ReconcilerError as error:
        # Clients raise nothing: what a service says harms its own source only.
        problem = f"an error in this program: {error}"
        return [Listing(scope, problem=problem) for scope in scopes]
