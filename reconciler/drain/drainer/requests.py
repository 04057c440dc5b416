"""Sends the requests that the core wants, and says what their answers mean.

Sources: kubernetes pkg/registry/core/pod/storage/eviction.go (the answers to an eviction), and kubectl
pkg/drain/drain.go (how it reacts to them). A webhook may deny with any status, so its text counts first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from enum import Enum, auto

from msgspec import Struct

from reconciler.drain.drainer.messages import (
    Answer,
    AttachmentsSeen,
    CheckNode,
    Delete,
    Evict,
    ListAttachments,
    ListPods,
    NodeSeen,
    PodsSeen,
    Request,
    Restart,
    Watch,
    WatchBudgets,
    WatchEnded,
    WatchPods,
    WriteDone,
)
from reconciler.drain.refusal import read_denial
from reconciler.model.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    LockLost,
    NotFound,
    NoThread,
    ReconcilerError,
    Rejected,
    TooLate,
    TooManyRequests,
    Unreachable,
)
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import Evictor

_NEEDS = re.compile(r"disruption budget (\S+) needs (\d+) healthy pods and has (\d+)")


class RefusalMeaning(Enum):
    """What to do about a refusal."""

    GONE = auto()
    BUDGET = auto()
    DENIED = auto()
    LATER = auto()
    SLOWLY = auto()
    DYING = auto()
    STOP = auto()


class EvictionRefusal(Struct, frozen=True):
    """One refusal.

    `budget` is the `namespace/name` from the answer, `wait` its Retry-After in seconds. `denied_by` names the
    webhook or the policy that denied the request, empty if none did.
    """

    meaning: RefusalMeaning
    because: str
    budget: str = ""
    wait: float | None = None
    denied_by: str = ""

    @property
    def by(self) -> str:
        """What has refused the eviction, in words."""
        if self.meaning is RefusalMeaning.BUDGET:
            return f"PDB {self.budget}" if self.budget else "a PDB"
        return self.denied_by or "the API server"


def read_refusal(error: ReconcilerError, pod: Pod, budgets: Iterable[PodDisruptionBudget]) -> EvictionRefusal:
    """Return what an error means for a pod that these budgets select."""
    if isinstance(error, ClusterError) and (denial := read_denial(str(error))) is not None:
        if not denial.reached:
            because = f"{denial.by} can't be called: {denial.words}"
            return EvictionRefusal(RefusalMeaning.LATER, because, wait=error.retry_after)
        because = f"denied by {denial.by}: {denial.words}"
        return EvictionRefusal(RefusalMeaning.DENIED, because, wait=error.retry_after, denied_by=denial.by)
    match error:
        case NotFound() | Conflict():
            # 409 is the UID precondition: another pod has the name now, so ours is gone.
            return EvictionRefusal(RefusalMeaning.GONE, "gone")
        case TooManyRequests():
            return _refused(error, pod, tuple(budgets))
        case Forbidden():
            words = (error.reason, *error.causes)
            terminates = any("NamespaceTerminating" in word for word in words)
            if terminates or "it is being terminated" in str(error):
                return EvictionRefusal(
                    RefusalMeaning.DYING, f"is in namespace {pod.namespace}, which is being deleted"
                )
            return EvictionRefusal(RefusalMeaning.SLOWLY, f"not allowed: {error}")
        case Unreachable():
            return EvictionRefusal(
                RefusalMeaning.LATER, f"the API server did not answer: {error}", wait=error.retry_after
            )
        case Rejected() if "more than one PodDisruptionBudget" in str(error):
            known = tuple(budgets)
            because = two_budgets(known) if len(known) > 1 else f"is selected by several PDBs: {error}"
            return EvictionRefusal(RefusalMeaning.SLOWLY, because)
        case Rejected():
            return EvictionRefusal(RefusalMeaning.SLOWLY, f"refused: {error}")
        case TooLate() | NoThread():
            return EvictionRefusal(RefusalMeaning.LATER, str(error))
        case LockLost():
            return EvictionRefusal(RefusalMeaning.STOP, f"the lock is lost: {error}")
        case _:
            return EvictionRefusal(RefusalMeaning.SLOWLY, str(error))


_REASONS = {
    RefusalMeaning.BUDGET: "budget",
    RefusalMeaning.DENIED: "webhook",
    RefusalMeaning.DYING: "namespace",
    RefusalMeaning.LATER: "unreachable",
    RefusalMeaning.SLOWLY: "other",
}

REASONS = tuple(_REASONS.values())
"""What `refusal_reason` returns. Metrics show them, so they never change."""


def refusal_reason(error: ReconcilerError, pod: Pod) -> str:
    """Return why an eviction was refused, empty if the pod is gone or nothing more may be sent."""
    return _REASONS.get(read_refusal(error, pod, ()).meaning, "")


def waits_for(budget: PodDisruptionBudget) -> str:
    """Return what a pod waits for: `waits for PDB shop/web: needs 3 healthy, has 3`."""
    if budget.failed:
        return f"waits for PDB {budget.key}, whose controller can't count its pods: {budget.failed}"
    return f"waits for PDB {budget.key}: needs {budget.desired} healthy, has {budget.healthy}"


def two_budgets(budgets: Iterable[PodDisruptionBudget]) -> str:
    """Return why a pod with two budgets can't be evicted."""
    names = ", ".join(sorted(budget.key for budget in budgets))
    return f"is selected by several PDBs ({names}); the API server does not evict such a pod"


def throttles(error: ReconcilerError) -> bool:
    """Whether the API server itself asks for a pause, for all requests: no budget and no webhook does."""
    if not isinstance(error, TooManyRequests) or error.causes:
        return False
    return bool(error.retry_after) and read_denial(str(error)) is None


def _refused(error: TooManyRequests, pod: Pod, budgets: tuple[PodDisruptionBudget, ...]) -> EvictionRefusal:
    words = (str(error), *error.causes)
    for text in words:
        found = _NEEDS.search(text)
        if found:
            name, needs, has = found.groups()
            key = f"{pod.namespace}/{name}"
            because = f"waits for PDB {key}: needs {needs} healthy, has {has}"
            # The numbers of one that has failed are those of its last count.
            because = next((waits_for(one) for one in budgets if one.key == key and one.failed), because)
            return EvictionRefusal(RefusalMeaning.BUDGET, because, key, error.retry_after)
    if any("disruption" in text.lower() for text in words):
        named = next((budget for budget in budgets if budget.name in error.causes), None)
        named = named or (budgets[0] if len(budgets) == 1 else None)
        if named is not None:
            return EvictionRefusal(RefusalMeaning.BUDGET, waits_for(named), named.key, error.retry_after)
        return EvictionRefusal(RefusalMeaning.BUDGET, f"refused by a PDB: {error}", wait=error.retry_after)
    return EvictionRefusal(RefusalMeaning.LATER, f"the API server is busy: {error}", wait=error.retry_after)


def ask(evictor: Evictor, command: Request, now: datetime) -> Answer:
    """Send the request and return the event for the core. Raises the errors of the evictor."""
    node, number = command.node, command.drain
    match command:
        case CheckNode():
            return NodeSeen(node, number, evictor.node(node))
        case ListPods():
            return PodsSeen(node, number, evictor.pods(node))
        case ListAttachments(staying=staying):
            return AttachmentsSeen(node, number, evictor.attachments(node, staying))
        case Restart(pod=pod):
            return WriteDone(command, restarted=evictor.restart(pod, now))
        case Evict(pod=pod, grace=grace):
            evictor.evict(pod, grace=grace)
            return WriteDone(command)
        case Delete(pod=pod, grace=grace):
            evictor.delete(pod, grace=grace)
            return WriteDone(command)


def failed(command: Watch | Request, error: ReconcilerError) -> Answer | WatchEnded:
    """Return the event for a request that failed, or for a watch that could not be opened."""
    match command:
        case WatchPods(node, watch):
            return WatchEnded(node, watch, error)
        case WatchBudgets(watch, _):
            return WatchEnded(None, watch, error)
        case CheckNode(node, drain):
            return NodeSeen(node, drain, error=error)
        case ListPods(node, drain):
            return PodsSeen(node, drain, error=error)
        case ListAttachments(node, drain):
            return AttachmentsSeen(node, drain, error=error)
        case _:
            return WriteDone(command, error=error)
