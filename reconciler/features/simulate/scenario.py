"""What is played: the nodes of a fleet, and everything that the platform and people do to them."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct, field

from reconciler.model.event import Kind
from reconciler.model.node import OS_LABEL, SPOT_LABEL, ZONE_LABEL, Node

LARGEST_FLEET = 20_000
"""Nodes of a fleet that can be played."""

LONGEST = 366
"""Days that can be played."""

MOST_EVENTS = 100_000
"""Events that can be played."""


class FleetNode(Struct, frozen=True):
    """One node of the fleet. `drain` is how long its pods need to leave it."""

    name: str
    pool: str
    zone: str
    drain: timedelta
    spot: bool = False

    def node(self) -> Node:
        """Return the node as it joins the cluster: with the labels of AKS, Ready and in service."""
        labels = {"agentpool": self.pool, "kubernetes.azure.com/agentpool": self.pool, OS_LABEL: "linux"}
        labels |= {ZONE_LABEL: self.zone} if self.zone else {}
        labels |= {SPOT_LABEL: "spot"} if self.spot else {}
        return Node(self.name, uid="", resource_version="", labels=labels)


class PlayedEvent(Struct, frozen=True):
    """One event of one node; moments are UTC, and it is announced `at` a moment not after `starts`.

    `not_before` is the date that it is announced with, `starts` when it really starts. An event that starts
    in the moment in which it is announced comes without notice. `seconds` is the announced pause, -1 for
    unknown. `cancelled` is when it is called off, None if it takes place. `by_request`: a person asks for it
    in an annotation, which is removed when it is over.
    """

    id: str
    node: str
    kind: Kind
    at: datetime
    not_before: datetime
    starts: datetime
    lasts: timedelta = timedelta(minutes=10)
    seconds: int = -1
    cancelled: datetime | None = None
    by_request: bool = False


class Scenario(Struct, frozen=True):
    """A fleet and its events from `start` to `end` (UTC), the same for every policy.

    `source` says where the events come from, in words. `notes` are for people: what was left out, and why.
    """

    start: datetime
    end: datetime
    nodes: tuple[FleetNode, ...]
    events: tuple[PlayedEvent, ...]
    source: str
    notes: tuple[str, ...] = field(default=())
