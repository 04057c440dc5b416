"""Machines behind nodes, and situations in which one is to be replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from reconciler.clients.kubernetes.connection import Connection
from reconciler.clients.machine_providers import CLIENTS, MachineClient, MachineProviders, Surroundings
from reconciler.engine.situation import Situation
from reconciler.machines import openshift
from reconciler.model.event import Kind
from reconciler.model.machine import Machine, MachineRef, Pool
from reconciler.model.record import CaseRecord, Replacement, State
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import NOW, event, judged, settings

REPLACES = settings("events: {Redeploy: {replace: true}}")
SURGES = settings("events: {Redeploy: {replace: true}}\nreplace: {surge: true}")
POOL = Pool("MachineSet", "np", "machines", wanted=3, ready=3, revision="7", scales=True)
AKS_POOL = replace(POOL, kind="agent pool", lowered_by_deletion=True)
REF = MachineRef("a", "uid-a", openshift.NAME, "m-a", "machines")


def machine(pool: Pool | None = POOL, *, provider: str = openshift.NAME, **more: Any) -> Machine:
    """The machine of node a."""
    return Machine(replace(REF, provider=provider), name="m-a", uid="machine-a", pool=pool, **more)


def to_be_replaced(
    owner: Machine | None,
    *,
    chosen: Settings = REPLACES,
    asked: Replacement | None = None,
    held: CaseRecord | None = None,
    state: State = State.IN_MAINTENANCE,
    **more: Any,
) -> Situation:
    """Node a with a Redeploy, drained unless `held` or `state` says something else."""
    told = event(Kind.REDEPLOY, **more.pop("told", {}))
    record = replace(held or builders.record(state), replacement=asked)
    closed = state is State.IN_MAINTENANCE
    on = more.pop("on", builders.node(unschedulable=closed))
    found = builders.situation(
        on, judged(told, chosen, now=more.get("now", NOW)), chosen=chosen, held=record, **more
    )
    return replace(found, state=state, machine=owner)


def all_machines(
    connection: Connection,
    *,
    guard: Callable[[], None] | None = None,
    chosen: Settings = REPLACES,
    clients: Mapping[str, Callable[[Surroundings], MachineClient]] = CLIENTS,
) -> MachineProviders:
    """Every machine provider of the registry; without a guard they only read."""
    return MachineProviders(Surroundings(connection, chosen, guard), clients)
