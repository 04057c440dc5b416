"""How machine providers read and write their objects:

each path is read once a pass, and writes check the lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct, field

from reconciler.features.machines.objects import Group
from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import Connection, Request
from reconciler.kubernetes.paths import BUDGETS, PODS, ApiPath, api
from reconciler.kubernetes.wire.lists import budget_format, list_all, list_pods
from reconciler.model.errors import ClusterError, Forbidden, NotFound, Rejected, Unauthorized, Unreachable
from reconciler.model.pod import Pod, PodDisruptionBudget

Kind = TypeVar("Kind")


class Unreadable(Exception):
    """Why one machine can't be read, in words."""


class MachineAccess(Struct):
    """One connection for all providers in the cluster, with what a pass has read through it.

    `guard` raises LockLost if the lock is not ours. Without a guard, nothing can be written.
    """

    connection: Connection
    guard: Guard = read_only
    _known: dict[str, object] = field(default_factory=dict)
    _silent: ClusterError | None = None
    _versions: dict[str, str] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget what was read: an upgrade may have brought another version of an API."""
        self._known.clear()
        self._versions.clear()
        self._silent = None

    def once(self, path: ApiPath, what: str, work: Callable[[ApiPath], Kind]) -> Kind:
        """Return the first result of `work` for the path.

        Raises Unreadable, with `what` as the path's name in words. After a connection or authentication
        failure nothing more is read.
        """
        if path not in self._known:
            self._known[path] = self._ask(path, what, work)
        found: Any = self._known[path]
        if isinstance(found, Unreadable):
            raise found
        return found  # type: ignore[no-any-return]  # at one path there is one kind

    def get(self, path: ApiPath, what: str, kind: type[Kind]) -> Kind:
        """Return the object at the path, read once; raises Unreadable."""
        return self.once(path, what, lambda place: objects.get(self.connection, place, kind))

    def pods(self, node: str) -> tuple[Pod, ...]:
        """Return the pods of a node with their placement; raises Unreadable."""

        def work(_: ApiPath) -> tuple[Pod, ...]:
            return list_pods(self.connection, node, placement=True)

        found = self._ask(PODS, f"the pods of node {node}", work)
        if isinstance(found, Unreadable):
            raise found
        return found

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        """Return every PodDisruptionBudget, read once; raises Unreadable."""

        def work(path: ApiPath) -> tuple[PodDisruptionBudget, ...]:
            return tuple(list_all(self.connection, path, budget_format()).items)

        return self.once(BUDGETS, "PodDisruptionBudgets", work)

    def place(self, group: str, version: str = "", namespace: str = "") -> ApiPath:
        """Return the path of a group's objects, in the version that the group prefers if none is given.

        Raises ClusterError.
        """
        found = version or self._versions.get(group)
        if not found:
            found = self._versions[group] = self._version(ApiPath("apis", group))
        return api(group, found, namespace)

    def place_to_read(self, group: str, version: str = "", namespace: str = "") -> ApiPath:
        """Return the same, but raise Unreadable if the version can't be read."""
        if not version and group not in self._versions:
            self._versions[group] = self.once(ApiPath("apis", group), f"the API {group}", self._version)
        return self.place(group, version, namespace)

    def send(self, request: Request) -> None:
        """Send a write with retries; raises LockLost and ClusterError."""
        objects.send(self.connection, self.guard, request)

    def delete(self, path: ApiPath, uid: str) -> None:
        """Delete the object with this UID; nothing where it has gone. Raises Conflict for another UID."""
        try:
            self.send(Request("DELETE", path, body={"preconditions": {"uid": uid}}))
        except NotFound:
            return

    def _ask(self, path: ApiPath, what: str, work: Callable[[ApiPath], Kind]) -> Kind | Unreadable:
        try:
            if self._silent is not None:
                raise self._silent
            return work(path)
        except ClusterError as error:
            if isinstance(error, Unreachable | Unauthorized):
                self._silent = error
            return Unreadable(_words(what, error))

    def _version(self, path: ApiPath) -> str:
        version = objects.get(self.connection, path, Group).preferredVersion.version
        if not version:
            raise Rejected(f"GET {path}: it names no preferred version")
        return version


def _words(what: str, error: ClusterError) -> str:
    if isinstance(error, Forbidden):
        return f"we have no right to read {what}: {error}"
    if isinstance(error, NotFound):
        # Without a Status in its answer the server has no kind at that path.
        return f"there is no {what}" if error.reason else f"this cluster has no such API: {error}"
    return f"{what} can't be read: {error}"
