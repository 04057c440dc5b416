"""What a rehearsal has read and decided."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Examination:
    """A plan, and the snapshot from which it was decided."""

    plan: Plan
    snapshot: Snapshot
