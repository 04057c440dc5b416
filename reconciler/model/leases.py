"""Leases by which nodes, and messages to a thread, take turns: one holds it until it expires."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from reconciler.model.moments import shifted


class LeaseRef(Struct, frozen=True, order=True):
    """A Lease by its place."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


class LeaseSeen(Struct, frozen=True):
    """A Lease as it was read: its holder, its last renewal (UTC, None if it has none), and its duration.

    `uid` and `resource_version` are those of the object, empty for one that this pass takes itself.
    `transitions` counts how often it was taken.
    """

    holder: str
    renewed: datetime | None
    duration: timedelta
    resource_version: str = ""
    uid: str = ""
    transitions: int = 0

    @property
    def until(self) -> datetime | None:
        """When it expires (UTC), None if nobody has ever taken it."""
        return shifted(self.renewed, self.duration) if self.renewed is not None else None


class LeaseTake(Struct, frozen=True):
    """A Lease to take; `seen` None means that it has to be created.

    `at` is the moment of the pass (UTC), and `duration` is for how long others wait.
    """

    ref: LeaseRef
    holder: str
    at: datetime
    duration: timedelta
    seen: LeaseSeen | None = None
