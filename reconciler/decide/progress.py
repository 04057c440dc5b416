"""What the decisions of a pass share: the decision about a node changes it for the next node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.decide.replacing import PoolKey
from reconciler.engine.budget import DisruptionBudget
from reconciler.engine.situation import Acknowledgement
from reconciler.model.plan import NodePlan
from reconciler.model.snapshot import Ledger


@dataclass(slots=True)
class Progress:
    """Places taken, the last start, pools scaled up, and drains in progress, after the nodes so far."""

    places: DisruptionBudget
    ledger: Ledger
    acknowledgements: Mapping[str, tuple[Acknowledgement, ...]] = field(default_factory=dict)
    pools: dict[PoolKey, str] = field(default_factory=dict)
    drains: int = 0
    undrained: int = 0
    plans: list[NodePlan] = field(default_factory=list)
