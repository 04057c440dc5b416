"""A cloud's own API as a source, in this process: what ARM would list, read as its answers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reconciler.model.cloud import Listing, Scope
from reconciler.sources import arm


@dataclass(slots=True)
class ListedVms:
    """Lists of scale sets, by their names; implements CloudReader.

    `statuses` has each VM's maintenanceRedeployStatus by instance id, an empty one for no maintenance.
    `problems` are the lists that are refused; with `patience` (seconds) what comes after one is not asked.
    """

    statuses: dict[str, dict[str, dict[str, object]]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    patience: float | None = None

    def planned(self, scopes: Sequence[Scope]) -> tuple[Listing, ...]:
        """Answer as ARM does at the moment."""
        listings: list[Listing] = []
        for scope in scopes:
            problem = self.problems.get(scope.scale_set, "")
            if self.patience is not None and any(one.problem for one in listings):
                listings.append(Listing(scope, problem=listings[0].problem, asked=False))
            elif problem:
                listings.append(Listing(scope, problem=problem, wait=self.patience))
            else:
                listings.append(arm.listing(scope, self._documents(scope)))
        return tuple(listings)

    def _documents(self, scope: Scope) -> list[dict[str, object]]:
        return [
            {"instanceId": number, "properties": {"instanceView": {"maintenanceRedeployStatus": status}}}
            for number, status in self.statuses.get(scope.scale_set, {}).items()
        ]
