"""What the core of the drainer is told, and what it asks for: values, so that anything may drive it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from reconciler.errors import ReconcilerError
from reconciler.model.drains import DrainOrder
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.ports import BudgetChange, PodChange


@dataclass(frozen=True, slots=True)
class Limits:
    """How many requests at once, and how patient.

    `parallel` and `per_node` are writes in flight, over all drains and on one node. `check_every`: an
    eviction is only sent when the node was seen cordoned so recently; `check_idle`: how often it is looked
    at meanwhile. `backoff_first` doubles up to `backoff_last`; `slow` is for what only a person can mend.
    `attachments` bounds the wait for volumes after the last pod, looked at every `attachments_every`.
    """

    parallel: int = 50
    per_node: int = 20
    check_every: timedelta = timedelta(seconds=3)
    check_idle: timedelta = timedelta(seconds=10)
    backoff_first: timedelta = timedelta(seconds=1)
    backoff_last: timedelta = timedelta(seconds=15)
    slow: timedelta = timedelta(seconds=30)
    attachments: timedelta = timedelta(seconds=60)
    attachments_every: timedelta = timedelta(seconds=2)
    budgets_from: int = 5


# What the core asks for. `drain` numbers the attempt, so that a late answer is never taken for a new one's.


@dataclass(frozen=True, slots=True)
class CheckNode:
    """Read the node."""

    node: str
    drain: int


@dataclass(frozen=True, slots=True)
class WatchPods:
    """Watch the node's pods."""

    node: str
    watch: int


@dataclass(frozen=True, slots=True)
class WatchBudgets:
    """Watch all budgets."""

    watch: int


@dataclass(frozen=True, slots=True)
class Unwatch:
    """End a watch by its number."""

    watch: int


@dataclass(frozen=True, slots=True)
class ListPods:
    """Read the node's pods once more, consistently, before it is called drained."""

    node: str
    drain: int


@dataclass(frozen=True, slots=True)
class ListAttachments:
    """Read which volumes are still attached."""

    node: str
    drain: int


@dataclass(frozen=True, slots=True)
class Evict:
    """Evict a pod; `own` is the one that we run in."""

    node: str
    drain: int
    pod: Pod
    grace: int | None
    own: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a pod."""

    node: str
    drain: int
    pod: Pod
    grace: int | None
    own: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    """Restart the workload of a pod of which there is only one."""

    node: str
    drain: int
    pod: Pod


Write = Evict | Delete | Restart
Watch = WatchPods | WatchBudgets
Request = CheckNode | ListPods | ListAttachments | Write
Command = Watch | Unwatch | Request


# What the core is told.


@dataclass(frozen=True, slots=True)
class Start:
    """Drain this node; the same order again changes nothing but timeout, deadline and options."""

    order: DrainOrder


@dataclass(frozen=True, slots=True)
class Stop:
    """No more evictions there."""

    node: str
    because: str = "stopped"


@dataclass(frozen=True, slots=True)
class PodNews:
    """One item of a node's watch; `watch` is the number that WatchPods gave it."""

    node: str
    watch: int
    change: PodChange


@dataclass(frozen=True, slots=True)
class BudgetNews:
    """One item of the watch of budgets."""

    change: BudgetChange


@dataclass(frozen=True, slots=True)
class WatchEnded:
    """A watch ended although nobody left it; `node` None is that of the budgets."""

    node: str | None
    watch: int
    error: ReconcilerError | None = None


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """The answer to CheckNode."""

    node: str
    drain: int
    found: Node | None = None
    error: ReconcilerError | None = None


@dataclass(frozen=True, slots=True)
class PodsSeen:
    """The answer to ListPods."""

    node: str
    drain: int
    pods: tuple[Pod, ...] = ()
    error: ReconcilerError | None = None


@dataclass(frozen=True, slots=True)
class AttachmentsSeen:
    """The answer to ListAttachments."""

    node: str
    drain: int
    names: tuple[str, ...] = ()
    error: ReconcilerError | None = None


@dataclass(frozen=True, slots=True)
class WriteDone:
    """The answer to a write; `said` is what Restart returned."""

    write: Write
    error: ReconcilerError | None = None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Answer = NodeSeen | PodsSeen | AttachmentsSeen | WriteDone
Event = Start | Stop | PodNews | BudgetNews | WatchEnded | Answer | Tick
