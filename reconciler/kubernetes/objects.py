"""One way to read and write an object of any kind, and the small kinds, with only the fields that we use."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from reconciler.http.retrying import PATIENCE, Guard, patiently
from reconciler.kubernetes.connection import ApiPath, Connection, Request
from reconciler.kubernetes.wire.formats import json_format
from reconciler.kubernetes.wire.lists import list_all
from reconciler.kubernetes.wire.shapes import ObjectMeta, Selector, Terms, decode
from reconciler.model.errors import ClusterError, NotFound

# The attributes have the names of the API, so that no table of names is needed.
# ruff: noqa: N815

Item = TypeVar("Item")

# k8s.io/apiserver: plugin/webhook/errors and plugin/policy/validating.
_DENIED = re.compile(r"\bdenied (?:the )?request\b")


class OnlyMetadata(msgspec.Struct):
    """Any object, if its metadata is enough."""

    metadata: ObjectMeta


class ConfigMap(msgspec.Struct):
    """core/v1 ConfigMap."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None


class Version(msgspec.Struct):
    """The answer of `/version`."""

    gitVersion: str = ""


class DaemonSetStatus(msgspec.Struct):
    """apps/v1 DaemonSetStatus."""

    desiredNumberScheduled: int = 0
    numberReady: int = 0


class DaemonSet(msgspec.Struct):
    """apps/v1 DaemonSet."""

    metadata: ObjectMeta
    status: DaemonSetStatus = msgspec.field(default_factory=DaemonSetStatus)


class RollingUpdate(msgspec.Struct):
    """apps/v1 RollingUpdateDeployment; numbers or percentages."""

    maxSurge: int | str | None = None
    maxUnavailable: int | str | None = None


class Strategy(msgspec.Struct):
    """apps/v1 DeploymentStrategy."""

    type: str = ""
    rollingUpdate: RollingUpdate | None = None


class Template(msgspec.Struct):
    """core/v1 PodTemplateSpec."""

    metadata: ObjectMeta | None = None


class ReplicaSetSpec(msgspec.Struct):
    """apps/v1 ReplicaSetSpec."""

    selector: Selector | None = None


class ReplicaSet(msgspec.Struct):
    """apps/v1 ReplicaSet."""

    metadata: ObjectMeta
    spec: ReplicaSetSpec = msgspec.field(default_factory=ReplicaSetSpec)


class DeploymentSpec(msgspec.Struct):
    """apps/v1 DeploymentSpec."""

    selector: Selector | None = None
    replicas: int | None = None
    paused: bool | None = None
    strategy: Strategy = msgspec.field(default_factory=Strategy)
    template: Template = msgspec.field(default_factory=Template)


class Deployment(msgspec.Struct):
    """apps/v1 Deployment; its spec as it came, which a patch can expect, is a DeploymentSpec."""

    metadata: ObjectMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class VolumeClaimSpec(msgspec.Struct):
    """core/v1 PersistentVolumeClaimSpec."""

    accessModes: list[str] | None = None


class VolumeClaim(msgspec.Struct):
    """core/v1 PersistentVolumeClaim."""

    metadata: ObjectMeta
    spec: VolumeClaimSpec = msgspec.field(default_factory=VolumeClaimSpec)


class ClaimReference(msgspec.Struct):
    """core/v1 ObjectReference, as a PersistentVolume refers to its claim."""

    namespace: str = ""
    name: str = ""


class VolumeAffinity(msgspec.Struct):
    """core/v1 VolumeNodeAffinity."""

    required: Terms | None = None


class VolumeSpec(msgspec.Struct):
    """core/v1 PersistentVolumeSpec."""

    claimRef: ClaimReference | None = None
    nodeAffinity: VolumeAffinity | None = None


class VolumeStatus(msgspec.Struct):
    """core/v1 PersistentVolumeStatus."""

    phase: str = ""


class PersistentVolume(msgspec.Struct):
    """core/v1 PersistentVolume."""

    metadata: ObjectMeta
    spec: VolumeSpec = msgspec.field(default_factory=VolumeSpec)
    status: VolumeStatus = msgspec.field(default_factory=VolumeStatus)


class AttachmentSource(msgspec.Struct):
    """storage/v1 VolumeAttachmentSource; an inline volume has no name."""

    persistentVolumeName: str | None = None


class AttachmentSpec(msgspec.Struct):
    """storage/v1 VolumeAttachmentSpec."""

    nodeName: str = ""
    source: AttachmentSource = msgspec.field(default_factory=AttachmentSource)


class Attachment(msgspec.Struct):
    """storage/v1 VolumeAttachment."""

    metadata: ObjectMeta
    spec: AttachmentSpec = msgspec.field(default_factory=AttachmentSpec)


class AutoScaledTarget(msgspec.Struct):
    """eviction-autoscaler.azure.com/v1 EvictionAutoScalerSpec."""

    targetName: str = ""
    targetKind: str = ""


class EvictionAutoScaler(msgspec.Struct):
    """eviction-autoscaler.azure.com/v1 EvictionAutoScaler."""

    metadata: ObjectMeta
    spec: AutoScaledTarget = msgspec.field(default_factory=AutoScaledTarget)


def get(connection: Connection, path: ApiPath, kind: type[Item], *, patience: float = PATIENCE) -> Item:
    """Read one object; raises Unreachable after the retries, and the other errors of ClusterError.

    `patience` is the seconds that retries may take.
    """
    body = patiently(lambda: connection.send(Request("GET", path)), patience=patience, sleep=connection.sleep)
    return decode(kind, body)


def find(
    connection: Connection, path: ApiPath, kind: type[Item], *, patience: float = PATIENCE
) -> Item | None:
    """Read one object as `get` does; None if there is none."""
    try:
        return get(connection, path, kind, patience=patience)
    except NotFound:
        return None


def send(connection: Connection, guard: Guard, request: Request, *, patience: float = PATIENCE) -> None:
    """Send a write, and again while no answer comes; call the guard before each try.

    Raises LockLost, Unreachable after the retries, and the other errors of ClusterError.
    """

    def guarded() -> None:
        guard()
        connection.send(request)

    patiently(guarded, patience=patience, sleep=connection.sleep)


def is_denied(error: ClusterError) -> bool:
    """Whether an admission webhook or a ValidatingAdmissionPolicy denied the request, not RBAC."""
    return _DENIED.search(str(error)) is not None


def get_list(
    connection: Connection, path: ApiPath, kind: type[Item], *, labels: str = "", patience: float = PATIENCE
) -> tuple[list[Item], str]:
    """Read a whole list in pages of JSON; return its objects and its resourceVersion.

    `patience` is the seconds that retries of a page may take. Raises the errors of ClusterError.
    """
    listed = list_all(connection, path, json_format(kind, _whole), labels=labels, patience=patience)
    return listed.items, listed.resource_version


def _whole(found: Item) -> Item:
    return found
