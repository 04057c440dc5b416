"""The events that go into the core of the drainer, and the commands that come out. They are values."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.model.drains import VOLUMES_AWAITED, DrainOrder, Refused
from reconciler.model.errors import ReconcilerError
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.ports import BudgetChange, PodChange


class Backoff(Struct, frozen=True):
    """Pauses before retries: the first one, which doubles up to the last."""

    first: timedelta
    last: timedelta

    def pause(self, failures: int) -> timedelta:
        """Return the pause after this many earlier failures; it is never zero."""
        factor: int = 1 << min(failures, 16)
        return min(self.last, self.first * factor)


class CordonChecks(Struct, frozen=True):
    """How often the node is read, to see that it is still cordoned.

    An eviction is sent only if a read that was sent within `within` has shown the cordon. No watch counts: an
    event, or a bookmark, may have been on its way for any time. While evictions are sent, the node is read
    again once that read is older than `ahead`, otherwise every `idle`.
    """

    within: timedelta = timedelta(seconds=3)
    ahead: timedelta = timedelta(seconds=2)
    idle: timedelta = timedelta(seconds=10)


class Limits(Struct, frozen=True):
    """Limits for parallel requests, and times.

    - `parallel` and `per_node`: writes in flight, for all drains and for one node; see Places. Most of them
      wait: from Kubernetes 1.31 on, an eviction takes 0.1 s, until the cache of budgets is known to be new.
    - `cordon`: when the node is read.
    - `retry`: the pauses before retries, `slow` those for errors that only a person can fix.
    - `denied`: the pauses after a webhook denied an eviction. The last one also limits the pause that the
      webhook asks for.
    - `attachments`: the longest wait for volumes after the last pod, read every `attachments_every`.
    - `budgets_from`: from this number of queued pods on, the budgets are watched.
    - `namespaces`: up to this number of namespaces with pods to move, only their budgets are watched.
    - `longest_wait`: the longest pause that an answer may ask for with Retry-After.
    - `reread_every`: the longest time for which a drain relies on its watches. A watch event can get lost, so
      after this time the pods are listed again, and evictions no longer wait for the list of budgets.
    - `overdue`: the time after a pod's grace period after which the pods are listed again.
    - `slot_kept`: how long a drain keeps its slot after its last pod left, before it counts as blocked.
    """

    parallel: int = 100
    per_node: int = 20
    cordon: CordonChecks = CordonChecks()
    retry: Backoff = Backoff(timedelta(seconds=1), timedelta(seconds=15))
    slow: Backoff = Backoff(timedelta(seconds=30), timedelta(seconds=120))
    denied: Backoff = Backoff(timedelta(seconds=5), timedelta(seconds=30))
    attachments: timedelta = VOLUMES_AWAITED
    attachments_every: timedelta = timedelta(seconds=2)
    budgets_from: int = 5
    namespaces: int = 4
    longest_wait: timedelta = timedelta(minutes=1)
    reread_every: timedelta = timedelta(seconds=30)
    overdue: timedelta = timedelta(seconds=5)
    slot_kept: timedelta = timedelta(seconds=5)

    def asked_wait(self, seconds: float | None) -> timedelta:
        """Return the pause that an answer asks for, between 0 and `longest_wait`."""
        longest = self.longest_wait.total_seconds()
        return timedelta(seconds=min(max(seconds or 0.0, 0.0), longest))


# Commands. `drain` is the number of the attempt, so that late answers for an earlier attempt are ignored.


class CheckNode(Struct, frozen=True):
    """Read the node. If `since` (UTC) is set, a read of others is enough that was sent then or later."""

    node: str
    drain: int
    since: datetime | None = None


class WatchPods(Struct, frozen=True):
    """Watch the node's pods."""

    node: str
    watch: int


class WatchBudgets(Struct, frozen=True):
    """Watch the budgets of a namespace, or all of them with ""."""

    watch: int
    namespace: str


class Unwatch(Struct, frozen=True):
    """Stop a watch by its number."""

    watch: int


class ListPods(Struct, frozen=True):
    """Read the node's pods consistently, at the end of a drain and when an event may be lost."""

    node: str
    drain: int


class ListAttachments(Struct, frozen=True):
    """Read which volumes are still attached. `staying` are claims of pods that stay (`namespace/name`)."""

    node: str
    drain: int
    staying: frozenset[str] = frozenset()


class Evict(Struct, frozen=True):
    """Evict a pod, not after `until` (UTC). `own`: it is the pod of the reconciler itself.

    `refused` is what has refused that before.
    """

    node: str
    drain: int
    pod: Pod
    grace: int | None
    own: bool = False
    until: datetime | None = None
    refused: tuple[Refused, ...] = ()


class Delete(Struct, frozen=True):
    """Delete a pod, not after `until` (UTC). `refused` is what has refused its eviction before."""

    node: str
    drain: int
    pod: Pod
    grace: int | None
    own: bool = False
    until: datetime | None = None
    refused: tuple[Refused, ...] = ()


class Restart(Struct, frozen=True):
    """Restart the Deployment of a pod that is its only replica, not after `until` (UTC)."""

    node: str
    drain: int
    pod: Pod
    until: datetime | None = None


Write = Evict | Delete | Restart
Watch = WatchPods | WatchBudgets
Request = CheckNode | ListPods | ListAttachments | Write
Command = Watch | Unwatch | Request


# Events.


class Start(Struct, frozen=True):
    """Drain this node. The same order again updates only timeout, deadline and options."""

    order: DrainOrder


class Stop(Struct, frozen=True):
    """Stop evictions on this node."""

    node: str
    because: str = "stopped"


class PodNews(Struct, frozen=True):
    """One event of a pod watch. `watch` is the number in WatchPods."""

    node: str
    watch: int
    change: PodChange


class BudgetNews(Struct, frozen=True):
    """One event of a budget watch. `watch` is the number in WatchBudgets."""

    change: BudgetChange
    watch: int


class WatchEnded(Struct, frozen=True):
    """A watch ended by itself. `node` is None for the budget watch."""

    node: str | None
    watch: int
    error: ReconcilerError | None = None


class NodeSeen(Struct, frozen=True):
    """The answer to CheckNode. `at` is when a read of others was sent (UTC), None for its own."""

    node: str
    drain: int
    found: Node | None = None
    error: ReconcilerError | None = None
    at: datetime | None = None


class PodsSeen(Struct, frozen=True):
    """The answer to ListPods."""

    node: str
    drain: int
    pods: tuple[Pod, ...] = ()
    error: ReconcilerError | None = None


class AttachmentsSeen(Struct, frozen=True):
    """The answer to ListAttachments."""

    node: str
    drain: int
    names: tuple[str, ...] = ()
    error: ReconcilerError | None = None


class WriteDone(Struct, frozen=True):
    """The answer to a write. `restarted` names the Deployment that Restart has restarted."""

    write: Write
    error: ReconcilerError | None = None
    restarted: str = ""


class Tick(Struct, frozen=True):
    """Time has passed."""


Answer = NodeSeen | PodsSeen | AttachmentsSeen | WriteDone
Event = Start | Stop | PodNews | BudgetNews | WatchEnded | Answer | Tick
