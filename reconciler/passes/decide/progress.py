"""What the decisions of a pass share: the decision about a node changes it for the next node."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from reconciler.model.plan import NodePlan
from reconciler.model.schedule import CaseSchedule
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.passes.decide.replacing import PoolKey
from reconciler.passes.feature import Beside
from reconciler.profiles.budget import DisruptionBudget
from reconciler.profiles.situation import Acknowledgement


class Progress(Struct):
    """Places taken, the last start, pools scaled up, and drains in progress, after the nodes so far.

    `drains` counts the orders that use a slot. `holding` are the nodes whose drains hold one and that have no
    decision yet. `undrained` counts the nodes for which our own node waits, and `begun` is when the drain of
    the last of them began (UTC). `slot_free_at` is when the first slot may become free, and `stuck_at` when
    our own node may no longer wait for one of the others (UTC). `schedules` says when each case is planned to
    start. `beside` is what features do beside the profile of platform events.
    """

    places: DisruptionBudget
    ledger: Ledger
    acknowledgements: Mapping[str, tuple[Acknowledgement, ...]] = field(default_factory=dict)
    pools: dict[PoolKey, str] = field(default_factory=dict)
    drains: int = 0
    undrained: int = 0
    begun: datetime | None = None
    slot_free_at: datetime | None = None
    stuck_at: datetime | None = None
    holding: set[str] = field(default_factory=set)
    schedules: Mapping[str, CaseSchedule] = field(default_factory=dict)
    plans: list[NodePlan] = field(default_factory=list)
    beside: tuple[Beside, ...] = ()

    def saved(self) -> Progress:
        """Return a copy, from which `restore` takes back what a node's failed decision left."""
        return replace(self, pools=dict(self.pools), holding=set(self.holding))

    def restore(self, before: Progress) -> None:
        """Take back all that changed since `before` was saved; `plans` only ever get whole plans."""
        self.places, self.ledger, self.pools = before.places, before.ledger, before.pools
        self.drains, self.undrained, self.holding = before.drains, before.undrained, before.holding
        self.begun, self.stuck_at = before.begun, before.stuck_at
