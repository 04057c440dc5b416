"""Instruct: what a person's hold, deferral or approval changes on a node."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo

from reconciler.calendar.formatting import format_local
from reconciler.calendar.values import literal, parse_duration, parse_moment, to_utc
from reconciler.engine import case as cases
from reconciler.engine.instructed import case_of
from reconciler.model import limits
from reconciler.model.instructions import (
    Approval,
    Deferral,
    PersonHold,
    Word,
    approval_text,
    deferral_text,
    hold_text,
    instructions_of,
)
from reconciler.model.keys import OwnKeys
from reconciler.model.moments import shifted
from reconciler.model.node import Node
from reconciler.model.own import node_write
from reconciler.model.plan import NodePlan, NodeWrite
from reconciler.model.record import CaseRecord, Record
from reconciler.model.record_text import record_of

_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class Instructed:
    """What an instruction changes on one node.

    `done` says it in words. `write` is None if nothing changes. `refused`: it can't be done, and `done` says
    why.
    """

    done: str
    write: NodeWrite | None = None
    refused: bool = False


def parse_until(text: str, zone: tzinfo, now: datetime) -> datetime:
    """Return the moment in UTC: `+2h` from `now` (aware), a date, a date and time in `zone`, or RFC 3339.

    Raises ValueError, with what to change, for any other text and for a moment that is not in the future.
    """
    text = text.strip()
    try:
        if text.startswith("+"):
            moment = shifted(now, parse_duration(text[1:]))
        else:
            moment = to_utc(parse_moment(text), zone)
    except ValueError as error:
        raise ValueError(f"{error}; or +2h from now") from error
    # The annotation has whole seconds.
    moment = moment.replace(microsecond=0)
    if not limits.is_moment(moment):
        raise ValueError(f"{literal(text)} is not from 2000 to 2100")
    if moment <= now:
        raise ValueError(f"{format_local(moment, zone)} is not in the future")
    return moment


def held(node: Node, hold: PersonHold, prefix: str, now: datetime) -> Instructed:
    """Return the patch that holds the node. It replaces another hold, and says whose."""
    before = instructions_of(node, prefix, now).hold
    replaced = f"; it was held {before.word}" if before is not None else ""
    stops = ", and its drain stops" if hold.stops else ""
    write = node_write(node, prefix, annotations={OwnKeys(prefix).hold: hold_text(hold)})
    return Instructed(f"held {hold.word}{stops}{replaced}", write)


def deferred(node: Node, deferral: Deferral, prefix: str, now: datetime) -> Instructed:
    """Return the patch that defers the drain of the node. It replaces another deferral, and says whose."""
    before = instructions_of(node, prefix, now).deferral
    replaced = f"; it was deferred {before.word}" if before is not None else ""
    write = node_write(node, prefix, annotations={OwnKeys(prefix).defer: deferral_text(deferral)})
    return Instructed(f"deferred {deferral.word}{replaced}", write)


def resumed(node: Node, prefix: str) -> Instructed:
    """Return the patch that ends the hold and the deferral of the node."""
    keys = OwnKeys(prefix)
    found = {
        key: name for key, name in ((keys.hold, "hold"), (keys.defer, "deferral")) if key in node.annotations
    }
    if not found:
        return Instructed("neither held nor deferred")
    write = node_write(node, prefix, annotations=dict.fromkeys(found))
    return Instructed(f"resumed: {' and '.join(found.values())} removed", write)


def approved(node: Node, plan: NodePlan | None, word: Word, prefix: str, now: datetime) -> Instructed:
    """Return the patch that approves what waits for an approval on the node now; `plan` is that of a pass.

    What is approved are the events of the moment. The next event needs an approval of its own.
    """
    record = record_of(node, prefix)
    case = case_of(record.case(_PROFILE) if isinstance(record, Record) else CaseRecord())
    found = plan.events if plan is not None else ()
    waiting = [cases.known(one.event) for one in found if one.kept.approval is not None]
    if not waiting:
        return Instructed("nothing waits for an approval", refused=True)
    before = instructions_of(node, prefix, now).approval
    kept = [cases.known(one.event) for one in found if before is not None and before.covers(one.event, case)]
    try:
        text = approval_text(Approval(word, case, (*kept, *waiting)[-limits.EVENTS :]))
    except ValueError as error:
        return Instructed(str(error), refused=True)
    names = ", ".join(dict.fromkeys(one.condition or one.kind.value for one in waiting))
    write = node_write(node, prefix, annotations={OwnKeys(prefix).approved: text})
    return Instructed(f"{names} approved {word}", write)


def unapproved(node: Node, prefix: str) -> Instructed:
    """Return the patch that withdraws the approval of the node."""
    key = OwnKeys(prefix).approved
    if key not in node.annotations:
        return Instructed("has no approval")
    return Instructed("approval withdrawn", node_write(node, prefix, annotations={key: None}))
