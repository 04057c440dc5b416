"""Machines of nodes, and situations in which one should be replaced."""

from __future__ import annotations

from datetime import datetime

from reconciler.model.event import Kind
from reconciler.model.machine import OPENSHIFT, Machine, MachineRef, Pool
from reconciler.model.record import CaseRecord, Replacement, State
from reconciler.model.values import replace
from reconciler.profiles.situation import Situation
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import event, judged, settings

REPLACES = settings("events: {Redeploy: {replace: true}}")
SURGES = settings("events: {Redeploy: {replace: true}}\nreplace: {surge: true}")
POOL = Pool("MachineSet", "np", "machines", wanted=3, ready=3, revision="7", scales=True)
AKS_POOL = replace(POOL, kind="agent pool", lowered_by_deletion=True)
REF = MachineRef("a", "uid-a", OPENSHIFT, "m-a", "machines")


def machine(
    pool: Pool | None = POOL,
    *,
    provider: str = OPENSHIFT,
    deleting: bool = False,
    control_plane: bool = False,
) -> Machine:
    """The machine of node a."""
    return Machine(
        replace(REF, provider=provider),
        name="m-a",
        uid="machine-a",
        pool=pool,
        deleting=deleting,
        control_plane=control_plane,
    )


def to_be_replaced(
    owner: Machine | None,
    *,
    chosen: Settings = REPLACES,
    asked: Replacement | None = None,
    held: CaseRecord | None = None,
    state: State = State.IN_MAINTENANCE,
    not_before: datetime | None = None,
    before_us: str = "",
) -> Situation:
    """Node a with a Redeploy, drained unless `held` or `state` says something else."""
    record = replace(held or builders.record(state), replacement=asked)
    on = builders.node(unschedulable=state is State.IN_MAINTENANCE)
    reported = judged(event(Kind.REDEPLOY, not_before=not_before), chosen)
    found = builders.situation(on, reported, chosen=chosen, held=record)
    return replace(found, state=state, machine=owner, before_us=before_us)
