"""Why a pod of a node would go or stay, and who can change that."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.drain.workloads import owner_of
from reconciler.model.explanation import NodeExplanation, Obstacle, PodExplanation
from reconciler.model.plan import PodVerdict
from reconciler.model.pod import Pod
from reconciler.model.snapshot import Snapshot
from reconciler.report.explain.nodes import blocked_by

OWNER_LABELS = (
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/created-by",
    "owner",
    "team",
)
"""Labels of a pod that often name who is responsible; also below a prefix, such as `example.com/team`."""

_LAST = frozenset({"owner", "team"})
_MOST = 8


def owner_labels(pod: Pod) -> tuple[tuple[str, str], ...]:
    """Return the labels that name an owner or a team, sorted by their key, the first few."""
    found = sorted(
        (key, value)
        for key, value in pod.labels.items()
        if value and (key in OWNER_LABELS or key.rpartition("/")[2] in _LAST)
    )
    return tuple(found[:_MOST])


NONE = "none"
"""What a drain does with a pod that is on no node, or on one that no longer exists."""

UNKNOWN = "unknown"
"""What it does with a pod that has no verdict."""


def find_pod(snapshot: Snapshot, namespace: str, name: str) -> Pod | None:
    """Return the pod of that name, None if there is none. The snapshot has the pods of the whole cluster."""
    every = (pod for found in snapshot.pods.values() for pod in found)
    return next((pod for pod in every if (pod.namespace, pod.name) == (namespace, name)), None)


def explain_pod(pod: Pod, node: NodeExplanation | None, snapshot: Snapshot) -> PodExplanation:
    """Return what a drain of the pod's node would do with it, and what refuses its eviction.

    `node` explains its node, with what a drain would do; None for a pod whose node does not exist.
    """
    drain = node.drain if node is not None else None
    verdicts = drain.pods if drain is not None else ()
    verdict = next((one for one in verdicts if one.uid == pod.uid), None) or _without(pod, node)
    blockers = [one for one in (drain.blockers if drain is not None else ()) if one.pod == pod.key]
    refused = next((one for one in blockers if one.budget), None)
    return PodExplanation(
        pod,
        owner_of(pod),
        owner_labels(pod),
        verdict,
        tuple(sorted((one for one in snapshot.budgets if one.covers(pod)), key=lambda one: one.key)),
        refused,
        tuple(_obstacles(pod, verdict, [blocked_by(one, pod) for one in blockers])),
    )


def _without(pod: Pod, node: NodeExplanation | None) -> PodVerdict:
    if node is not None:
        return PodVerdict(pod.key, pod.uid, UNKNOWN)
    reason = f"its node {pod.node} no longer exists" if pod.node else "it is on no node"
    return PodVerdict(pod.key, pod.uid, NONE, (reason,))


def _obstacles(pod: Pod, verdict: PodVerdict, blocked: list[Obstacle]) -> Iterator[Obstacle]:
    yield from blocked
    if blocked or verdict.action not in ("skip", "wait"):
        return
    owner = owner_of(pod)
    of_pod = f"the owner of {owner}" if owner else "the owner of the pod"
    yield Obstacle("pod", "; ".join(verdict.reasons), f"{of_pod}, or the owner of the settings")
