"""What passes know of the pods that are moved next, and what a release of all nodes deletes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from msgspec import Struct

from reconciler.features.pods import PUBLISHED
from reconciler.features.pods.settings import PODS
from reconciler.model.outcome import ActionKind
from reconciler.model.plan import NodePart
from reconciler.model.tasks import Clients, Port
from reconciler.passes.plugin import Feature, Fleet, ObjectChanges, ShownObjects
from reconciler.settings.schema import Mode

NAME = "pods"
"""The name of the feature, under which plans have what it says of nodes."""

UNPUBLISH = ActionKind("unpublish pods", "delete what is published of the pods of a namespace")


class PublishedMaps(Protocol):
    """The ConfigMaps in namespaces. Both methods raise ClusterError, and a deletion also LockLost."""

    def namespaces(self) -> tuple[str, ...]:
        """Return the namespaces that may have one."""

    def delete(self, namespace: str) -> None:
        """Delete the one in a namespace; one that is gone or not ours is left alone."""


MAPS: Port[PublishedMaps] = Port("published pods", f"this process reads and writes no ConfigMap {PUBLISHED}")


class Unpublish(Struct, frozen=True):
    """The deletion of the ConfigMap in a namespace. It is a Publication, and about no node."""

    namespace: str

    node: ClassVar[str] = ""
    action: ClassVar[ActionKind] = UNPUBLISH

    def send(self, clients: Clients) -> None:
        """Delete it; raises ClusterError and LockLost."""
        MAPS.of(clients).delete(self.namespace)


def _deletions(clients: Clients, _: str) -> tuple[Unpublish, ...]:
    # A process without a client, such as a simulation, has none.
    return tuple(map(Unpublish, MAPS.of(clients).namespaces())) if clients(MAPS.name) is not None else ()


def _says(fleet: Fleet) -> Mapping[str, NodePart]:
    settings = fleet.settings
    if settings.mode is Mode.OBSERVE or not PODS.of(settings).publish:
        return {}
    from reconciler.features.pods.coming import foreseen

    return foreseen(fleet)


FEATURE = Feature(
    NAME,
    actions=(UNPUBLISH,),
    # Passes write no objects: a thread of their process does, and reads them.
    objects=ShownObjects(
        f"ConfigMaps {PUBLISHED}",
        lambda _outside, _settings, _earlier, _gaps: ({}, ()),
        lambda _objects, _fleet: ObjectChanges(),
        _deletions,
    ),
    says=_says,
)
