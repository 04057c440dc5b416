"""Where a job runs and whom it talks to, from its arguments and the environment."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass

from reconciler.model.outside import Self


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster that a job is pointed at; None means as kubectl would find it, then in-cluster."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str = "node-maintenance"


def itself() -> Self:
    """Return the node and pod that we run on, from NODE_NAME, POD_NAMESPACE and POD_NAME."""
    name = os.environ.get("POD_NAME")
    namespace = os.environ.get("POD_NAMESPACE")
    return Self(
        node=os.environ.get("NODE_NAME") or None,
        pod=f"{namespace}/{name}" if name and namespace else None,
    )


def identity() -> str:
    """Return who holds the lock: words that lead a person to the process, and no other process has.

    A restarted container has its pod's name and process number again, hence the random part.
    """
    where = os.environ.get("POD_NAME") or socket.gethostname()
    return f"{where}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
