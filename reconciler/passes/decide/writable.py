"""A node whose writes do not stay: they wait for growing pauses, and the hold says what undoes them."""

from __future__ import annotations

from datetime import datetime

from reconciler.model.holds import HoldCode
from reconciler.model.keys import keys_of
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import Hold, NodePlan, Notice, NoticeType
from reconciler.model.undone import NOT_WRITTEN, Undone
from reconciler.model.values import replace
from reconciler.model.writes import REWRITTEN, NodeWrite, changes, essential, rewritten
from reconciler.passes.decide.context import PassContext


def undone_of(plan: NodePlan, ledger: tuple[Undone, ...]) -> Undone | None:
    """Return what did not stay of an earlier write of the node, if this plan writes it again."""
    write = plan.todo.write or plan.todo.noted
    if write is None or not ledger:
        return None
    known = _known(write.node, write.uid, ledger)
    tried = changes(write) | rewritten(write)
    return known if known is not None and not tried.isdisjoint(known.lost) else None


def waits(plan: NodePlan, undone: Undone, now: datetime) -> bool:
    """Whether the write of a plan waits for its next try.

    What only shows something, and did not stay, holds no write that has more to change.
    """
    write = plan.todo.write or plan.todo.noted
    if write is None or now >= undone.until:
        return False
    return is_needed(plan, undone) or changes(write) <= set(undone.lost)


def is_needed(plan: NodePlan, undone: Undone) -> bool:
    """Whether nothing may happen on the node before what did not stay is written."""
    write = plan.todo.write or plan.todo.noted
    return write is not None and not (essential(write) | rewritten(write)).isdisjoint(undone.lost)


def remembering(plan: NodePlan, node: Node, undone: Undone | None, context: PassContext) -> NodePlan:
    """Return the plan with what to remember of the writes of its node that did not stay.

    `undone` is what `undone_of` returns. A record that somebody has removed counts when it is written again,
    and stays in the ledger until the case ends: each further removal is answered after a longer pause.
    """
    write = plan.todo.write or plan.todo.noted
    now, shown = context.now, context.keys.state in node.labels
    if write is not None and (node.cordoned_by_us or shown) and rewritten(write):
        return _rewriting(plan, write, undone or Undone(node.name, node.uid, (), "", 0, now), now)
    if undone is None:
        known = _known(node.name, node.uid, context.snapshot.ledger.undone)
        if known is not None and known.lost == (REWRITTEN,) and (node.unschedulable or shown):
            undone = known
    return plan if undone is None else replace(plan, todo=replace(plan.todo, undone=undone))


def _rewriting(plan: NodePlan, write: NodeWrite, before: Undone, now: datetime) -> NodePlan:
    """Return the plan that writes the record again. From the second time on a Warning Event says so."""
    because = f"somebody removes the record of the node (annotation {keys_of(write.own_prefix).record})"
    undone, notices = before.again((REWRITTEN,), because, now), plan.todo.notices
    if undone.times > 1:
        notices = (*notices, Notice(NOT_WRITTEN, because, NoticeType.WARNING, once=because))
    return replace(plan, todo=replace(plan.todo, undone=undone, notices=notices))


def _known(node: str, uid: str, ledger: tuple[Undone, ...]) -> Undone | None:
    return next((one for one in ledger if (one.node, one.uid) == (node, uid)), None)


def hold(undone: Undone) -> Hold:
    """Return the hold of a node whose write waits for its next try."""
    reason = f"{undone.words}; tried again at {to_text(undone.until)}"
    return Hold(undone.node, HoldCode.NODE_WRITABLE, reason, undone.until)
