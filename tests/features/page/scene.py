"""A pass over a fleet that has a bit of everything in it. Run it to write its page to a file."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

from jobs.runtime.process import Passed
from reconciler.features.page.facts import History, PageFacts
from reconciler.features.page.html import as_html
from reconciler.features.page.live import page_facts
from reconciler.model.case_outcome import CaseResult
from reconciler.model.content import SettingsVersion
from reconciler.model.drains import Blocker, DrainProgress, Phase
from reconciler.model.event import Kind, Reading, Signal, Status
from reconciler.model.findings import FindingRow, FindingsPart, KnownFindings
from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.record import DrainRecord
from reconciler.model.values import replace
from reconciler.settings.schema import Origin
from tests.support import builders
from tests.support.builders import NOW, known, minutes, reading, record, reported, signal
from tests.support.cases import ended

SETTINGS = """
timeZone: Europe/Berlin
windows:
- {name: nights, start: "22:00", end: "05:00"}
- {name: batch-days, start: "08:00", end: "18:00", nodeSelector: {agentpool: batch}}
notAllowed: [{name: sale, reason: black friday, start: 2026-11-23, end: 2026-11-23T09:00}]
budget: {maxUnavailable: 5%, perZone: 4}
events: {Freeze: {drain: true, minDuration: 10s}}
"""
POOLS = ("system", "web", "web", "batch")
MISSED = (
    "missed: the platform started at 2026-11-21T10:20:00Z while 1 pod that had to be evicted was on the node"
)
HOLD = '{"by":"ada","at":"2026-11-21T09:10:00Z","reason":"a benchmark runs"}'


class _Fleet:
    """Nodes with what sources and drains say about them, while they are made."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.readings: dict[str, tuple[Reading, ...]] = {}
        self.drains: dict[str, DrainProgress] = {}
        self.pods: dict[str, tuple[Pod, ...]] = {}

    def add(self, number: int, story: int) -> None:
        """Add a node; a story of 8 or more is none."""
        pool = POOLS[number % 4]
        name = f"aks-{pool}-31415926-vmss{number:06x}"
        zone = f"westeurope-{number // 4 % 3 + 1}"
        soon = NOW + timedelta(hours=10 + number % 7)
        match story:
            case 0:
                self._reports(name, signal(Kind.REBOOT, not_before=soon, description="Host update."))
            case 1:
                held = record(drain=DrainRecord(NOW - minutes(25)), events=(known(ids=(name,)),))
                self.nodes.append(builders.held_node(held, name, zone=zone, pool=pool))
                self._reports(name, signal(event_id=name, not_before=NOW + minutes(35)))
                refused = Blocker("shop/ledger-0", "PDB shop/ledger: needs 1 healthy, has 1", "shop/ledger")
                self.drains[name] = DrainProgress(
                    name, f"uid-{name}", Phase.RUNNING, 14, 13, 13, blockers=(refused,)
                )
                self.pods[name] = (builders.pod("ledger-0", on=name),)
                return
            case 2:
                done = DrainRecord(NOW - minutes(215), done=NOW - minutes(150))
                held = record(drain=done, events=(known(Kind.REDEPLOY, ids=(name,)),))
                self.nodes.append(builders.held_node(held, name, zone=zone, pool=pool))
                self._reports(name, signal(Kind.REDEPLOY, event_id=name, status=Status.STARTED))
                return
            case 3:
                self._reports(
                    name, signal(Kind.FREEZE, not_before=NOW + minutes(9), duration=timedelta(seconds=5))
                )
            case 4:
                self._reports(
                    name, signal(Kind.REDEPLOY, not_before=NOW + minutes(14), description="Emergency repair.")
                )
            case 5:
                held_by = {f"{builders.PREFIX}/hold": HOLD}
                self.nodes.append(builders.node(name, annotations=held_by, zone=zone, pool=pool))
                self._reports(name, signal(Kind.REBOOT, not_before=NOW + timedelta(hours=30)))
                return
            case 6:
                self._reports(name, signal(Kind.LIVE_MIGRATION, not_before=NOW + timedelta(hours=22)))
            case 7 if number % 3 == 0:
                held_by = {f"{builders.PREFIX}/hold": HOLD}
                self.nodes.append(builders.node(name, annotations=held_by, zone=zone, pool=pool))
                self._reports(name, signal(Kind.REBOOT, source="request"))
                return
            case 7:
                self.readings[name] = (reading(source="imds", unknown="its agent is not ready"),)
        self.nodes.append(builders.node(name, unschedulable=number % 41 == 20, zone=zone, pool=pool))

    def _reports(self, name: str, *signals: Signal) -> None:
        self.readings[name] = reported(*signals)


def facts(nodes: int = 150, cases: int = 16) -> PageFacts:
    """The pass over so many nodes, about so many of which there is something to say."""
    fleet = _Fleet()
    every = max(nodes // cases, 1)
    for number in range(nodes):
        fleet.add(number, (number // every) % 8 if number % every == number // every % every else 8)
    seen = builders.snapshot(*fleet.nodes, readings=fleet.readings, drains=fleet.drains, pods=fleet.pods)
    version = SettingsVersion("0123456789ab", NOW - timedelta(hours=5))
    settings = builders.settings(SETTINGS).read_from(Origin(version))
    plan = builders.planned(seen, settings)
    last = NOW - timedelta(hours=1)
    struck = ended(
        "aks-batch-31415926-vmss000017", at=last, pool="batch", outcome=CaseResult.MISSED, kind="Preempt"
    )
    past = (
        ended("aks-web-31415926-vmss000042", at=last - timedelta(hours=8), pool="web"),
        ended("aks-web-31415926-vmss000043", at=last - timedelta(hours=14), pool="web"),
        replace(struck, why=MISSED),
    )
    history = History(NOW - timedelta(days=3), past)
    return page_facts(Passed(plan, settings, rehearsed=False), history, readiness=_readiness(nodes))


def _readiness(nodes: int) -> KnownFindings:
    """A workload that blocks a drain, one that would be down, and volumes that may not be read."""
    never = FindingRow(
        "shop/ledger (StatefulSet)",
        "blocks",
        "1 pod on aks-web-31415926-vmss000009",
        "PodDisruptionBudget shop/ledger requires 1 healthy pod, and there is only 1 in all, so it never"
        " allows an eviction",
        "Run more replicas than it requires, or let it allow one disruption (maxUnavailable: 1).",
    )
    local = FindingRow(
        "shop/cart (Deployment)",
        "outage",
        "5 pods on aks-web-31415926-vmss000000, aks-web-31415926-vmss000001 and 3 more",
        "it has local storage (emptyDir), so it stays on the node and goes down with it",
        "Set events.Reboot.emptyDir: Evict to evict it; the data in the emptyDir is then lost.",
    )
    part = FindingsPart(
        f"1 of {nodes} nodes would not drain; of the workloads, 1 blocks a drain",
        f"2026-11-21T11:51:00Z: {nodes * 20} pods; each node is judged alone",
        ("could not see: PersistentVolumes (needs list persistentvolumes)",),
        (never, local),
    )
    return KnownFindings(part, "Readiness can't be read: no answer in time.")


def main() -> None:
    """Write the page: `python -m tests.features.page.scene FILE [NODES CASES]`."""
    made = facts(*map(int, sys.argv[2:4]))
    Path(sys.argv[1]).write_text(as_html(made), encoding="utf-8")


if __name__ == "__main__":
    main()
