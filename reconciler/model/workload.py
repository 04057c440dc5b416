"""The workload that a pod belongs to, and how many pods it has."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class WorkloadKind(StrEnum):
    """The kinds whose pods come back on another node, named as in maintenance-controller's metrics."""

    DAEMON_SET = "daemon_set"
    DEPLOYMENT = "deployment"
    REPLICA_SET = "replica_set"
    STATEFUL_SET = "stateful_set"


class Workload(Struct, frozen=True):
    """A workload. `replicas` are the pods that it should have, of a DaemonSet those that are ready."""

    kind: WorkloadKind
    name: str
    replicas: int

    @property
    def label(self) -> str:
        """The value of the label `owner`, such as `deployment_web`. It has no namespace."""
        return f"{self.kind.value}_{self.name}"
