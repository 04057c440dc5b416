"""A node as all that is shown of it has to agree: what each feature shows is checked beside its tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.model.outcome import Outcome
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.schedule import CaseForecast, CaseSchedule
from tests.laws.histories import History


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node with a case after a pass: its plan, its entry of the report, and what is around it.

    `agrees` in the `agreement.py` of a feature asserts that what the feature shows of it says the same.
    """

    node: NodePlan
    plan: Plan
    outcomes: tuple[Outcome, ...]
    history: History
    report: Mapping[str, Any]

    @property
    def schedule(self) -> CaseSchedule:
        """When it is served, and whether in time."""
        assert self.node.schedule is not None
        return self.node.schedule

    @property
    def missed(self) -> bool:
        """Whether it will be missed."""
        return self.schedule.forecast is CaseForecast.WILL_BE_MISSED

    @property
    def at_risk(self) -> bool:
        """Whether it may be missed."""
        return self.schedule.forecast is CaseForecast.AT_RISK
