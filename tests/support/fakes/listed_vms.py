"""A cloud's own API as a source, in this process: what ARM would list, read as its answers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reconciler.model.machine import Planned, Scope
from reconciler.model.polling import Listing
from reconciler.sources.arm import source as arm


@dataclass(slots=True)
class ListedVms:
    """Lists of scale sets, by their names; implements SourceClient.

    `statuses` has each VM's maintenanceRedeployStatus by instance id, an empty one for no maintenance.
    `problems` are the lists that are refused; with `patience` (seconds) what comes after one is not asked.
    """

    statuses: dict[str, dict[str, dict[str, object]]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    patience: float | None = None

    def ask(self, scopes: Sequence[Scope]) -> tuple[Listing[Scope, Planned], ...]:
        """Answer as ARM does at the moment."""
        listings: list[Listing[Scope, Planned]] = []
        refused = ""
        for scope in scopes:
            if refused and self.patience is not None:
                listings.append(Listing(scope, problem=refused, asked=False))
            elif refused := self.problems.get(scope.scale_set, ""):
                listings.append(Listing(scope, problem=refused, wait=self.patience))
            else:
                listings.append(arm.listing(scope, self._documents(scope)))
        return tuple(listings)

    def _documents(self, scope: Scope) -> list[dict[str, object]]:
        return [
            {"instanceId": number, "properties": {"instanceView": {"maintenanceRedeployStatus": status}}}
            for number, status in self.statuses.get(scope.scale_set, {}).items()
        ]
