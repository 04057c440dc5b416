"""One pass that has a bit of everything in it, for the reports."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

from reconciler.model.content import SettingsVersion
from reconciler.model.drains import Blocker, DrainProgress, Phase
from reconciler.model.event import Initiator, Kind, Status
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import Plan, PodVerdict, Preview
from reconciler.model.problems import Unseen
from reconciler.model.record import DrainRecord
from reconciler.model.snapshot import Agents, Remediator
from reconciler.model.values import replace
from reconciler.profiles.checks import CHECKS
from reconciler.report.document import Report, to_report
from reconciler.settings.schema import Origin
from tests.support import builders
from tests.support.builders import NOW, known, minutes, reading, record, reported, signal

SETTINGS = """
windows: [{name: night, start: "22:00", end: "05:00"}]
budget: {maxUnavailable: 2, perZone: 1}
"""
_OF_OFFERS = {"preparationDue", "offerDue", "offerAnswered", "offerRefused"}
OF_FEATURES = frozenset(
    name for name, check in CHECKS.items() if check.type.step or check.type.wait or name in _OF_OFFERS
)
"""The checks by which features hold a start or a step, and those that say what plugins offer.

Golden files leave them out.
"""

OUTCOMES = (
    Outcome("late", "cordon", Result.DONE),
    Outcome("over", "uncordon", Result.LATER, "changed since it was seen"),
    Outcome("draining", "update record", Result.FAILED, "the server is away"),
)


def plan(zone: str = "UTC") -> Plan:
    """The pass, under settings with this time zone."""
    draining = builders.held_node(
        record(drain=DrainRecord(NOW - minutes(5)), events=(known(ids=("A1",)),)),
        "draining",
        zone="1",
        pool="web",
    )
    over = builders.held_node(record(quiet_since=NOW - minutes(1)), "over", zone="2")
    blocker = Blocker("shop/web-1", "its budget shop/web allows none", "shop/web")
    imds = signal(
        Kind.FREEZE,
        not_before=NOW + minutes(10),
        duration=timedelta(seconds=9),
        event_id="F1",
        description="Host server is undergoing maintenance.",
    )
    condition = dataclasses.replace(imds, source="condition:VMEventScheduled", duration=timedelta(seconds=5))
    readings = {
        "draining": reported(signal(event_id="A1", status=Status.STARTED)),
        "late": reported(
            signal(Kind.REDEPLOY, not_before=NOW + minutes(10), description="Emergency repair.")
        ),
        "waiting": reported(signal(source="request", not_before=NOW + timedelta(hours=20))),
        "freeze": reported(imds, condition),
        "odd": reported(signal(Kind.UNKNOWN, description="Hibernate Scheduled")),
        "mine": reported(signal(initiator=Initiator.USER)),
        "silent": (reading(source="imds", unknown="its agent is not ready"),),
        "hushed": (reading(source="imds", unknown="its agent is not ready"),),
    }
    nodes = [draining, over, builders.node("late", zone="3"), builders.node("waiting", zone="1")]
    nodes += [builders.node(name) for name in ("freeze", "odd", "mine", "silent", "hushed", "fine")]
    seen = builders.snapshot(
        *nodes,
        readings=readings,
        pods={"draining": (builders.pod(on="draining"),)},
        drains={
            "draining": DrainProgress(
                "draining", "uid-draining", Phase.RUNNING, 4, 3, 3, blockers=(blocker,), warnings=("slow",)
            )
        },
        agents=Agents(installed=True),
        remediator=Remediator(config_found=True),
    )
    text = SETTINGS.replace("maxUnavailable: 2", "maxUnavailable: 5")
    chosen = builders.settings(f"timeZone: {zone}\n{text}")
    return builders.planned(seen, chosen.read_from(Origin(SettingsVersion("0123456789ab", NOW - minutes(5)))))


PREVIEW = Preview(
    pods=(
        PodVerdict("shop/web-1", "u1", "evict"),
        PodVerdict("shop/cache", "u2", "keep", ("Pods with local storage",)),
    ),
    blockers=(Blocker("shop/web-1", "its budget shop/web allows none", "shop/web"),),
    room=("shop/web-1 fits nowhere else",),
    groups=("JobSet shop/train also runs on n7",),
)


def report(*, rehearsed: bool = False, zone: str = "UTC", preview: Preview = PREVIEW) -> Report:
    """The report of the pass; a rehearsed one has previews and no outcomes."""
    planned = plan(zone)
    if not rehearsed:
        return to_report(planned, OUTCOMES, rehearsed=False)
    nodes = tuple(
        replace(one, draining=replace(one.draining, preview=preview)) if one.todo.drain is not None else one
        for one in planned.nodes
    )
    unseen = (Unseen("the ledger", "get configmaps in ours", "the last start is not known", "403"),)
    return to_report(replace(planned, nodes=nodes, unseen=unseen), rehearsed=True)
