"""Finds the pods of a namespace, and which of them move."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from reconciler.calendar.values import near
from reconciler.model.errors import Forbidden, NotFound
from reconciler.model.explanation import Examination, Moves, NamespacePods, PodMove
from reconciler.model.limits import quoted
from reconciler.model.node import Node
from reconciler.model.plan import PodVerdict
from reconciler.model.pod import Pod
from reconciler.model.problems import PODS
from reconciler.model.snapshot import Assessment
from reconciler.report.explain import UNKNOWN, explain_node, explain_pod, plan_of
from reconciler.report.moves import move_of
from reconciler.settings.schema import Settings

_LAST = datetime.max.replace(tzinfo=UTC)


def pods_of(
    examination: Examination, events: Assessment, namespace: str, settings: Settings
) -> NamespacePods:
    """Return the pods of a namespace that have not ended, by what a drain of their nodes would do now.

    `events` are those of the snapshot.

    The examination has a preview and the pods of the whole cluster. Raises Forbidden if they could not be
    read, and NotFound if no node runs one.
    """
    check_pods_seen(examination, namespace)
    plan, snapshot = examination.plan, examination.snapshot
    every = snapshot.pods
    pods: dict[str, list[Pod]] = {
        node: [pod for pod in of_node if pod.namespace == namespace and not pod.finished]
        for node, of_node in every.items()
        if node
    }
    if not any(pods.values()):
        known = sorted({pod.namespace for of_node in every.values() for pod in of_node})
        message = f"no node runs a pod of the namespace {quoted(namespace)}{near(namespace, known)}"
        raise NotFound(message, status=404)
    planned = {each.node for each in plan.nodes}
    moves: list[PodMove] = []
    for node in snapshot.nodes:
        if not pods.get(node.name):
            continue
        if node.name in planned:
            moves += moves_on(node, pods[node.name], examination, events, settings)
        else:
            # What a drain would do does not matter on a node without one, and takes long to find out.
            quiet = plan_of(node, plan)
            moves += [
                move_of(pod, quiet, PodVerdict(pod.key, pod.uid, UNKNOWN), None) for pod in pods[node.name]
            ]
    return NamespacePods(namespace, tuple(sorted(moves, key=by_need)))


def check_pods_seen(examination: Examination, namespace: str | None) -> None:
    """Raise Forbidden if the pods of the namespace (None: of all) could not be read."""
    unseen = examination.snapshot.problems.refused.get(PODS)
    if unseen is not None:
        of = f" of the namespace {quoted(namespace)}" if namespace is not None else ""
        raise Forbidden(f"the pods{of} can't be read: needs {unseen.needs}", needs=unseen.needs)


def moves_on(
    node: Node, pods: Iterable[Pod], examination: Examination, events: Assessment, settings: Settings
) -> list[PodMove]:
    """Return whether these pods of a node in the plan move; the rest is as in `pods_of`."""
    explained = explain_node(node, examination, events.of(node.name), settings, examination.plan.now)
    return [explain_pod(pod, explained, examination.snapshot).move for pod in pods]


def by_need(move: PodMove) -> tuple[bool, bool, datetime, str, str]:
    """Return the place of a pod in an order: those that need a person first, then by the start."""
    blocked = move.answer in (Moves.BLOCKED, Moves.UNKNOWN)
    stays = move.answer is Moves.STAYS and move.start is None
    return not blocked, stays, move.start or _LAST, move.node, move.pod
