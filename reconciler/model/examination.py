"""What a rehearsal has read and decided."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot


class Examination(Struct, frozen=True):
    """A plan, and the snapshot from which it was decided."""

    plan: Plan
    snapshot: Snapshot
