"""Many drains at once, as the feature sees them: what they move, and a server that counts its requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from jobs.runtime.environment import Target
from jobs.runtime.process import Companion, Leading, Observer
from reconciler.features.pods.process import PROCESS
from reconciler.kubernetes.cluster import Cluster
from reconciler.model.drains import DrainOrder, Eviction, Refused
from reconciler.model.pod import Owner, Pod
from reconciler.model.ports import Notification
from reconciler.model.snapshot import Self
from tests.features.pods.maps import Maps
from tests.support import builders
from tests.support.builders import NOW
from tests.support.fakes.clock import SystemClock


class Lines(Observer):
    """Collects the lines that observers are told of."""

    def __init__(self) -> None:
        """Begin without lines."""
        self.all: list[Mapping[str, object]] = []

    def happened(self, event: str, fields: Mapping[str, object]) -> None:
        """Note a line."""
        self.all.append(fields)


def leading(maps: Maps, settings: str, observer: Observer) -> Companion:
    """The feature in a `serve` with these settings, whose API server has these ConfigMaps."""

    def guard() -> None: ...

    assert PROCESS.companion is not None
    made = PROCESS.companion(
        Leading(
            maps.connection,
            Cluster(maps.connection),
            Target(),
            Self(),
            SystemClock(),
            guard,
            guard,
            observer,
            settings=lambda: builders.settings(settings),
            goes_on=True,
        )
    )
    return cast("Companion", made)


def evictions(drains: int, pods: int) -> Iterator[tuple[DrainOrder, Eviction]]:
    """What so many drains of so many pods do, in turn, with names as long as those of a large cluster."""
    for number in range(pods):
        for drain in range(drains):
            node = f"aks-np-12345678-vmss{drain:06}"
            order = DrainOrder(
                node, f"uid-{node}", NOW, None, why="Redeploy at 2026-11-23T22:30:00Z", case=NOW
            )
            owner = Owner("ReplicaSet", f"web-{number}-7d4b9c5f", "apps/v1")
            name = f"web-{number}-7d4b9c5f-{drain:05}"
            pod = Pod(f"team-{drain % 50}", name, f"uid-{number}-{drain}", node, owner=owner)
            yield order, Eviction(pod, refused=(Refused(f"PDB {pod.namespace}/web", 2),))


class Silent:
    """A notifier that sends nothing."""

    def notify(self, notification: Notification) -> bool:
        """See the port."""
        return True
