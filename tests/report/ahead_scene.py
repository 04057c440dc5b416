"""A plan that has a bit of everything in it, for the look ahead."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.event import Kind
from reconciler.model.plan import NodePlan, Plan, PlanSettings
from reconciler.model.problems import Unseen
from reconciler.model.record import State
from reconciler.model.schedule import CaseSchedule
from reconciler.report.ahead import PlanAhead, plan_ahead
from tests.support import builders
from tests.support.builders import NOW, event, judged, minutes

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
POOL = "aks-nodepool1-12345678-vmss"
MISS = (
    "at 2026-11-22T21:00:00Z five nodes are due and the budget has two places; "
    "a budget of 5 from 2026-11-22T20:00:00Z on would do"
)
SETTINGS = """
windows:
- {name: nights, start: "22:00", end: "05:00"}
- {name: batch-days, start: "08:00", end: "18:00", nodeSelector: {agentpool: batch}}
notAllowed: [{name: sale, reason: black friday, start: 2026-11-23, end: 2026-11-24T06:00}]
"""


def case(
    name: str, schedule: CaseSchedule | None, kind: Kind = Kind.REBOOT, *, not_before: datetime | None = None
) -> NodePlan:
    """A node with one event and this schedule."""
    one = judged(event(kind, node=name, not_before=not_before))
    return NodePlan(name, "1", "np", State.REQUIRED, State.REQUIRED, events=(one,), schedule=schedule)


def ahead(
    *nodes: NodePlan,
    settings: str = SETTINGS,
    zone: str = "UTC",
    until: timedelta = 7 * DAY,
    now: datetime = NOW,
    batch: Iterable[str] = (),
    unseen: tuple[Unseen, ...] = (),
    mode: str = "Enforce",
) -> PlanAhead:
    """The look ahead of these nodes under these settings; those of `batch` are in that pool."""
    plan = Plan(now, mode, nodes, settings=PlanSettings(time_zone=zone), unseen=unseen)
    labels = {node.node: {"agentpool": "batch" if node.node in batch else "np"} for node in nodes}
    chosen = builders.settings(f"timeZone: {zone}\n{settings}")
    return plan_ahead(plan, labels, chosen.calendar, now + until)


def everything(zone: str = "UTC") -> PlanAhead:
    """One case of each status, in two pools."""
    tonight = NOW + 11 * HOUR
    running = CaseSchedule(
        NOW - minutes(20), NOW, ends=NOW + minutes(40), because="its deadline has come", started=True
    )
    planned = CaseSchedule(tonight - HOUR, tonight, "nights", ends=tonight + HOUR)
    missed = CaseSchedule(None, tonight + DAY - 2 * HOUR, missed=True, because=MISS)
    late = CaseSchedule(tonight + DAY + 2 * HOUR, tonight + DAY, missed=True, because=MISS)
    batch = CaseSchedule(NOW + 3 * HOUR, NOW + 4 * HOUR, "batch-days")
    waiting = CaseSchedule(because="its date can't be read")
    span = CaseSchedule(
        plan_from=NOW + 2 * DAY, plan_until=NOW + 5 * DAY, because="the platform gives no moment"
    )
    return ahead(
        case(f"{POOL}000000", running, not_before=NOW + minutes(15)),
        case(f"{POOL}000001", planned, not_before=tonight + minutes(15)),
        case(f"{POOL}000002", missed, Kind.REDEPLOY, not_before=tonight + DAY - HOUR),
        case(f"{POOL}000003", late, not_before=tonight + DAY + HOUR),
        case("aks-batch-12345678-vmss000001", batch, not_before=NOW + 5 * HOUR),
        case(f"{POOL}000004", waiting),
        case(f"{POOL}000005", span, Kind.FREEZE, not_before=NOW + 2 * DAY),
        case("fine", None),
        case("far", CaseSchedule(NOW + 9 * DAY, NOW + 9 * DAY, "nights")),
        zone=zone,
        batch=["aks-batch-12345678-vmss000001"],
        unseen=(Unseen("the ledger", "get configmaps in ours", "the last start is not known", "403"),),
    )
