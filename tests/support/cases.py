"""Cases for tests: plans of Azure, machines that are to be replaced, and cases that have ended."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timedelta
from typing import Any

from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import CasePlace, CaseTimes, EndedCase, to_fields
from reconciler.model.event import Kind, PlatformPlan
from reconciler.model.machine import OPENSHIFT, Machine, MachineRef, Pool
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent
from reconciler.model.record import Asked, CaseRecord
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import NOW, event, judged, known, minutes, settings

DAY = timedelta(days=1)
PROVIDER_ID = (
    "azure:///subscriptions/s/resourceGroups/mc_shop/providers/Microsoft.Compute"
    "/virtualMachineScaleSets/aks-np-123-vmss/virtualMachines/7"
)
START = NOW + 14 * DAY
OFFER = PlatformPlan(START + 7 * DAY, True, NOW - DAY, START, "Azure")
TAKEN = settings("sources: {arm: {enabled: true, selfService: true}}")
ASKED_FOR = settings("sources: {arm: {enabled: true}}")


def azure_node(boot: str = "boot-1") -> Node:
    """A node on a uniform scale set, cordoned by us."""
    return replace(builders.node(unschedulable=True), provider_id=PROVIDER_ID, boot_id=boot)


def judged_plan(
    chosen: Settings = TAKEN,
    *,
    plan: PlatformPlan | None = OFFER,
    not_before: datetime | None = START,
    now: datetime = NOW,
    notice: bool = False,
) -> JudgedEvent:
    """A plan of Azure's to redeploy a node's VM, judged."""
    reported = event(Kind.REDEPLOY, sources=("arm",), not_before=not_before)
    source = dict(chosen.sources)["arm"]
    waits = source.wait_for_notice
    meant = (
        dataclasses.replace(plan, ahead=source.ahead, accept=source.self_service, waits=waits)
        if plan
        else None
    )
    return judged(dataclasses.replace(reported, plan=meant), chosen, now=now, on=azure_node(), notice=notice)


def self_service(at: datetime = NOW, attempts: int = 1) -> Asked:
    """Azure was asked for the maintenance of a VM that had not booted."""
    return Asked("selfService", at, attempts, own="boot-1")


def acknowledged(*ids: str, at: datetime = NOW) -> tuple[Asked, ...]:
    """Azure was asked to start these events."""
    return (Asked("acknowledge", at, events=ids),) if ids else ()


def surged(at: datetime, wanted: int, attempts: int = 1) -> Asked:
    """The pool of a node was last scaled up for it then."""
    return Asked("surge", at, attempts, own=str(wanted))


def removed(at: datetime, attempts: int = 1) -> Asked:
    """The deletion of a node's machine was last asked for then."""
    return Asked("replace", at, attempts)


def drained(asked: Asked | None = None) -> CaseRecord:
    """The record of a node that was emptied for it."""
    held = builders.record(events=(known(Kind.REDEPLOY, not_before=START, sources=("arm",)),))
    return replace(held, asked=(asked,) if asked is not None else ())


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


def ended(
    name: str = "a",
    *,
    at: datetime = NOW,
    pool: str = "np",
    kind: str = "Reboot",
    outcome: CaseResult = CaseResult.DRAINED,
    **times: Any,
) -> EndedCase:
    """A case of an hour that ended at this moment: announced 20 minutes ahead, and drained in two."""
    start = at - minutes(60)
    moments: dict[str, Any] = {
        "announced": start,
        "not_before": start + minutes(20),
        "started": start + minutes(5),
        "drained": start + minutes(7),
        "gone": at - minutes(3),
        "uncordoned": at,
        **times,
    }
    return EndedCase(
        CasePlace(name, f"uid-{name}", "1", pool),
        CaseTimes(start, at, **moments),
        kind,
        ("imds",),
        outcome,
        f"{outcome.value}: as told",
        12,
        1,
    )


def line(case: EndedCase, **changed: Any) -> str:
    """The line of a case as a log has it, with these fields instead of its own."""
    return json.dumps({"at": "2026-11-21T12:00:00Z", "event": "case", **to_fields(case), **changed})
