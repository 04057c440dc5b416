"""The counts of moved pods: which nodes count, what a pod adds, and how many counters there are."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from reconciler.features.workflows.shuffles import SERIES, Entered, ShuffleCounts, entered
from reconciler.model.errors import Conflict
from reconciler.model.pod import Workload, WorkloadKind
from reconciler.model.values import replace
from reconciler.model.workflow import ShuffleRow
from reconciler.settings.load import parse_settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.worlds import look, world_of

SETTINGS = parse_settings(
    """\
intervals: {requeue: 1s}
instances:
  check: [{type: hasLabel, name: go, config: {key: go}}]
profiles:
- name: default
  operational:
    transitions: [{check: go, next: maintenance-required}]
  maintenance-required:
    transitions: [{next: in-maintenance}]
  in-maintenance:
    transitions: [{check: "!go", next: operational}]
- name: other
  operational:
    transitions: [{next: maintenance-required}]
""",
    "their.yaml",
)
WEB = Workload(WorkloadKind.DEPLOYMENT, "web", 4)
DAEMON = Workload(WorkloadKind.DAEMON_SET, "agent", 0)


def passes(world: World, count: int) -> list[tuple[Entered, ...]]:
    """What counts after each of these passes."""
    found = []
    for _ in range(count):
        found.append(entered(*look(world, SETTINGS)))
        world.advance(timedelta(seconds=1))
    return found


def test_a_node_counts_once_when_it_enters_maintenance() -> None:
    both = {"go": "", "cloud.sap/maintenance-profile": "default--other"}
    world = world_of([builders.node("a", labels=both), builders.node("b")])

    waiting = Entered("a", "default", waits=True), Entered("a", "other", waits=True)
    assert passes(world, 4) == [waiting, (Entered("a", "default"),), (), ()]


def test_a_step_that_was_not_written_does_not_count() -> None:
    world = world_of([builders.node("a", labels={"go": ""})])
    passes(world, 1)

    def refuse(call: Call) -> None:
        if call.what == "patch_node":
            raise Conflict("changed")

    world.api.before_write = refuse
    assert passes(world, 1) == [()]
    world.api.before_write = None
    assert passes(world, 1) == [(Entered("a", "default"),)]


@pytest.mark.parametrize(
    ("workloads", "rows"),
    [
        ((WEB,), (ShuffleRow("deployment_web", "p", 1, 0.25),)),
        ((WEB, WEB), (ShuffleRow("deployment_web", "p", 2, 0.5),)),
        # A row of maintenance-controller: a DaemonSet without a pod that is ready.
        ((DAEMON,), (ShuffleRow("daemon_set_agent", "p", 1, math.inf),)),
        (
            (DAEMON, replace(DAEMON, replicas=2)),
            (ShuffleRow("daemon_set_agent", "p", 2, math.inf),),
        ),
        (
            (Workload(WorkloadKind.STATEFUL_SET, "db", 1), Workload(WorkloadKind.REPLICA_SET, "db", 2)),
            (ShuffleRow("replica_set_db", "p", 1, 0.5), ShuffleRow("stateful_set_db", "p", 1, 1.0)),
        ),
        ((), ()),
    ],
)
def test_each_pod_adds_one_and_its_share_of_the_replicas(
    workloads: tuple[Workload, ...], rows: tuple[ShuffleRow, ...]
) -> None:
    assert ShuffleCounts().counted("p", workloads).rows == rows


def test_counters_begin_at_zero_and_none_that_exists_begins_again() -> None:
    counts = ShuffleCounts().begun("p", [WEB, WEB, DAEMON])
    assert [(row.owner, row.pods, row.per_replica) for row in counts.rows] == [
        ("daemon_set_agent", 0, 0.0),
        ("deployment_web", 0, 0.0),
    ]

    later = counts.counted("p", [WEB]).begun("p", [WEB])
    assert [row.pods for row in later.rows] == [0, 1]


def test_the_counters_that_were_not_used_for_the_longest_time_make_room() -> None:
    many = [Workload(WorkloadKind.STATEFUL_SET, f"s-{number}", 1) for number in range(SERIES)]
    counts = ShuffleCounts().counted("p", many).counted("p", many[:1]).counted("p", [WEB])

    owners = {row.owner: row.pods for row in counts.rows}
    assert len(owners) == SERIES
    assert (owners["stateful_set_s-0"], owners["deployment_web"]) == (2, 1)
    assert "stateful_set_s-1" not in owners
