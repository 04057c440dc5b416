"""PersistentVolumes: which claim uses them, and where they can be mounted."""

from __future__ import annotations

from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.paths import VOLUMES
from reconciler.kubernetes.wire.reducing import requirement
from reconciler.model.pod import Terms, Volume

TERMS = 64
"""Terms, expressions of a term, and values of an expression that are read. Drivers write one or two."""


class Volumes:
    """VolumeReader for the API server; safe for threads."""

    def __init__(self, connection: Connection) -> None:
        """Use this connection."""
        self._connection = connection

    def volumes(self) -> tuple[Volume, ...]:
        """Return the bound PersistentVolumes; Forbidden if we may not list them."""
        found, _ = objects.get_list(self._connection, VOLUMES, objects.PersistentVolume)
        return tuple(volume for one in found if (volume := _volume(one)) is not None)


def _volume(found: objects.PersistentVolume) -> Volume | None:
    claim = found.spec.claimRef
    # A released volume still names the claim that it had.
    if claim is None or found.status.phase != "Bound":
        return None
    return Volume(found.metadata.name, claim.namespace, claim.name, _affinity(found.spec.nodeAffinity))


def _affinity(found: objects.VolumeAffinity | None) -> Terms:
    """Return the required terms. An affinity that is too large to read counts as none: nothing is claimed."""
    required = found.required if found is not None else None
    terms = (required.nodeSelectorTerms if required is not None else None) or []
    # matchFields name a node, as no label does.
    every = [[*(term.matchExpressions or ()), *(term.matchFields or ())] for term in terms]
    lengths = [len(every), *map(len, every), *(len(one.values or ()) for term in every for one in term)]
    if max(lengths) > TERMS:
        return ()
    return tuple(tuple(requirement(one) for one in term) for term in every)
