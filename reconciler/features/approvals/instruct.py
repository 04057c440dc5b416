"""Instruct: what a person's hold, deferral or approval changes on a node."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from msgspec import Struct

from reconciler.features.approvals.permissions import APPROVED
from reconciler.model import limits
from reconciler.model.instructions import (
    Deferral,
    Permission,
    PersonHold,
    Word,
    before_text,
    deferral_text,
    hold_of,
    hold_text,
    instructions_of,
    permission_text,
)
from reconciler.model.keys import keys_of
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.record import CaseRecord, Record, State, record_of
from reconciler.model.writes import NodeWrite, node_write
from reconciler.profiles import case as cases
from reconciler.profiles.instructed import case_of

_PROFILE = "default"


class InstructionResult(Struct, frozen=True):
    """What an instruction changes on one node.

    `done` says it in words. `write` is None if nothing changes. `refused`: it can't be done, and `done` says
    why. `idle`: nothing is to be said of it, unless somebody named the node.
    """

    done: str
    write: NodeWrite | None = None
    refused: bool = False
    idle: bool = False


def held(node: Node, hold: PersonHold, prefix: str, now: datetime) -> InstructionResult:
    """Return the patch that holds the node. It replaces another hold, and says whose."""
    before = instructions_of(node, prefix, now).hold
    replaced = f"; it was held {before.word}" if before is not None else ""
    record, begun = _record_of_drain(node, prefix), ""
    if record is not None:
        if record.drain is not None and record.drain.drain.done is not None:
            begun = "; it is drained, and stays cordoned"
        elif hold.stops:
            begun = ", and its drain stops"
        else:
            begun = "; its maintenance has begun, and goes on"
    write = node_write(node, prefix, annotations={keys_of(prefix).hold: hold_text(hold)})
    return InstructionResult(f"held {hold.word}{begun}{replaced}", write)


def deferred(node: Node, deferral: Deferral, prefix: str, now: datetime) -> InstructionResult:
    """Return the patch that defers the drain of the node. It replaces another deferral, and says whose."""
    before = instructions_of(node, prefix, now).deferral
    replaced = f"; it was deferred {before.word}" if before is not None else ""
    write = node_write(node, prefix, annotations={keys_of(prefix).defer: deferral_text(deferral)})
    return InstructionResult(f"deferred {deferral.word}{replaced}", write)


def hold_means(hold: PersonHold, which: str, arguments: str) -> tuple[str, ...]:
    """Return in sentences what follows from a hold, what it does not stop, and the command that ends it.

    `which` are its nodes in words, `arguments` name them for commands.
    """
    until = f" until {to_text(hold.word.until)}" if hold.word.until is not None else ""
    begins = f"No drain of {which} begins{until}, not even at a deadline"
    runs = "stops, and its node stays cordoned" if hold.stops else "goes on (--now stops it)"
    platform = f"A drain that runs {runs}. The maintenance of the platform is not stopped."
    # What was done for all nodes at once names the command itself.
    end = "" if hold.word.scope else f" To end the hold: reconciler resume {arguments}"
    return f"{begins}.{end}", platform


def deferral_means(deferral: Deferral, which: str, arguments: str) -> tuple[str, ...]:
    """Return what `hold_means` does, of a deferral."""
    until = f"before {to_text(deferral.word.until)}, " if deferral.word.until is not None else ""
    begins = f"No drain of {which} begins {until}unless the deadline of an event comes first"
    return f"{begins}. To end the deferral: reconciler resume {arguments}", _not_stopped(arguments)


def approval_means(word: Word, which: str, arguments: str) -> tuple[str, ...]:
    """Return what `hold_means` does, of an approval."""
    permitted = "as holds, windows, freezes and the budget permit"
    ends = f" It ends at {to_text(word.until)} if no drain has begun." if word.until is not None else ""
    withdraw = f" To withdraw the approval: reconciler approve {arguments} --cancel"
    return (f"Drains of {which} may begin for what is announced now, {permitted}.{ends}{withdraw}",)


def withdrawal_means(which: str, arguments: str) -> tuple[str, ...]:
    """Return what `hold_means` does, of an approval that is withdrawn."""
    return f"Drains of {which} that need an approval wait for one.", _not_stopped(arguments)


def _not_stopped(arguments: str) -> str:
    return f"A drain that runs is not stopped. To stop it: reconciler hold {arguments} --now"


def consequence(plan: NodePlan, word: Word) -> str:
    """Return in words what an instruction means for the case of a node, by the plan made after it.

    It is empty if the node has no case, or its drain has begun. The plan is that of `reconciler plan`.
    """
    schedule = plan.schedule
    if schedule is None or schedule.started:
        return ""
    dates = [one.event.not_before for one in plan.events if one.asks and one.event.not_before is not None]
    platform = f"the platform may start at {to_text(min(dates))}" if dates else ""
    start = schedule.planned_start
    begins = (
        f"its drain {'would start' if schedule.observed else 'starts'} at {to_text(start)}" if start else ""
    )
    if schedule.missed:
        # The line before this one says who holds the node.
        because = "" if str(word) in schedule.because else schedule.because
        words = ("the node will not be drained in time", platform, begins, because)
        return "; ".join(text for text in words if text)
    if start is None:
        return f"no start of its drain is planned: {schedule.because}"
    if word.until is not None and start < word.until:
        return f"the deadline wins: {begins}, before {to_text(word.until)}"
    return f"{begins}; {platform}" if platform else begins


def stopped(node: Node, hold: PersonHold, prefix: str) -> InstructionResult:
    """Return the patch that stops the drain of a node with a hold of many nodes, if one may run on it.

    The hold itself is in the ledger. A drain that runs reads its own node only.
    """
    if _record_of_drain(node, prefix) is None:
        return InstructionResult("is not in maintenance", idle=True)
    write = node_write(node, prefix, annotations={keys_of(prefix).hold_of_many: hold_text(hold)})
    return InstructionResult(f"its drain stops, held {hold.word}", write)


def _record_of_drain(node: Node, prefix: str) -> Record | None:
    """Return the record of a node on which a drain may run, None for any other node."""
    record = record_of(node, prefix)
    if isinstance(record, Record) and (record.in_maintenance or record.claimed_by or record.of_features):
        return record
    return None


def resumed(
    node: Node, prefix: str, now: datetime, who: str, fleet: Iterable[PersonHold] = ()
) -> InstructionResult:
    """Return the patch that ends the hold and the deferral of the node; `who` ends them.

    `fleet` are the holds of the ledger, which go on and are named.
    """
    keys = keys_of(prefix)
    found = {
        key: name for key, name in ((keys.hold, "hold"), (keys.defer, "deferral")) if key in node.annotations
    }
    held = [one.words(node.name) for one in fleet if one.applies(node.pool, now)]
    still = f"; {'; '.join(held)}" if held else ""
    if not found:
        return InstructionResult(
            f"neither held nor deferred itself{still}" if held else "neither held nor deferred", idle=True
        )
    said = instructions_of(node, prefix, now)
    words = (
        f"{name} {one.word}" if one is not None and one.word.scope == "" else name
        for name, one in zip(("hold", "deferral"), (said.hold, said.deferral), strict=True)
        if name in found.values()
    )
    own = hold_of(node.annotations[keys.hold], now) if keys.hold in found else None
    over = [f"held {own.word}"] if own is not None else []
    over += [f"deferred {said.deferral.word}"] if said.deferral is not None and keys.defer in found else []
    kept = _kept_for_history(node, prefix, over, who, now)
    write = node_write(node, prefix, annotations={**dict.fromkeys(found), **kept})
    return InstructionResult(f"resumed: ended the {' and the '.join(words)}{still}", write)


def resumed_with_many(
    node: Node, prefix: str, now: datetime, who: str, scope: str, held: Iterable[PersonHold] = ()
) -> InstructionResult:
    """Return the patch that ends on the node what was given to many nodes at once; `who` ends it.

    `held` are the holds of the ledger that end. A node with a case keeps them for its history.

    An instruction to the node itself stays, and is named.
    """
    keys, said = keys_of(prefix), instructions_of(node, prefix, now)
    found = [keys.hold_of_many] if _scope_of(node.annotations.get(keys.hold_of_many), now) == scope else []
    found += [keys.defer] if said.deferral is not None and said.deferral.word.scope == scope else []
    own = hold_of(node.annotations[keys.hold], now) if keys.hold in node.annotations else None
    own_words = [f"held {own.word}"] if own is not None else []
    if said.deferral is not None and said.deferral.word.scope != scope:
        own_words.append(f"deferred {said.deferral.word}")
    resume = f"reconciler resume {node.name} ends that"
    still = f"still {' and '.join(own_words)}; {resume}" if own_words else ""
    over = [f"held {one.word}" for one in held if one.applies(node.pool, now)]
    over += [f"deferred {said.deferral.word}"] if said.deferral is not None and keys.defer in found else []
    kept = _kept_for_history(node, prefix, over, who, now)
    if not found and not kept:
        return InstructionResult(still or "neither held nor deferred", idle=not still)
    write = node_write(node, prefix, annotations={**dict.fromkeys(found), **kept})
    return InstructionResult("; ".join(text for text in ("resumed", still) if text), write)


def _kept_for_history(
    node: Node, prefix: str, over: Collection[str], who: str, now: datetime
) -> dict[str, str | None]:
    """Return the annotation with what people have ended in a case, for its history; empty without a case."""
    if not over or not _case(node, prefix).open:
        return {}
    before = instructions_of(node, prefix, now).before
    ended = to_text(now.replace(microsecond=0))
    said = (*before, *(f"{one}; resumed by {who} at {ended}" for one in over))
    return {keys_of(prefix).said_before: before_text(said)}


def approved(
    node: Node, plan: NodePlan | None, word: Word, prefix: str, *, workflows: bool = False, known: bool = True
) -> InstructionResult:
    """Return the patch that approves what waits for an approval on the node now; `plan` is that of a pass.

    What is approved are the events of the moment. The next event needs an approval of its own. With
    `workflows`, it is also an approval for the present run of the workflows.

    Without `known`, the settings are not known, so neither is which events need an approval: all are approved
    that require a drain, or that the record knows, and for which no drain has begun. The others need none.
    """
    record, found = _case(node, prefix), plan.events if plan is not None else ()
    case, said = case_of(record), instructions_of(node, prefix, word.at or limits.LATEST)
    before = said.permission(APPROVED.name)
    if known:
        waiting = [cases.known(one.event) for one in found if one.kept.of(APPROVED.name) is not None]
        kept = [
            cases.known(one.event) for one in found if before is not None and before.covers(one.event, case)
        ]
    else:
        waiting = [one for one in record.events if record.state is State.REQUIRED or one.waits]
        waiting += [
            cases.known(one.event)
            for one in found
            if one.asks and not any(recorded.matches(one.event) for recorded in record.events)
        ]
        same = before is not None and before.case == case
        kept = [one for one in before.events if one not in waiting] if before is not None and same else []
    if not waiting and not workflows:
        return InstructionResult("nothing waits for an approval", refused=True)
    try:
        events = (*kept, *waiting)[-limits.EVENTS :]
        text = permission_text(Permission(word, case, events, kind=APPROVED, workflows=workflows))
    except ValueError as error:
        return InstructionResult(str(error), refused=True)
    named = [one.condition or one.kind.value for one in waiting]
    names = ", ".join(dict.fromkeys((*named, "its workflows") if workflows else named))
    write = node_write(node, prefix, annotations={f"{prefix}/{APPROVED.name}": text})
    return InstructionResult(f"{names} approved {word.once}", write)


def _case(node: Node, prefix: str) -> CaseRecord:
    record = record_of(node, prefix)
    return record.case(_PROFILE) if isinstance(record, Record) else CaseRecord()


def unapproved(node: Node, prefix: str) -> InstructionResult:
    """Return the patch that withdraws the approval of the node."""
    key = f"{prefix}/{APPROVED.name}"
    if key not in node.annotations:
        return InstructionResult("has no approval", idle=True)
    return InstructionResult("approval withdrawn", node_write(node, prefix, annotations={key: None}))


def _scope_of(text: str | None, now: datetime) -> str:
    hold = hold_of(text, now) if text is not None else None
    return hold.word.scope if hold is not None else ""
