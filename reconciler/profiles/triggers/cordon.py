"""cordon: make the node unschedulable, and record whose cordon it is."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.plan import Notice
from reconciler.model.record import Cordon
from reconciler.model.structs import replace
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("cordon")
def cordon(situation: Situation, effects: Effects) -> Effects:
    """Cordon the node. Share the cordon of another profile, and do not touch a foreign one (law 2)."""
    if situation.node.unschedulable:
        before = effects.record.node_cordon
        whose = Cordon.FOREIGN if before is Cordon.NONE else before
        return replace(effects, record=replace(effects.record, cordon=whose))
    because = "; ".join(dict.fromkeys((*(one.because for one in situation.asking), *_why_now(situation))))
    effects = replace(effects, unschedulable=True, record=replace(effects.record, cordon=Cordon.OURS))
    return effects.with_notice(Notice("MaintenanceCordon", f"cordoned: {because}"))


def _why_now(situation: Situation) -> Iterator[str]:
    """Yield what allows the start now: the window or the deadline, what that overrules, and the budget."""
    for one in situation.asking:
        if one.may_start:
            yield f"{one.timing}, which overrules: {one.overruled}" if one.overruled else one.timing
    use = situation.places.take(situation.node, "").use()
    exempt = " (exempt)" if len(use.holders) > use.limit else ""
    yield f"budget: {len(use.holders)} of {use.limit} places taken{exempt}"
