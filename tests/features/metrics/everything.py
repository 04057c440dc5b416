"""A process that has something to show in every family of the catalogue."""

from __future__ import annotations

from reconciler.features.metrics.metering import Meter
from reconciler.model.case_outcome import CaseResult
from reconciler.model.content import SettingsVersion
from reconciler.model.drains import Blocker, DrainOrder, DrainProgress, Phase
from reconciler.model.event import Kind
from reconciler.model.plan import Actions, Hold, NodePlan, Plan, PlanSettings, ProfileNodes
from reconciler.model.reconciler import Reconciler
from reconciler.model.record import State
from reconciler.model.values import replace
from tests.support.builders import (
    NOW,
    held_node,
    known,
    minutes,
    node,
    planned,
    record,
    reported,
    settings,
    signal,
    snapshot,
)
from tests.support.cases import ended


def plan() -> Plan:
    """A node that waits for its window, one whose drain is blocked, and one that is ignored."""
    fleet = (
        node("waits", pool="batch", zone="west-1"),
        held_node(record(events=(known(Kind.REDEPLOY, not_before=NOW + minutes(9)),), drain=None), "drains"),
        node("quiet"),
        node("left", labels={"node-maintenance.dev/ignore": "true"}),
    )
    event = reported(signal(Kind.REBOOT, not_before=NOW + minutes(300)))
    windows = 'windows: [{name: night, days: [Mon], start: "22:00", end: "23:00"}]'
    found = planned(snapshot(*fleet, readings={"waits": event, "left": event}), settings(windows))
    counted = (ProfileNodes("kernel", State.REQUIRED, 1),)
    return replace(found, settings=PlanSettings(SettingsVersion("0123456789ab", NOW)), profiles=counted)


def full(meter: Meter) -> None:
    """Let the meter count one of everything."""
    shown = plan()
    blockers = (Blocker("shop/web-1", "waits", "shop/web"), Blocker("shop/job", "is unmanaged"))
    order = Actions(drain=DrainOrder("done", "u", NOW, None))
    state = State.IN_MAINTENANCE
    done = NodePlan("done", "", "", state, state, todo=order, holds=(Hold("done", "nodeReady", "boots"),))
    drains = {
        "drains": DrainProgress("drains", "u", Phase.RUNNING, blockers=blockers),
        "done": DrainProgress("done", "u", Phase.DRAINED, finished=NOW + minutes(2)),
    }
    meter.leads(leads=True)
    beside = Reconciler(others=("second",))
    meter.shows(replace(shown, nodes=(*shown.nodes, done), reconciler=beside), drains)
    meter.succeeded(0.2, NOW)
    meter.keep([ended("a"), ended("b", outcome=CaseResult.MISSED)])
    meter.refused("budget")
    meter.notice("slack", sent=True)
    meter.waiting(3)
    meter.request("kubernetes", "GET", 200, 0.01)
    meter.unexpected()
