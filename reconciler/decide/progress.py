"""What one node's decision leaves behind for the next within a pass."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.engine.places import Places
from reconciler.model.plan import NodePlan
from reconciler.model.snapshot import Ledger


@dataclass(slots=True)
class Progress:
    """What one decision leaves behind for the next: places, the last start, drains under way."""

    places: Places
    ledger: Ledger
    drains: int = 0
    undrained: int = 0
    plans: list[NodePlan] = field(default_factory=list)
