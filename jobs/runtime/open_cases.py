"""The cases that were open after the last pass of this process: one whose node is deleted has ended."""

from __future__ import annotations

from functools import partial

from reconciler.model.ended_case import EndedCase, ended_case
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.problems import guarded


class OpenCases:
    """What the passes of one process have seen: the record of a case is gone with its node."""

    def __init__(self) -> None:
        """Start without cases."""
        self._open: dict[str, NodePlan] = {}

    def after(self, plan: Plan) -> tuple[EndedCase, ...]:
        """Return the cases that have ended since the last pass, because their nodes were deleted."""
        gone = [last for uid, last in self._open.items() if uid not in plan.uids]
        # A case that a person has released is forgotten.
        self._open = {
            node.uid: node for node in plan.nodes if node.uid and node.record is not None and node.record.open
        }
        found = []
        for last in gone:
            what = f"node {last.node}: its case is not in the history"
            case, _ = guarded(what, partial(ended_case, last, plan.now, deleted=True), None)
            found += [case] if case is not None else []
        return tuple(found)
