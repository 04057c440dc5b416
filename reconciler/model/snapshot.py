"""What one pass has read of the cluster, what it remembers, and what its sources report, joined."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from reconciler.model import limits
from reconciler.model.clocks import Disagreement, OwnTimes
from reconciler.model.content import CalendarText
from reconciler.model.drains import DrainProgress
from reconciler.model.errors import LedgerUnreadable
from reconciler.model.event import Answer, Kind, MaintenanceEvent, Reading
from reconciler.model.instructions import Ended, PersonHold
from reconciler.model.machine import Machine
from reconciler.model.moments import shifted
from reconciler.model.node import Node
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.polling import AnyMemory
from reconciler.model.problems import Unseen
from reconciler.model.reconciler import Reconciler
from reconciler.model.record import Record, Unreadable
from reconciler.model.values import Code, Name, replace

FIRST_PAUSE = timedelta(seconds=10)
"""The pause after the first try. Each further pause is twice as long, so the tries grow with the logarithm of
the time.
"""

NOT_WRITTEN = "MaintenanceNotWritten"
"""The reason of the Warning Event about such a write."""

MOST = 500
"""Nodes that are remembered, the first ones by name."""

_LONGEST = 300
_MOST_LOST = 20
_MOST_TIMES = 1000


class Undone(Struct, frozen=True):
    """A write of a node of which not all stayed.

    `lost` names what did not stay, as `NodeWrite.changes` and `NodeWrite.rewritten` do. `because` is in
    words. `times` counts the tries in a row, and `last` is the last one (UTC).
    """

    node: Name
    uid: Name
    lost: tuple[str, ...]
    because: str
    times: int
    last: datetime

    @property
    def until(self) -> datetime:
        """The moment of the next try (UTC)."""
        # Thirty doublings are centuries.
        return shifted(self.last, FIRST_PAUSE * 2 ** min(self.times - 1, 30))

    @property
    def words(self) -> str:
        """What happened, as a sentence without an end."""
        tries = f", {self.times} times in a row" if self.times > 1 else ""
        return f"{self.because}{tries}"

    def again(self, lost: Iterable[str], because: str, now: datetime) -> Undone:
        """Return what is remembered after one more try that did not stay; `now` is aware."""
        return replace(
            self,
            lost=tuple(sorted(lost)[:_MOST_LOST]),
            because=limits.text(because, _LONGEST),
            times=min(self.times + 1, _MOST_TIMES),
            last=now.replace(microsecond=0),
        )


class NodeAssessment(Struct, frozen=True):
    """One node's events, and the answer of each source; stale answers are unknown.

    `problem` is set if an error in this program kept the node from being assessed.
    """

    events: tuple[MaintenanceEvent, ...] = ()
    readings: tuple[Reading, ...] = ()
    problem: str = ""

    def answer(self, source: str) -> Answer | None:
        """The source's answer, None if the source is disabled."""
        return next((reading.answer for reading in self.readings if reading.source == source), None)


_NOTHING = NodeAssessment()


class Assessment(Struct, frozen=True):
    """The assessments of the nodes with any, by name. `absent` counts what is not installed, and why."""

    nodes: Mapping[str, NodeAssessment] = field(default_factory=dict)
    absent: Mapping[str, int] = field(default_factory=dict)

    def of(self, node: str) -> NodeAssessment:
        """The node's assessment, an empty one if there is none."""
        return self.nodes.get(node, _NOTHING)


class Agents(Struct, frozen=True):
    """Whether the node agent is installed, and on which nodes its pod is not ready.

    `covered` names the nodes with an agent's pod, None if no pod is missing. `problem` is set if the
    DaemonSet or its pods could not be read: the state of every agent is then unknown. `needs` is the
    permission that is missing for it, if that is the reason.
    """

    installed: bool = False
    not_ready: frozenset[str] = frozenset()
    covered: frozenset[str] | None = None
    problem: str = ""
    needs: str = ""


class Remediator(Struct, frozen=True):
    """AKS's own node remediator, from the ConfigMap kube-system/remediator-config.

    `on_freeze` is its preview that takes Freeze and live migration (node-auto-drain-evict-on-freeze.md).
    `problem` and `needs` are as those of Agents.
    """

    config_found: bool = False
    on_freeze: bool = False
    problem: str = ""
    needs: str = ""


class ServerVersion(Struct, frozen=True):
    """The version of the API server, such as `v1.33.2`; empty if it was not read.

    `problem` says why it can't be read.
    """

    text: str = ""
    problem: str = ""


class Replaced(Struct, frozen=True):
    """A node whose machine we deleted `at` (UTC).

    It counts as out of service until its replacement exists. `have` is the number of nodes in its pool with
    the replacement. While the node still exists, it counts itself.
    """

    node: Name
    uid: Name
    zone: Name
    pool: Name
    have: int
    at: datetime


class Ledger(Struct, frozen=True):
    """State that belongs to no node, in one ConfigMap.

    `last_start` (UTC) is for spacing. `replaced` are the nodes whose replacements may still be missing.
    `lasted` is how long cases that we ended took from the start of the drain, by the kind of their event.
    `holds` are those of people for all nodes, or for a pool, and `ended` is who ended the last of these, or
    released all nodes; only people write both. `undone` are the writes of nodes that did not stay. `parts`
    are the texts of plugins by their keys, read through their `LedgerPart`, and `new_parts` those that a
    write changes; an empty text removes what was there. `unread` says why the
    last start can't be read, empty where it can. `ahead` is a last start in the future as it was read: a
    write replaces it, though a last start never moves back otherwise. `as_of` is when it was read (UTC), if
    it can't be read now: it has what this process has written since, and not what people have.
    """

    last_start: datetime | None = None
    replaced: tuple[Replaced, ...] = ()
    lasted: Mapping[Kind, timedelta] = field(default_factory=dict)
    holds: tuple[PersonHold, ...] = ()
    ended: tuple[Ended, ...] = ()
    undone: tuple[Undone, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)
    new_parts: Mapping[str, str] = field(default_factory=dict)
    unread: str = ""
    ahead: datetime | None = None
    as_of: datetime | None = None

    def believed(self, times: OwnTimes) -> Ledger:
        """Return the ledger without times in the future."""
        last = times.maybe(self.last_start)
        gone = tuple(replace(one, at=times.of(one.at)) for one in self.replaced)
        undone = tuple(replace(one, last=times.of(one.last)) for one in self.undone)
        ahead = self.last_start if last != self.last_start else None
        return replace(self, last_start=last, ahead=ahead, replaced=gone, undone=undone)

    def merged(self, before: Ledger) -> Ledger:
        """Return this ledger as it is written over `before`.

        The last start never moves back, and parts that this ledger does not change stay as they are.
        """
        earlier = before.last_start if before.last_start != self.ahead else None
        last = max((one for one in (earlier, self.last_start) if one), default=None)
        parts = {name: text for name, text in {**before.parts, **self.new_parts}.items() if text}
        written = replace(self, last_start=last, ahead=None, as_of=None, parts=parts, new_parts={})
        return replace(written, holds=before.holds, ended=before.ended)


KEYS = frozenset({"lastStart", "replaced", "lasted", "holds", "endedHolds", "undone", "keptRecords"})
"""The keys of the core in the ConfigMap of the ledger. Each other key is a part."""

Value = TypeVar("Value")


class LedgerPart(Struct, Generic[Value], frozen=True):
    """A plugin's part of the ledger: one value of the plugin's own type, under a key of its own.

    `name` is the key in the ConfigMap, and `code` how the value is written as JSON and read. `empty` is the
    value of a ledger without the part, and `unread` that of one whose part can't be read, by default the
    empty one. `follows` says to people what follows then. A part that can't be read stays as it is until its
    plugin keeps something again, after a note. A text has at most `most` characters. A part that no plugin of
    this program knows stays as it is.
    """

    name: str
    code: Code
    empty: Value
    follows: str
    unread: Value | None = None
    most: int = limits.LEDGER_PART

    def of(self, ledger: Ledger) -> Value:
        """Return the value in a ledger. Raises LedgerUnreadable, with the name, if it can't be read."""
        text = ledger.new_parts.get(self.name, ledger.parts.get(self.name))
        if not text:
            return self.empty
        try:
            value: Value = _read(self.code, text, self.most)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            why = limits.text(limits.why_unreadable(error))
            raise LedgerUnreadable(f"`{self.name}` of the ledger can't be read: {why}") from error
        return value

    def known(self, ledger: Ledger) -> tuple[Value, tuple[str, ...]]:
        """Return what counts of the value in a ledger, and a note if it can't be read."""
        try:
            return self.of(ledger), ()
        except LedgerUnreadable as error:
            unread = self.empty if self.unread is None else self.unread
            return unread, (f"{error}; {self.follows}, and what is known then replaces it",)

    def put(self, ledger: Ledger, value: Value) -> Ledger:
        """Return the ledger with this value. Raises LedgerUnreadable for one that is too large.

        A value that the ledger has already is not written in another form.
        """
        try:
            if value == self.of(ledger):
                return ledger
        except LedgerUnreadable:
            # Who has read it has said so.
            pass
        text = "" if value == self.empty else _ENCODER.encode(self.code.write(value))
        if len(text) > self.most:
            raise LedgerUnreadable(
                f"`{self.name}` of the ledger would be longer than {self.most} characters, so it stays as it "
                "is"
            )
        return replace(ledger, new_parts={**ledger.new_parts, self.name: text})


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


# Each pass reads the same few texts again.
@lru_cache(maxsize=8)
def _read(code: Code, text: str, most: int) -> Any:
    return code.read(limits.loads(text, most))


class Problems(Struct, frozen=True):
    """What could not be read, in words.

    `cluster` concerns no node in particular. `nodes` are those of which something can't be read because of an
    error in this program, `pods` the nodes whose pods can't be read; both by node name. `namespaces` is why
    the namespaces can't be read, empty where they can. `unseen` is what we may not read.
    """

    cluster: tuple[str, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict)
    pods: Mapping[str, str] = field(default_factory=dict)
    namespaces: str = ""
    unseen: tuple[Unseen, ...] = ()

    @property
    def refused(self) -> dict[str, Unseen]:
        """What we may not read, by what that is."""
        return {unseen.what: unseen for unseen in self.unseen}


class Resting(Struct, frozen=True):
    """Nodes that the reader left out of the snapshot, because no decision is about them.

    They are in service, without an event that requires a drain now or later, a record or an unreadable
    source, and no event of another node names their VMs. There are `count` of them, all with the labels of
    `node`.
    """

    node: Node
    count: int


class FleetNode(Struct, frozen=True):
    """One node of the cluster, whether or not the plan is about it.

    `zone` and `pool` are empty if they are not known. `managed` is whether the settings select it. `closed`
    is why it takes no new pods, empty if it takes some.
    """

    node: str
    zone: str = ""
    pool: str = ""
    managed: bool = True
    closed: str = ""


class Aside(Struct, frozen=True):
    """The nodes that rest, and were left out of a snapshot; see passes/store.py.

    `groups` are those that no decision tells apart, and `nodes` all of them, by name. `quiet` and `events`
    count the answers of each source that report nothing and something, `last` is the newest of them (UTC),
    and `undated` are the sources with an answer that does not say when it was written. `absent` counts what
    is not installed, and why. `fleet` are all nodes, by name, and `uids` those of all nodes, also of those
    that do not rest; None if no node is left out. `plans` are the plans of nodes that are reported though
    they rest, by name, and `moments` are when answers about them become too old (UTC).
    """

    groups: tuple[Resting, ...] = ()
    nodes: Mapping[str, Node] = field(default_factory=dict)
    fleet: tuple[FleetNode, ...] | None = None
    uids: frozenset[str] | None = None
    quiet: Mapping[str, int] = field(default_factory=dict)
    events: Mapping[str, int] = field(default_factory=dict)
    last: Mapping[str, datetime] = field(default_factory=dict)
    undated: Collection[str] = ()
    absent: Mapping[str, int] = field(default_factory=dict)
    plans: Mapping[str, Any] = field(default_factory=dict)
    moments: Collection[datetime] = ()


class ReadAhead(Struct, frozen=True):
    """The pods of nodes that wait for a drain, as they were read in this pass or some minutes before.

    `unread` says for each other of these nodes why its pods are not known. `budgets` are all
    PodDisruptionBudgets, None if they were not read; `unbudgeted` is then why.
    `labels` are the keys of the labels of nodes that every pass with these settings reads.
    """

    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    budgets: tuple[PodDisruptionBudget, ...] | None = None
    unbudgeted: str = "the PodDisruptionBudgets were not read"
    labels: frozenset[str] = frozenset()


class Self(Struct, frozen=True):
    """Where the program runs: the names of its node and of its pod (`namespace/name`), and the pod's UID.

    The names are None outside a cluster, the UID is empty if it is not known. Our own node is drained last.
    `leads_since` is when this process acquired the lock (UTC), None if it has none.
    """

    node: str | None = None
    pod: str | None = None
    pod_uid: str = ""
    leads_since: datetime | None = None


class ReadForSettings(Struct, frozen=True):
    """What is read only if the settings, or an announced maintenance, ask for it.

    `namespaces` are the labels of every namespace, for rules of the drain. `groups` are the groups with
    pods on nodes that may be drained, by node (drain/workloads.py). `calendars` is what was read of the
    calendars of the settings, by their names. `ahead` is what says whether the drains of announced nodes
    can end. `machines` are those of the nodes that may be replaced, by node. `objects` are those
    that features show beside nodes, by their sign; a sign is missing if it is disabled or its objects
    can't be read. `of_features` is what a feature has read for its own decisions, by its name. `server`
    is the version of the API server.
    """

    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    calendars: Mapping[str, CalendarText] = field(default_factory=dict)
    ahead: ReadAhead = ReadAhead()
    machines: Mapping[str, Machine] = field(default_factory=dict)
    objects: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    of_features: Mapping[str, Any] = field(default_factory=dict)
    server: ServerVersion = ServerVersion()


class Snapshot(Struct, frozen=True):
    """Everything that a decision depends on, except the settings and `now`.

    `readings` and `records` are by node name; a node without a record with its UID has no record. `pods` has
    the nodes whose pods matter to this pass. `attached` are the volumes of pods that left, on nodes whose
    drain another process has begun; a node is missing if they were not read. `disagreement` is what the
    clocks of the API servers disagree about, None if they agree. `itself` is where we run. `memories` are
    the valid answers of each enabled polled source, including those of this pass. `problems` says what could
    not be read. `aside` are the nodes that rest, if they are not among the nodes. `reconciler` is who acts
    on the nodes.
    """

    nodes: tuple[Node, ...]
    readings: Mapping[str, tuple[Reading, ...]] = field(default_factory=dict)
    records: Mapping[str, Record | Unreadable] = field(default_factory=dict)
    pods: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    attached: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    for_settings: ReadForSettings = ReadForSettings()
    budgets: tuple[PodDisruptionBudget, ...] = ()
    agents: Agents = Agents()
    remediator: Remediator = Remediator()
    drains: Mapping[str, DrainProgress] = field(default_factory=dict)
    ledger: Ledger = Ledger()
    disagreement: Disagreement | None = None
    itself: Self = Self()
    memories: Mapping[str, AnyMemory] = field(default_factory=dict)
    problems: Problems = Problems()
    aside: Aside = Aside()
    reconciler: Reconciler = Reconciler()

    @property
    def spread(self) -> timedelta:
        """How far the fastest clock that counts is ahead of the time of the plan."""
        return self.disagreement.spread if self.disagreement is not None else timedelta()

    @property
    def behind(self) -> timedelta:
        """How far the time of the plan, that of the slowest clock, is behind the time of the process."""
        return self.disagreement.behind if self.disagreement is not None else timedelta()

    def every_node(self) -> tuple[Node, ...]:
        """Return all nodes, also those that rest. It takes as long as there are nodes."""
        return (*self.nodes, *self.aside.nodes.values())
