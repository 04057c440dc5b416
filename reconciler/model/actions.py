"""The names of what a pass does about a node."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.machine import Remove, ScaleUp
from reconciler.model.outcome import ActionName
from reconciler.model.plan import NodePlan
from reconciler.model.writes import NodeWrite


def actions(plan: NodePlan) -> tuple[ActionName, ...]:
    """Return the actions for the node, in order."""
    return tuple(_actions(plan))


def _actions(plan: NodePlan) -> Iterator[ActionName]:
    if plan.todo.stop_drain:
        yield ActionName.STOP_DRAIN
    yield from (ActionName.TAKE_LEASE for _ in plan.todo.takes)
    if plan.todo.hypervisor is not None:
        yield ActionName.CHANGE_HYPERVISOR
    if plan.todo.write is not None:
        yield write_name(plan.todo.write)
    if plan.todo.drain is not None:
        yield ActionName.DRAIN
    yield from (ActionName.RUN_HOOK for _ in plan.todo.hooks)
    if plan.todo.perform is not None:
        yield plan.todo.perform.action
    if plan.todo.machine is not None:
        yield machine_name(plan.todo.machine)
    yield from (publication.action for publication in plan.todo.publications)


def write_name(write: NodeWrite) -> ActionName:
    """Return the name of a node's patch."""
    if write.unschedulable is not None:
        return ActionName.CORDON if write.unschedulable else ActionName.UNCORDON
    return ActionName.PUBLISH if write.only_shows else ActionName.RECORD


def machine_name(action: ScaleUp | Remove) -> ActionName:
    """Return the name of a request to a machine provider."""
    return ActionName.RAISE_POOL if isinstance(action, ScaleUp) else ActionName.REPLACE_MACHINE


def outcome_name(plan: NodePlan) -> str:
    """Return the name of the outcome of the node's patch, empty if there is no patch.

    An outcome distinguishes a step of the state machine from other changes of the record.
    """
    if plan.todo.write is None:
        return ""
    name = write_name(plan.todo.write)
    if name is not ActionName.RECORD:
        return name
    moved = plan.transitions and plan.after is not plan.before
    return f"move to {plan.after}" if moved else "update record"
