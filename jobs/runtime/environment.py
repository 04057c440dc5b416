"""Where a job runs and which cluster it acts on, from its arguments and the environment."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from reconciler.model.snapshot import Self

if TYPE_CHECKING:
    from reconciler.kubernetes.connection import Connection


class Target(Struct, frozen=True):
    """The cluster that a job acts on. None is what kubectl would use, then the pod's ServiceAccount."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str = "node-maintenance"


@contextmanager
def connected(target: Target) -> Iterator[Connection]:
    """Connect to the API server, and close the connection at the end."""
    from reconciler.kubernetes.connection import Connection

    connection = Connection(target.kubeconfig, target.context)
    try:
        yield connection
    finally:
        connection.close()


class VariablesAsWritten(dict[str, str]):
    """The variables of a person's shell, for the settings of a Pod.

    A variable that only the Pod has stays as it is written there.
    """

    def __contains__(self, name: object) -> bool:
        """Whether it has a content, which each has."""
        return True

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]  # no other default is asked for
        """Return its content, else the default, else the text in the settings."""
        return self[name] if name in self.keys() else default or f"${{{name}}}"


def itself() -> Self:
    """Return the node and pod in which we run, from NODE_NAME, POD_NAMESPACE, POD_NAME and POD_UID."""
    name = os.environ.get("POD_NAME")
    namespace = os.environ.get("POD_NAMESPACE")
    return Self(
        node=os.environ.get("NODE_NAME") or None,
        pod=f"{namespace}/{name}" if name and namespace else None,
        pod_uid=os.environ.get("POD_UID", ""),
    )


def identity() -> str:
    """Return the identity for the lock: unique text that helps a person find this process.

    A restarted container has the same pod name and process number, hence the random part.
    """
    where = os.environ.get("POD_NAME") or socket.gethostname()
    return f"{where}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
