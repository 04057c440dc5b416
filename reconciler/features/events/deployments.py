"""Finds the Deployments of ReplicaSets, for Events: hardly anybody looks at a ReplicaSet."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

import msgspec

from reconciler.features.events.kubernetes_events import PATIENCE
from reconciler.kubernetes.connection import Connection, Request, api
from reconciler.kubernetes.objects import OnlyMetadata
from reconciler.kubernetes.wire.reducing import owner_of
from reconciler.kubernetes.wire.shapes import decode
from reconciler.model.errors import ClusterError, Forbidden
from reconciler.model.pod import Owner

KEPT = 1000
"""ReplicaSets whose Deployment is remembered, those that were asked for last."""

CLOSED_FOR = 600.0
"""Seconds for which no ReplicaSet is read in a namespace after a missing permission."""

RESTS_FOR = 60.0
"""Seconds for which none is read at all after an error that may go away, such as a late answer."""

TEMPLATE_HASH = "pod-template-hash"
"""The label of a Deployment's ReplicaSets, and of their pods."""

MOST = 100
"""ReplicaSets that are read at most with one request."""

_APPS = "apps"
_HASH = re.compile("[a-z0-9]{1,63}")
_EVERYWHERE = ""
# A template may have a megabyte, and is not sent.
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"


class _List(msgspec.Struct):
    items: list[OnlyMetadata]


class Deployments:
    """Reads ReplicaSets over a connection, those of a namespace together, each one once; for one thread."""

    def __init__(self, connection: Connection, warn: Callable[[str], None]) -> None:
        """Use this connection. `warn` gets a sentence once, if a permission is missing."""
        self._connection, self._warn = connection, warn
        self._found: OrderedDict[tuple[str, Owner], Owner | None] = OrderedDict()
        self._closed: dict[str, float] = {}
        self._warned = False

    def of(self, namespace: str, owner: Owner, wanted: Mapping[Owner, str]) -> Owner | None:
        """Return the Deployment that controls this ReplicaSet of the namespace.

        `wanted` has the owners in the namespace that are asked for next, this one included, and the label
        `TEMPLATE_HASH` of their pods. They are read with one request. None if `owner` is no ReplicaSet, is
        gone, can't be read, or has no Deployment: its author may write any owner. Raises a ClusterError only
        if the same request may succeed later.
        """
        if not _is_readable(owner, wanted[owner]):
            return None
        key = namespace, owner
        if key not in self._found:
            if self._is_closed(namespace) or self._is_closed(_EVERYWHERE):
                return None
            more = [one for one, template in wanted.items() if _is_readable(one, template)]
            more = [one for one in more if one != owner and (namespace, one) not in self._found]
            asked = [owner, *more][:MOST]
            try:
                found = self._read(namespace, {wanted[one] for one in asked})
            except Forbidden as error:
                self._close(namespace, CLOSED_FOR)
                if not self._warned:
                    self._warned = True
                    because = error.because
                    self._warn(
                        f"events about pods are on their ReplicaSets, not on the Deployments: {because}"
                    )
                return None
            except ClusterError as error:
                if error.temporary:
                    self._close(_EVERYWHERE, RESTS_FOR)
                    raise
                found = {}
            for one in reversed(asked):
                # The UID proves that it is the owner: anybody can give an object its name.
                self._found[namespace, one] = found.get((one.name, one.uid))
        self._found.move_to_end(key)
        while len(self._found) > KEPT:
            self._found.popitem(last=False)
        return self._found[key]

    def _read(self, namespace: str, templates: set[str]) -> dict[tuple[str, str], Owner]:
        """Return the Deployments of the ReplicaSets with these hashes, by the name and UID of those."""
        query = {
            "labelSelector": f"{TEMPLATE_HASH} in ({','.join(sorted(templates))})",
            "limit": str(2 * MOST),
        }
        path = api(_APPS, "v1", namespace) / "replicasets"
        request = Request(
            "GET", path, query=query, accept=_METADATA_ONLY, read_timeout=PATIENCE, total=PATIENCE
        )
        found: dict[tuple[str, str], Owner] = {}
        for one in decode(_List, self._connection.send(request)).items:
            above = owner_of(one.metadata.ownerReferences)
            if above is not None and above.is_a("Deployment", _APPS) and above.named:
                found[one.metadata.name, one.metadata.uid] = above
        return found

    def _is_closed(self, namespace: str) -> bool:
        return self._closed.get(namespace, 0.0) > time.monotonic()

    def _close(self, namespace: str, seconds: float) -> None:
        self._closed = {name: at for name, at in self._closed.items() if self._is_closed(name)}
        self._closed[namespace] = time.monotonic() + seconds


def _is_readable(owner: Owner, template: str) -> bool:
    # An empty UID is that of no object.
    is_one = owner.is_a("ReplicaSet", _APPS) and owner.named and bool(owner.uid)
    return is_one and _HASH.fullmatch(template) is not None
