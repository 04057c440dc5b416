"""Instruct: what a person's approval changes on a node, and what follows from it."""

from __future__ import annotations

from datetime import datetime

from reconciler.features.approvals.permissions import APPROVED
from reconciler.model import limits
from reconciler.model.instructions import Permission, Word, instructions_of, permission_text
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.record import State
from reconciler.model.writes import node_write
from reconciler.passes.instruct import InstructionResult, case_on, goes_on, with_end
from reconciler.profiles import case as cases
from reconciler.profiles.instructed import case_of


def approval_means(word: Word, which: str, arguments: str) -> tuple[str, ...]:
    """Return what follows from an approval, and the command that withdraws it, in sentences.

    `which` are its nodes in words, `arguments` name them for commands.
    """
    permitted = "as holds, windows, freezes and the budget permit"
    ends = f" It ends at {to_text(word.until)} if no drain has begun." if word.until is not None else ""
    withdraw = f" To withdraw the approval: reconciler approve {arguments} --cancel"
    return (f"Drains of {which} may begin for what is announced now, {permitted}.{ends}{withdraw}",)


def withdrawal_means(which: str, arguments: str) -> tuple[str, ...]:
    """Return what `approval_means` does, of an approval that is withdrawn."""
    return f"Drains of {which} that need an approval wait for one.", goes_on(arguments)


def approved(
    node: Node, plan: NodePlan | None, word: Word, prefix: str, *, workflows: bool = False, known: bool = True
) -> InstructionResult:
    """Return the patch that approves what waits for an approval on the node now; `plan` is that of a pass.

    What is approved are the events of the moment. The next event needs an approval of its own. With
    `workflows`, it is also an approval for the present run of the workflows.

    Without `known`, the settings are not known, so neither is which events need an approval: all are approved
    that require a drain, or that the record knows, and for which no drain has begun. The others need none.
    """
    record, found = case_on(node, prefix), plan.events if plan is not None else ()
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
        text = permission_text(Permission(word, case, events, kind=APPROVED, for_profiles=workflows))
    except ValueError as error:
        return InstructionResult(str(error), refused=True)
    named = [one.condition or one.kind.value for one in waiting]
    names = ", ".join(dict.fromkeys((*named, "its workflows") if workflows else named))
    write = node_write(node, prefix, annotations={f"{prefix}/{APPROVED.name}": text})
    return InstructionResult(f"{names} approved {word.once}", write)


def unapproved(node: Node, prefix: str, who: str, now: datetime) -> InstructionResult:
    """Return the patch by which `who` withdraws the approval of the node."""
    key = f"{prefix}/{APPROVED.name}"
    if key not in node.annotations:
        return InstructionResult("has no approval", idle=True)
    given = instructions_of(node, prefix, limits.EARLIEST).permission(APPROVED.name)
    word, done = given.word if given is not None else Word(), "approval withdrawn"
    kept = with_end(node, prefix, [(APPROVED.done, word)], done, who, now)
    return InstructionResult(done, node_write(node, prefix, annotations={key: None, **kept}))
