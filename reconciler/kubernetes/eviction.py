"""What a drain needs of the cluster: evictions, and watches of pods and budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, TypeVar

from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes.attachments import attachments_on, left
from reconciler.kubernetes.connection import PODS, ApiPath, Connection, Request, budgets_in, core, on_node
from reconciler.kubernetes.nodes import read_node
from reconciler.kubernetes.restart import restart
from reconciler.kubernetes.watching import KnownObjects, Watched, Watching
from reconciler.kubernetes.wire.formats import budget_format, pod_format
from reconciler.kubernetes.wire.lists import list_pods
from reconciler.model.errors import NotFound
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod
from reconciler.model.ports import BudgetChange, BudgetGone, Listed, PodChange, PodGone

Value = TypeVar("Value")
Gone = TypeVar("Gone")


class Evictions:
    """Evictor for the API server: a request for each read, a watch for each node; safe for threads.

    `scale/evictions.py` does the same for many nodes that drain at the same time.
    """

    def __init__(self, connection: Connection, *, guard: Guard | None = None, prefix: str) -> None:
        """Use this connection and prefix of our keys, and call the guard before each write."""
        self._connection = connection
        self._guard = guard or read_only
        self._wanted = Wanted(frozenset({"Ready"}), prefix)

    def node(self, name: str) -> Node | None:
        """Return one node as it is now, with its Ready condition and our annotations; None if it is gone."""
        try:
            return read_node(self._connection, name, self._wanted)
        except NotFound:
            return None

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of one node, or of all, sorted by namespace and name."""
        return list_pods(self._connection, node, placement=placement)

    def watch_pods(self, node: str) -> AbstractContextManager[Iterator[PodChange]]:
        """List, then watch the pods of one node; see Evictor."""
        watched = Watched(self._connection, PODS, pod_format(), lambda pod: pod.uid, fields=on_node(node))
        watching = Watching(self._connection, watched, KnownObjects(watched))
        return _mapped(watching, lambda pod: PodGone(pod.uid))

    def watch_budgets(self, namespace: str = "") -> AbstractContextManager[Iterator[BudgetChange]]:
        """List, then watch the PodDisruptionBudgets of a namespace, or all; see Evictor."""
        # A budget that was deleted and created again is the same one for those that watch.
        watched = Watched(self._connection, budgets_in(namespace), budget_format(), lambda budget: budget.key)
        return _mapped(
            Watching(self._connection, watched, KnownObjects(watched)), lambda budget: BudgetGone(budget.key)
        )

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """Evict by policy/v1 with the UID as precondition; see Evictor for what it raises."""
        body = eviction(pod, _options(pod, grace))
        self._guard()
        self._connection.send(Request("POST", place_of(pod) / "eviction", body=body))

    def delete(self, pod: Pod, *, grace: int | None) -> None:
        """Delete with the UID as precondition; see Evictor for what it raises."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **_options(pod, grace)}
        self._guard()
        self._connection.send(Request("DELETE", place_of(pod), body=body))

    def restart(self, pod: Pod, now: datetime) -> str:
        """Restart the Deployment that owns the pod and return its name; Rejected with the reason."""
        return restart(self._connection, self._guard, pod, now)

    def attachments(self, node: str, staying: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """Return the names of the VolumeAttachments that are still on the node; see Evictor."""
        return left(self._connection, attachments_on(self._connection, {node})[node], staying)


@contextmanager
def _mapped(
    watching: Watching[Value, tuple[bool, Value]], gone: Callable[[Value], Gone]
) -> Iterator[Iterator[Value | Gone | Listed]]:
    with watching as changes:
        yield (
            Listed() if change is None else change[1] if change[0] else gone(change[1]) for change in changes
        )


def _options(pod: Pod, grace: int | None) -> dict[str, Any]:
    options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return options


def eviction(pod: Pod, options: dict[str, Any]) -> dict[str, Any]:
    """Return the body of an eviction by policy/v1, with these DeleteOptions."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }


def place_of(pod: Pod) -> ApiPath:
    """Return the path of a pod; Rejected for a bad name."""
    return core(pod.namespace) / "pods" / pod.name
