"""What the stages need from outside, as protocols. The clients and the simulation implement them.

Every call may raise the errors of `reconciler.model.errors.ClusterError`. Reads are consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from threading import Condition
from typing import Any, Protocol, TypeVar, runtime_checkable

from msgspec import Struct, field

from reconciler.model.clocks import Disagreement
from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.drains import DrainOrder, DrainProgress
from reconciler.model.ended_case import EndedCase
from reconciler.model.errors import Late
from reconciler.model.instructions import PersonHold
from reconciler.model.machine import MACHINES, Machine, MachineRef, MachineWriter
from reconciler.model.messages import ProfileMessage
from reconciler.model.node import Node, Wanted
from reconciler.model.plan import Notice
from reconciler.model.pod import Pod, PodDisruptionBudget, Volume
from reconciler.model.problems import expected
from reconciler.model.reconciler import Reconciler
from reconciler.model.snapshot import Agents, Ledger, ReadAhead, Remediator, Resting, Self, ServerVersion
from reconciler.model.values import replace
from reconciler.model.writes import WRITER, ClusterWriter

Value = TypeVar("Value")


class Notification(Struct, frozen=True):
    """One notice about one node. `uid` distinguishes the node from a later one with the same name."""

    node: str
    uid: str
    notice: Notice


class LookRequest(Struct, frozen=True):
    """What a pass wants to see at its beginning: these parts of the nodes, the ledger, and what else is set.

    `agents` is the state of the node agent, `remediator` AKS's remediator-config, `server` the version of the
    API server. `changes`: which nodes have changed since the last look that asked for that.
    """

    nodes: Wanted
    agents: bool = False
    remediator: bool = False
    server: bool = False
    changes: bool = False


class Look(Struct, frozen=True):
    """What a look at the cluster shows. What can't be read is the error; what nobody asked for is empty.

    `nodes` are all nodes by name, which do not change any more. `changed` are the names of those that have
    changed, also of those that are gone; None if any may have changed. The ledger may be the last one that
    this process has read, with `as_of`.
    """

    nodes: Mapping[str, Node]
    changed: frozenset[str] | None = None
    agents: Agents | Exception = Agents()
    remediator: Remediator | Exception = Remediator()
    server: ServerVersion | Exception = ServerVersion()
    ledger: Ledger | Exception = Ledger()

    @property
    def in_order(self) -> tuple[Node, ...]:
        """All nodes, sorted by name."""
        return tuple(node for _, node in sorted(self.nodes.items()))


class RestReader(Protocol):
    """Reads one by one what a look shows beside the nodes."""

    def agents(self) -> Agents:
        """The state of the node agent."""

    def remediator(self) -> Remediator:
        """AKS's remediator-config."""

    def server_version(self) -> ServerVersion:
        """The version of the API server."""

    def ledger(self) -> Ledger:
        """The ledger in our ConfigMap."""


def with_rest(look: Look, request: LookRequest, reader: RestReader) -> Look:
    """Return the look at the nodes with what else was requested."""
    return replace(
        look,
        agents=attempt(reader.agents) if request.agents else look.agents,
        remediator=attempt(reader.remediator) if request.remediator else look.remediator,
        server=attempt(reader.server_version) if request.server else look.server,
        ledger=attempt(reader.ledger),
    )


def attempt(read: Callable[[], Value]) -> Value | Exception:
    """Return what was read, or the error."""
    try:
        return read()
    except Exception as error:  # noqa: BLE001 - who asked for it decides what follows
        return error


def read_of(value: Value | Exception) -> Value:
    """Return a part of a look; raises the error that it is."""
    if isinstance(value, Exception):
        raise value
    return value


class ClusterReader(Protocol):
    """Reads of one pass."""

    def look(self, request: LookRequest) -> Look:
        """Return what a pass begins with; raises only where the nodes can't be read."""

    def completed(self, nodes: Sequence[Node], wanted: Wanted) -> Sequence[Node]:
        """Return these nodes of a look, with the records of theirs that are kept elsewhere."""

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """The pods of one node, or of all."""

    def pods_with(self, label: str) -> tuple[Pod, ...]:
        """The pods of all nodes that have a label of this key."""

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Every PodDisruptionBudget."""

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of every namespace, by name."""

    def ledger(self) -> Ledger:
        """The ledger in our ConfigMap; an empty ledger if there is none yet.

        If it does not answer, it may be the last one that this process has read, with `as_of`.
        """

    def holds(self) -> tuple[PersonHold, ...]:
        """The holds of many nodes, as the ledger has them after this call began."""

    def disagreement(self) -> Disagreement | None:
        """What answers of the last minute say that contradict the time of passes, None if they agree."""

    def cordoned_by_us(self, nodes: Sequence[Node]) -> frozenset[str]:
        """The names of those that a pass has cordoned; what can't be read is left out."""

    def uncordoned_by(self, node: Node) -> str:
        """The field manager that set `spec.unschedulable` last, empty if that is not known."""

    def unplaced(self) -> tuple[Pod, ...]:
        """The pods of the cluster that have no node yet."""

    def attached(self, staying: Mapping[str, frozenset[str]]) -> Mapping[str, tuple[str, ...]]:
        """The VolumeAttachments on each of these nodes whose pods have left.

        `staying` has the claims of the pods of each node, as `namespace/name`.
        """


class AheadReader(Protocol):
    """Reads what says whether drains can end that have not begun."""

    def read(self, nodes: Sequence[str], now: datetime, *, drains: bool, asks: bool = True) -> ReadAhead:
        """Return what is known of the pods of these nodes, the most urgent first; `now` is aware.

        What was read some minutes before counts, and one call reads a bounded number of nodes. `drains` is
        whether the budgets matter to another node, because of a drain or of what the platform has met.
        Without `asks` nothing is read, because something else can't wait. Raises nothing.
        """


class CalendarReader(Protocol):
    """Reads the calendars that the settings name."""

    def read(self, places: Sequence[CalendarPlace]) -> Mapping[str, CalendarText]:
        """Return what each place has now, by the name of its calendar. Raises nothing."""


class VolumeReader(Protocol):
    """Reads where volumes can be mounted."""

    def volumes(self) -> tuple[Volume, ...]:
        """Every PersistentVolume that is bound to a claim."""


@runtime_checkable
class PartialReader(Protocol):
    """A reader whose list of nodes leaves out those that no decision is about, and counts them instead."""

    def resting(self) -> tuple[Resting, ...]:
        """Return the nodes that the last list left out, nodes with the same labels together."""


@runtime_checkable
class LockReader(Protocol):
    """A reader that sees the locks of other reconcilers."""

    def reconciler_of(self, namespace: str) -> Reconciler:
        """Return who makes passes with the lock in this namespace; raises ClusterError."""


class Notifier(Protocol):
    """Reports to people what was done. Nothing waits for it, and nothing depends on it."""

    def notify(self, notification: Notification) -> bool:
        """Send the notice, and return whether that is settled; raises LockLost if the lock is not ours.

        False means that a later try may succeed: the next pass sends a notice with `once` again. True means
        that it was sent, now or before, or that it is refused for good. A failure is logged, not raised.
        """


class EndedCases(Protocol):
    """Keeps the cases that have ended. Nothing waits for it, and nothing depends on it."""

    def keep(self, cases: Sequence[EndedCase]) -> None:
        """Keep the cases that end with a pass, before it closes them. A failure is logged, not raised."""


class Outbox(Protocol):
    """Keeps the messages of profiles until they are sent."""

    def keep(self, messages: Sequence[ProfileMessage]) -> None:
        """Keep them, and return once they survive a kill, or after a few seconds. Raises nothing.

        One that was kept before, or sent, is not kept again.
        """


class SourceClient(Protocol):
    """The service that a polled source queries, such as a cloud's API."""

    def ask(self, scopes: Sequence[Any], /) -> tuple[Any, ...]:
        """Query each scope once, in order, and return one result for each.

        A scope and its answer have the source's own types. Raises nothing and never waits: a failure is part
        of the answer, and once the service throttles, the remaining scopes are not queried.
        """


class MachineReader(Protocol):
    """Reads the machines of nodes: objects in the cluster, or AKS agent pools."""

    def machines(self, refs: Sequence[MachineRef]) -> tuple[Machine, ...]:
        """Return each machine as it is now, in order; a failure is its `problem`. Raises nothing."""


class Machines(MachineReader, MachineWriter, Protocol):
    """Reads and writes machines."""


class Drains(Protocol):
    """The drainer. Its drains continue by themselves, also between passes."""

    def start(self, order: DrainOrder) -> None:
        """Start a drain, or change the order of a running one."""

    def stop(self, node: str) -> None:
        """Stop evictions from a node."""

    def progress(self) -> Mapping[str, DrainProgress]:
        """Return every drain started here, by node."""

    def watched_pods(self, node: str, uid: str) -> tuple[Pod, ...] | None:
        """Return the pods of the node with this UID, as its drain watches them, or has just listed them.

        They are sorted by namespace and name. None: no drain knows them now.
        """


class PodGone(Struct, frozen=True):
    """A watch reports that the pod with this UID is gone."""

    uid: str


class BudgetGone(Struct, frozen=True):
    """A watch reports that the budget `namespace/name` is gone."""

    key: str


class Listed(Struct, frozen=True):
    """A watch has yielded everything that existed when it listed: at the start, and after each 410.

    Until then it is unknown whether a node has other pods, or a pod has a budget.
    """


PodChange = Pod | PodGone | Listed
BudgetChange = PodDisruptionBudget | BudgetGone | Listed


class Clock(Protocol):
    """Time as a dependency: the system's in a job, a virtual one in the simulation and in tests."""

    def now(self) -> datetime:
        """The time, aware, UTC."""

    def wait(self, condition: Condition, timeout: float | None) -> None:
        """Wait on a condition that the caller holds, until it is notified or `seconds` have passed."""


class NodeRead(Struct, frozen=True):
    """A node as a read shows it, and when that read was sent (UTC): it proves nothing about later."""

    node: Node
    at: datetime


class Evictor(Protocol):
    """What the drainer needs of the cluster; writes check the lock as those of ClusterWriter do."""

    def node(self, name: str) -> Node | None:
        """One node as it is now, None if it is gone."""

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """The pods of one node, or of all."""

    def watch_pods(self, node: str) -> AbstractContextManager[Iterator[PodChange]]:
        """List, then watch the pods of one node.

        Yields each pod as it is listed, then `Listed`, then each change. Ends when any thread leaves the
        context. Reconnects by itself, and lists again after a 410: pods that are missing in the new list
        are PodGone.
        """

    def watch_budgets(self, namespace: str = "") -> AbstractContextManager[Iterator[BudgetChange]]:
        """List, then watch the PodDisruptionBudgets of a namespace, all with "", like `watch_pods`."""

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """Evict by policy/v1 with the UID as precondition.

        Raises NotFound (gone), Conflict (another UID has the name), TooManyRequests (a budget refuses; its
        causes name it), Forbidden (reason NamespaceTerminating among others), Rejected (500: two budgets).
        """

    def delete(self, pod: Pod, *, grace: int | None) -> None:
        """Delete with the UID as precondition; raises what `evict` raises, except TooManyRequests."""

    def restart(self, pod: Pod, now: datetime) -> str:
        """Restart the Deployment that owns the pod as `kubectl rollout restart` does; returns its name.

        Raises Rejected with the reason if the workload can't be restarted this way.
        """

    def attachments(self, node: str, staying: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """The names of the VolumeAttachments that are still on the node and whose pods have left.

        `staying` are the claims of pods that stay, as `namespace/name`.
        """


class SideBySide(Protocol):
    """Does works of which none waits for another, maybe several at once."""

    def __call__(self, works: Mapping[str, Callable[[], Value]], /) -> Mapping[str, Value | Late]:
        """Return each result by its name; raises the first error, and then begins no other.

        Late for a work without a result in time. The same is not done again until that work has ended.
        """


def one_by_one(works: Mapping[str, Callable[[], Value]], /) -> Mapping[str, Value | Late]:
    """Do the works in their order, and wait for each; see SideBySide."""
    return {name: work() for name, work in works.items()}


What = tuple[str, ...]
"""What is read or written beside a pass, for people: its kind, and what of this kind."""


def no_answer_to(what: What) -> str:
    """Return in words that the program can't use the answer."""
    return f"no answer to: {' '.join(what)}"


COUNTS = 60.0
"""Seconds for which the last answer counts while no newer one comes, where a decision may follow from it."""

MOST = 3
"""Requests of one kind that may be without an answer. No other of the kind begins until one of them ends."""


class Beside(Protocol):
    """Does what no cordon needs beside the pass, which waits a bounded time for all of it."""

    def read(
        self,
        what: What,
        work: Callable[[], Value],
        *,
        lasts: float = 0.0,
        counts: float = 0.0,
        most: int = MOST,
        needed: bool = False,
    ) -> Value:
        """Return what the work returns, or its error; Late if neither comes in time.

        An error that no code expects is a ClusterError, see `expected`.

        For `lasts` seconds an answer counts as new, and nothing is asked. If no answer comes in time, or
        Unreachable, one that is up to `counts` seconds old counts. What comes late counts as new for the next
        pass. Works with the same kind are `most` at once. `needed`: without any answer, the pass waits.
        """

    def forget(self, what: What) -> None:
        """Let no answer count that was asked for before."""

    def write(self, what: What, work: Callable[[], Value], *, most: int = MOST) -> Value:
        """Return what the work returns, or its error; Late if neither comes in time.

        The same thing is not written again until that work has ended.
        """


class AtOnce:
    """Does each work in its place, and waits for it."""

    def read(self, what: What, work: Callable[[], Value], **_: Any) -> Value:
        """Return what the work returns, or raise its error."""
        return expected(no_answer_to(what), work)

    def forget(self, what: What) -> None:
        """Forget nothing: no answer is kept."""

    def write(self, what: What, work: Callable[[], Value], **_: Any) -> Value:
        """Return what the work returns, or raise its error."""
        return work()


class RequestProgress(Struct, frozen=True):
    """The requests of this process that features await: how many wait for an answer, and how many have one.

    An answer is known to the process only, until a pass writes to the record what follows from it.
    """

    waiting: int = 0
    answered: int = 0


@runtime_checkable
class Requesting(Protocol):
    """A client of a feature whose answers a pass has to read before the process ends."""

    def progress(self) -> RequestProgress:
        """Return what this process has asked so far."""


class Outside(Struct, frozen=True, kw_only=True):
    """What a pass reads.

    It is enough for a rehearsal, and nothing in it writes to the cluster. `clients` are the clients of polled
    sources, by the source's name, and those of features, by the name of their `Port`. A source without a
    client uses only the answers in the ledger. `reconciler` is who acts on the nodes, as a process knows it
    before the pass. Without `calendars`, those of the settings have the content that the settings were given.
    What no cordon needs goes through `beside`, as the reader's own requests do.
    """

    reader: ClusterReader
    clients: Mapping[str, Any] = field(default_factory=dict)
    machines: MachineReader | None = None
    calendars: CalendarReader | None = None
    ahead: AheadReader | None = None
    itself: Self = Self()
    reconciler: Reconciler = Reconciler()
    beside: Beside = AtOnce()

    def client(self, name: str) -> Any | None:
        """Return the client of this name, None if this process does not have it."""
        return self.clients.get(name)


class WritableOutside(Outside, frozen=True, kw_only=True):
    """What a pass reads and changes: every writer checks the lock first.

    `ended` gets the cases that end, `outbox` the messages of profiles. None: nobody keeps them. Writes of
    different nodes go through `side_by_side`.
    """

    writer: ClusterWriter
    drainer: Drains
    notifier: Notifier
    machines: Machines | None = None
    ended: EndedCases | None = None
    outbox: Outbox | None = None
    side_by_side: SideBySide = one_by_one

    def client(self, name: str) -> Any | None:
        """Return what a task is performed with, None if this process does not have it."""
        ours = {WRITER.name: self.writer, MACHINES.name: self.machines}
        return ours[name] if name in ours else self.clients.get(name)
