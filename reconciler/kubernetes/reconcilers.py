"""Who makes passes, as the Leases of the locks say."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

import msgspec

from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import Connection, api
from reconciler.kubernetes.wire.formats import json_format
from reconciler.kubernetes.wire.lists import list_all
from reconciler.kubernetes.wire.shapes import ObjectMeta
from reconciler.model import limits
from reconciler.model.errors import ClusterError, Unauthorized, Unreachable
from reconciler.model.moments import from_text
from reconciler.model.reconciler import OBSERVE, PASSES, Passes, Reconciler, Running, passes_of
from reconciler.model.values import replace

# The attributes have the names of the API, so that no table of names is needed.
# ruff: noqa: N815

log = logging.getLogger(__name__)

LOCK = "reconciler-lock"
"""The name of the Lease of a lock, in the namespace of its reconciler."""


class LeaseSpec(msgspec.Struct):
    """coordination.k8s.io/v1 LeaseSpec; its times are for people: of them only a change counts."""

    holderIdentity: str | None = None
    leaseDurationSeconds: int | None = None
    acquireTime: str | None = None
    renewTime: str | None = None
    leaseTransitions: int | None = None


class Lease(msgspec.Struct):
    """coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


def passes_in(lease: Lease) -> Passes:
    """Return what the last holder of the Lease said about its passes."""
    return passes_of((lease.metadata.annotations or {}).get(PASSES))


def made_at(lease: Lease) -> datetime | None:
    """Return when the Lease was made (UTC), None if that can't be read."""
    try:
        return from_text(lease.metadata.creationTimestamp or "")
    except ValueError:
        return None


def read_reconciler(
    connection: Connection, namespace: str, now: Callable[[], datetime], *, observes: bool
) -> Reconciler:
    """Return who acts on the nodes, as the lock in this namespace says; one read.

    `now` (aware) is asked after the answer, which tells the time of the server.

    `observes`: the settings that are installed have the mode Observe, in which nobody takes the lock. What
    may not be read is not known. Raises Unreachable and Unauthorized, as every other read does.
    """
    where = Reconciler(cluster=connection.cluster, context=connection.origin.context, lock=namespace)
    path = api("coordination.k8s.io", "v1", namespace) / "leases" / LOCK
    try:
        lease = objects.find(connection, path, Lease)
    except (Unreachable, Unauthorized):
        raise
    except ClusterError as error:
        because = f"needs {error.needs}, which k8s/report grants" if error.needs else str(error)
        return replace(where, because=because, needs=error.needs)
    if lease is None:
        return replace(where, running=Running.NEVER, because="")
    return _of_lease(lease, where, now(), observes=observes)


def read_rivals(
    connection: Connection, namespace: str, now: Callable[[], datetime]
) -> tuple[Reconciler, ...]:
    """Return the reconcilers with locks in other namespaces, by one list; none if it may not be read."""
    path = api("coordination.k8s.io", "v1") / "leases"
    try:
        found = list_all(
            connection, path, json_format(Lease, lambda lease: lease), fields=f"metadata.name={LOCK}"
        ).items
    except ClusterError as error:
        log.info("the locks of other reconcilers are not known: error=%s", error)
        return ()
    return tuple(
        _of_lease(lease, Reconciler(lock=lease.metadata.namespace), now(), observes=False)
        for lease in found
        if lease.metadata.namespace != namespace
    )


def _of_lease(lease: Lease, where: Reconciler, now: datetime, *, observes: bool) -> Reconciler:
    passes = passes_in(lease)
    holder = limits.text(lease.spec.holderIdentity or "", limits.NAME)
    running, because = passes.state(now)
    if running is Running.OVERDUE and (observes or passes.mode == OBSERVE):
        running, because = Running.UNKNOWN, "in mode Observe a reconciler takes no lock"
    return replace(
        where,
        running=running,
        holder=holder,
        last_pass=passes.last,
        interval=passes.interval,
        mode=passes.mode,
        because=because,
        since=made_at(lease),
        seen=passes.seen,
        lost=passes.seen.shown(now) if passes.seen is not None else (),
    )
