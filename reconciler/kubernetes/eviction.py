"""How a drain evicts pods and watches them end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, TypeVar

from reconciler.http.guard import Guard, read_only
from reconciler.kubernetes import node_writing, objects
from reconciler.kubernetes.answers import PROTOBUF
from reconciler.kubernetes.connection import Connection, Request
from reconciler.kubernetes.paths import PODS, ApiPath, api, budgets_in, core, on_node
from reconciler.kubernetes.restarting import restart
from reconciler.kubernetes.watching import AT_ONCE, Watched, Watching
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.lists import ACCEPT, Format, budget_format, list_all, pod_format
from reconciler.model.errors import NotFound
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import BudgetChange, BudgetGone, Listed, PodChange, PodGone

ATTACHMENTS = api("storage.k8s.io", "v1") / "volumeattachments"

Value = TypeVar("Value")
Change = TypeVar("Change")


class Evictions:
    """Evictor for the API server; safe for threads."""

    def __init__(self, connection: Connection, *, guard: Guard | None = None, prefix: str) -> None:
        """Use this connection and prefix of our keys, and call the guard before each write."""
        self._connection = connection
        self._guard = guard or read_only
        self._wanted = Wanted(frozenset({"Ready"}), prefix)

    def node(self, name: str) -> Node | None:
        """Return one node as it is now, with its Ready condition and our annotations; None if it is gone."""
        try:
            return node_writing.read_node(self._connection, name, self._wanted)
        except NotFound:
            return None

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of one node, or of all, sorted by namespace and name."""
        fields = on_node(node) if node else ""
        found = list_all(self._connection, PODS, pod_format(placement=placement), fields=fields).items
        return tuple(sorted(found, key=lambda pod: (pod.namespace, pod.name)))

    def watch_pods(self, node: str) -> AbstractContextManager[Iterator[PodChange]]:
        """List, then watch the pods of one node; see Evictor."""
        return _mapped(Watching(self._connection, _Pods(self._connection, node)), _pod_change)

    def watch_budgets(self, namespace: str = "") -> AbstractContextManager[Iterator[BudgetChange]]:
        """List, then watch the PodDisruptionBudgets of a namespace, or all; see Evictor."""
        return _mapped(Watching(self._connection, _Budgets(self._connection, namespace)), _budget_change)

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

    def attachments(self, node: str) -> tuple[str, ...]:
        """Return the names of the VolumeAttachments that are still on the node."""
        # The API has no field selector for spec.nodeName of a VolumeAttachment.
        found, _ = objects.get_list(self._connection, ATTACHMENTS, objects.Attachment)
        return tuple(sorted(one.metadata.name for one in found if one.spec.nodeName == node))


class _Pods(Watched[Pod]):
    def __init__(self, connection: Connection, node: str) -> None:
        self._connection = connection
        self._form: Format[Pod] = pod_format()
        self._fields = on_node(node)
        self.path = PODS
        self.query = {"fieldSelector": self._fields}
        self.accept = ACCEPT

    def list(self) -> tuple[list[Pod], str]:
        listed = list_all(self._connection, self.path, self._form, fields=self._fields, patience=AT_ONCE)
        return listed.items, listed.resource_version

    def read(self, content_type: str, encoded: bytes) -> Pod:
        if content_type == PROTOBUF:
            return self._form.from_protobuf(protobuf.unwrapped(encoded))
        return self._form.from_json(encoded)

    def uid(self, value: Pod) -> str:
        return value.uid

    def version(self, value: Pod) -> str:
        return value.resource_version


class _Budgets(Watched[PodDisruptionBudget]):
    accept = ACCEPT

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self.path = budgets_in(namespace)
        self._form = budget_format()
        self.query: dict[str, str] = {}

    def list(self) -> tuple[list[PodDisruptionBudget], str]:
        listed = list_all(self._connection, self.path, self._form, patience=AT_ONCE)
        return listed.items, listed.resource_version

    def read(self, content_type: str, encoded: bytes) -> PodDisruptionBudget:
        if content_type == PROTOBUF:
            return self._form.from_protobuf(protobuf.unwrapped(encoded))
        return self._form.from_json(encoded)

    def uid(self, value: PodDisruptionBudget) -> str:
        # A budget that was deleted and created again is the same one for those that watch.
        return value.key

    def version(self, value: PodDisruptionBudget) -> str:
        return value.resource_version


def _pod_change(there: bool, pod: Pod) -> PodChange:
    return pod if there else PodGone(pod.uid)


def _budget_change(there: bool, budget: PodDisruptionBudget) -> BudgetChange:
    return budget if there else BudgetGone(budget.key)


@contextmanager
def _mapped(
    watching: Watching[Value], to_change: Callable[[bool, Value], Change]
) -> Iterator[Iterator[Change | Listed]]:
    with watching as changes:
        yield (Listed() if change is None else to_change(*change) for change in changes)


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
