"""Plans of Azure's, weeks ahead, as the engine sees them; and a node that was emptied for one."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

from reconciler.model.event import Kind, PlatformPlan
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent
from reconciler.model.record import CaseRecord, SelfService
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import NOW, event, judged, known, settings

DAY = timedelta(days=1)
PROVIDER_ID = (
    "azure:///subscriptions/s/resourceGroups/mc_shop/providers/Microsoft.Compute"
    "/virtualMachineScaleSets/aks-np-123-vmss/virtualMachines/7"
)
START = NOW + 14 * DAY
OFFER = PlatformPlan(START + 7 * DAY, True, NOW - DAY, START)
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
    source = chosen.sources.arm
    waits = source.wait_for_notice
    meant = (
        dataclasses.replace(plan, ahead=source.ahead, accept=source.self_service, waits=waits)
        if plan
        else None
    )
    return judged(dataclasses.replace(reported, plan=meant), chosen, now=now, on=azure_node(), notice=notice)


def drained(asked: SelfService | None = None) -> CaseRecord:
    """The record of a node that was emptied for it."""
    held = builders.record(events=(known(Kind.REDEPLOY, not_before=START, sources=("arm",)),))
    return replace(held, self_service=asked)
