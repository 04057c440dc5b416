"""The VolumeAttachments of nodes: which volumes are still there after their pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import VOLUMES, Connection, api
from reconciler.model.errors import NotFound
from reconciler.model.limits import is_object_name

ATTACHMENTS = api("storage.k8s.io", "v1") / "volumeattachments"


def attachments_on(connection: Connection, nodes: Set[str]) -> Mapping[str, tuple[objects.Attachment, ...]]:
    """Return the VolumeAttachments on each of these nodes, sorted by name; raises ClusterError.

    The API has no field selector for their nodes, so this lists those of the whole cluster.
    """
    listed, _ = objects.get_list(connection, ATTACHMENTS, objects.Attachment)
    found: dict[str, tuple[objects.Attachment, ...]] = dict.fromkeys(nodes, ())
    for each in sorted(listed, key=lambda each: each.metadata.name):
        if each.spec.nodeName in nodes:
            found[each.spec.nodeName] += (each,)
    return found


def left(
    connection: Connection, attached: Iterable[objects.Attachment], staying: frozenset[str]
) -> tuple[str, ...]:
    """Return the names of those whose volumes are bound to none of the claims that stay; raises ClusterError.

    A volume says itself to which claim it is bound. It is read only where pods with claims stay.
    """

    def claim(attachment: objects.Attachment) -> str:
        volume = attachment.spec.source.persistentVolumeName
        if not volume or not is_object_name(volume):
            return ""
        try:
            bound = objects.get(connection, VOLUMES / volume, objects.PersistentVolume).spec.claimRef
        except NotFound:
            return ""
        return f"{bound.namespace}/{bound.name}" if bound is not None else ""

    return tuple(
        attachment.metadata.name for attachment in attached if not staying or claim(attachment) not in staying
    )
