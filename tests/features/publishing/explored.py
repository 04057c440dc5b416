"""What must hold of NodeMaintenance objects in a history."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.features.publishing.objects import MaintenanceWrite, Stage
from reconciler.features.publishing.settings import HISTORY, PUBLISH, Sign
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call
from tests.explore.history import Broken
from tests.explore.of_plugins import LawsOfPlugin
from tests.explore.truth import KEYS
from tests.support.worlds import maintenances


class LAWS(LawsOfPlugin):
    """The laws of the objects."""

    def rests(self, policy: Settings) -> None:
        """Check that what is over says so, once every source that it names does, and what it says of it."""
        for maintenance in maintenances(self.world.cluster).values():
            missed = self.missed.get(maintenance.uid, frozenset())
            if maintenance.finished is not None and not missed.isdisjoint(maintenance.event.ids):
                self.checked["missed"] += 1
                if maintenance.state != Stage.MISSED:
                    said = f"{maintenance.name} is {maintenance.state}"
                    raise Broken("missed", f"{said}, though pods were on {maintenance.node}")
        if Sign.NODE_MAINTENANCES not in PUBLISH.of(policy):
            return
        nodes = {node.uid: node for node in self.world.cluster.nodes.values()}
        for maintenance in maintenances(self.world.cluster).values():
            node, sources = nodes.get(maintenance.uid), maintenance.event.sources
            if maintenance.finished is not None or node is None or KEYS.record in node.annotations:
                continue
            if not policy.manages(node.labels):
                continue
            self.checked["shown"] += 1
            channels = [each for each in self.truth.channels(node, policy) if each.name in sources]
            if all(each.readable and not each.strange and not each.told for each in channels):
                said = f"{maintenance.name} of {sources} is {maintenance.state}"
                raise Broken("shown", f"{said}, though they report nothing")

    def calm(self) -> None:
        """Check that all of them are over."""
        there = sorted(maintenances(self.world.cluster).items())
        if left := [name for name, maintenance in there if maintenance.finished is None]:
            raise Broken("calm", f"NodeMaintenances go on: {left}")

    def still_due(self, policy: Settings) -> Callable[[Call], bool]:
        """Return whether a write deletes an object that has been over for as long as `history` says."""
        shown = maintenances(self.world.cluster)

        def expires(write: Call) -> bool:
            if not isinstance(write.content, MaintenanceWrite) or write.content.wanted is not None:
                return False
            maintenance = shown.get(write.content.name)
            over = maintenance.finished if maintenance is not None else None
            return over is not None and over + HISTORY.of(policy) <= self.world.now

        return expires
