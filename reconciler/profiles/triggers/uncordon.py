"""uncordon: remove our cordon and close the case."""

from __future__ import annotations

from reconciler.model.case_outcome import CaseResult, outcome_of
from reconciler.model.plan import Notice, NoticeType
from reconciler.model.record import CaseRecord
from reconciler.model.structs import replace
from reconciler.profiles.plugins import trigger
from reconciler.profiles.situation import Effects, Situation


@trigger("uncordon")
def uncordon(situation: Situation, effects: Effects) -> Effects:
    """Close the case, and uncordon if the cordon is ours or adopted (law 2) and the claim is the last."""
    record = effects.record
    undo = record.may_uncordon
    # A plan for later is still reported, and this case of it is over.
    quiet = situation.record.quiet_since or situation.now
    outcome = outcome_of(replace(situation.record, quiet_since=quiet))
    message = f"maintenance is over: {_left(record)}"
    missed = outcome is not None and outcome.result is CaseResult.MISSED
    message = f"{message}; {outcome.words}" if outcome is not None else message
    effects = replace(effects, record=record.closed(), unschedulable=False if undo else None)
    return effects.with_notice(
        Notice("MaintenanceDone", message, NoticeType.WARNING if missed else NoticeType.NORMAL)
    )


def _left(record: CaseRecord) -> str:
    if record.may_uncordon:
        return "uncordoned"
    if not record.cordon.may_be_undone:
        return "the cordon is not ours"
    return f"still cordoned for {', '.join(map(str, record.also_claimed_by))}"
