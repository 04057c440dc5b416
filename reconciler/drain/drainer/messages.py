"""The events that go into the core of the drainer, and the commands that come out. They are values."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from reconciler.model.drains import DrainOrder
from reconciler.model.errors import ReconcilerError
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.ports import BudgetChange, PodChange


class Limits(Struct, frozen=True):
    """Limits for parallel requests, and times.

    - `parallel` and `per_node`: writes in flight, for all drains and for one node; see Places.
    - `readers`: reads in flight. Writes that hang keep none of them waiting.
    - `check_every`: an eviction is sent only if the node was seen cordoned within this time.
    - `check_ahead`: the age of that look at which the node is read again, while evictions are sent.
    - `check_idle`: how often the node is read otherwise.
    - `backoff_first`: the first pause before a retry. It doubles up to `backoff_last`.
    - `slow`: the pause for errors that only a person can fix.
    - `denied_first`: the first pause after a webhook denied an eviction. It doubles up to `denied_last`,
      which also limits the pause that the webhook asks for.
    - `attachments`: the longest wait for volumes after the last pod, read every `attachments_every`.
    - `budgets_from`: from this number of queued pods on, the budgets are watched.
    - `namespaces`: up to this number of namespaces with pods to move, only their budgets are watched.
    - `longest_wait`: the longest pause that an answer may ask for with Retry-After.
    - `reread_every`: the longest time for which a drain relies on its watches. A watch event can get lost, so
      after this time the pods are listed again, and evictions no longer wait for the list of budgets.
    - `overdue`: the time after a pod's grace period after which the pods are listed again.
    - `slot_kept`: how long a drain keeps its slot after its last pod left, before it counts as blocked.
    """

    parallel: int = 50
    per_node: int = 20
    readers: int = 10
    check_every: timedelta = timedelta(seconds=3)
    check_ahead: timedelta = timedelta(seconds=2)
    check_idle: timedelta = timedelta(seconds=10)
    backoff_first: timedelta = timedelta(seconds=1)
    backoff_last: timedelta = timedelta(seconds=15)
    slow: timedelta = timedelta(seconds=30)
    denied_first: timedelta = timedelta(seconds=5)
    denied_last: timedelta = timedelta(seconds=30)
    attachments: timedelta = timedelta(seconds=60)
    attachments_every: timedelta = timedelta(seconds=2)
    budgets_from: int = 5
    namespaces: int = 4
    longest_wait: timedelta = timedelta(minutes=5)
    reread_every: timedelta = timedelta(seconds=30)
    overdue: timedelta = timedelta(seconds=5)
    slot_kept: timedelta = timedelta(seconds=5)

    def asked_wait(self, seconds: float | None) -> timedelta:
        """Return the pause that an answer asks for, between 0 and `longest_wait`."""
        longest = self.longest_wait.total_seconds()
        return timedelta(seconds=min(max(seconds or 0.0, 0.0), longest))


# Commands. `drain` is the number of the attempt, so that late answers for an earlier attempt are ignored.


class CheckNode(Struct, frozen=True):
    """Read the node."""

    node: str
    drain: int


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
    """Read which volumes are still attached."""

    node: str
    drain: int


class Evict(Struct, frozen=True):
    """Evict a pod. `own`: it is the pod of the reconciler itself."""

    node: str
    drain: int
    pod: Pod
    grace: int | None
    own: bool = False


class Delete(Struct, frozen=True):
    """Delete a pod."""

    node: str
    drain: int
    pod: Pod
    grace: int | None
    own: bool = False


class Restart(Struct, frozen=True):
    """Restart the Deployment of a pod that is its only replica."""

    node: str
    drain: int
    pod: Pod


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
    """The answer to CheckNode."""

    node: str
    drain: int
    found: Node | None = None
    error: ReconcilerError | None = None


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
