"""adopt: take over the cordon of another tool, or our own one that has lost its record."""

from __future__ import annotations

from reconciler.model.node import MECHANIC_LABEL
from reconciler.model.plan import Notice
from reconciler.model.record import Cordon
from reconciler.model.structs import replace
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("adopt")
def adopt(situation: Situation, effects: Effects) -> Effects:
    """Make mechanic's cordon ours, and remove its label, so that a mechanic still running ignores the node.

    Our own cordon whose record somebody removed is taken back in the same way: why it was set is not known.

    It starts no drain: the checks of every start decide about that (`drainDue`).
    """
    record = replace(effects.record, cordon=Cordon.ADOPTED_MECHANIC)
    effects = replace(effects, record=record, labels={**effects.labels, MECHANIC_LABEL: None})
    ours = situation.node.cordoned_by_us
    what = "took back its cordon, whose record somebody removed" if ours else "adopted the cordon of mechanic"
    return effects.with_notice(Notice("MaintenanceAdopted", what))
