"""drain: claims the drain of the node for the profile, and keeps the chain waiting until it is done."""

from __future__ import annotations

from reconciler.features.workflows.trigger import TriggerInput, Worked, trigger_type
from reconciler.features.workflows.triggers.cordon import cordoned
from reconciler.model.record import DrainRecord
from reconciler.model.structs import replace
from reconciler.settings.sections.trigger_types import Draining

WAITS = "the node is being drained"


@trigger_type("drain", Draining)
def drain(config: Draining, given: TriggerInput) -> Worked:
    """Drain the node, and cordon it first (law 1)."""
    del config
    return drained(given)


def drained(given: TriggerInput) -> Worked:
    """Return the work with the node drained for the profile, or with the reason to wait for that.

    The drain of another profile, or of a person, is shared. A drain of an earlier run of the profile is over.
    """
    work = cordoned(given)
    before = work.record.drain
    found = before.drain if before is not None else None
    mine = before is not None and given.claim in before.claims
    again = found is None or (mine and found.done is not None and not given.resumed)
    kept = DrainRecord(given.now) if again or found is None else found
    record = work.record.drained(kept, given.claim)
    return replace(work, record=record, waits="" if kept.done is not None else WAITS)
