"""Instruct: what a person's hold or deferral changes on a node, what follows from it, and what ends it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct

from reconciler.model.instructions import (
    Deferral,
    Ended,
    PersonHold,
    Word,
    before_text,
    deferral_text,
    hold_of,
    hold_text,
    instructions_of,
)
from reconciler.model.keys import keys_of
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.record import CaseRecord, Record, record_of
from reconciler.model.writes import NodeWrite, node_write

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
    return f"{begins}. To end the deferral: reconciler resume {arguments}", goes_on(arguments)


def goes_on(arguments: str) -> str:
    """Return the sentence that says how to stop a drain of the nodes that these arguments name."""
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
        because = "" if str(word) in schedule.because else f"{schedule.because}{schedule.offer}"
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
    over = [("held", own.word)] if own is not None else []
    over += [("deferred", said.deferral.word)] if said.deferral is not None and keys.defer in found else []
    kept = with_end(node, prefix, over, "resumed", who, now)
    write = node_write(node, prefix, annotations={**dict.fromkeys(found), **kept})
    return InstructionResult(f"resumed: ended the {' and the '.join(words)}{still}", write)


def resumed_with_many(
    node: Node, prefix: str, now: datetime, who: str, scope: str, held: Iterable[PersonHold] = ()
) -> InstructionResult:
    """Return the patch that ends on the node what was given to many nodes at once; `who` ends it.

    `held` are the holds of the ledger that end. A node with a case keeps them.

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
    many = held if case_on(node, prefix).open else ()
    over = [("held", one.word) for one in many if one.applies(node.pool, now)]
    over += [("deferred", said.deferral.word)] if said.deferral is not None and keys.defer in found else []
    kept = with_end(node, prefix, over, "resumed", who, now)
    if not found and not kept:
        return InstructionResult(still or "neither held nor deferred", idle=not still)
    write = node_write(node, prefix, annotations={**dict.fromkeys(found), **kept})
    return InstructionResult("; ".join(text for text in ("resumed", still) if text), write)


def with_end(
    node: Node, prefix: str, over: Iterable[tuple[str, Word]], done: str, who: str, now: datetime
) -> dict[str, str | None]:
    """Return the annotation by which the next pass learns who has ended words of people, and a case keeps it.

    `over` has what was `done` before, such as `held`, with its word.
    """
    ended = [Ended(done, who, now.replace(microsecond=0), did, word) for did, word in over]
    if not ended:
        return {}
    before = instructions_of(node, prefix, now).before
    return {keys_of(prefix).said_before: before_text((*before, *ended))}


def case_on(node: Node, prefix: str) -> CaseRecord:
    """Return the case of a node, an empty one if it has none or its record can't be read."""
    record = record_of(node, prefix)
    return record.case(_PROFILE) if isinstance(record, Record) else CaseRecord()


def _scope_of(text: str | None, now: datetime) -> str:
    hold = hold_of(text, now) if text is not None else None
    return hold.word.scope if hold is not None else ""
