"""READ FIRST: one pass, whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from reconciler.act import Drains, act
from reconciler.assess import assess
from reconciler.decide import decide
from reconciler.model.drains import DrainProgress
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.ports import (
    CloudReader,
    CloudWriter,
    ClusterReader,
    ClusterWriter,
    InstanceReader,
    MachineReader,
    MachineWriter,
)
from reconciler.observe import add_pods, observe
from reconciler.preview import preview
from reconciler.settings.schema import Settings


class Drainer(Drains, Protocol):
    """A drainer as a pass sees it: it goes on by itself, and tells how far it is."""

    def progress(self) -> Mapping[str, DrainProgress]:
        """Return every drain begun here, by node."""


class Cloud(CloudReader, CloudWriter, Protocol):
    """A cloud's own API as a pass sees it."""


class Machines(MachineReader, MachineWriter, Protocol):
    """Whoever owns the machines behind nodes, as a pass sees it."""


@dataclass(frozen=True, slots=True)
class Self:
    """Where the program runs, None outside of a cluster: that node is drained last."""

    node: str | None = None
    pod: str | None = None


def run_pass(
    reader: ClusterReader,
    writer: ClusterWriter,
    drainer: Drainer,
    settings: Settings,
    now: datetime,
    itself: Self = Self(),
    cloud: Cloud | None = None,
    ec2: InstanceReader | None = None,
    machines: Machines | None = None,
) -> tuple[Plan, tuple[Outcome, ...]]:
    """Look, judge, decide and act; return the plan and what became of it. `now` is aware."""
    snapshot = observe(
        reader,
        settings,
        drains=drainer.progress(),
        own_node=itself.node,
        own_pod=itself.pod,
        cloud=cloud,
        ec2=ec2,
        machines=machines,
        now=now,
    )
    events = assess(snapshot, settings.sources.node_conditions.stale_after, now)
    plan = decide(snapshot, events, settings, now)
    return plan, act(plan, writer, drainer, cloud, machines)


def rehearse(
    reader: ClusterReader,
    settings: Settings,
    now: datetime,
    itself: Self = Self(),
    *,
    with_preview: bool = False,
    cloud: CloudReader | None = None,
    ec2: InstanceReader | None = None,
    machines: MachineReader | None = None,
) -> Plan:
    """Look, judge and decide, and write nothing; with a preview each drain's pods are read and judged too."""
    snapshot = observe(
        reader,
        settings,
        own_node=itself.node,
        own_pod=itself.pod,
        capacity=with_preview,
        cloud=cloud,
        ec2=ec2,
        machines=machines,
        now=now,
    )
    events = assess(snapshot, settings.sources.node_conditions.stale_after, now)
    plan = decide(snapshot, events, settings, now)
    if not with_preview:
        return plan
    to_drain = [node.node for node in plan.nodes if node.drain is not None]
    return preview(plan, add_pods(snapshot, reader, to_drain), now)
