"""What `serve` counts of moved pods after a pass, and what a node that can't be read costs."""

from __future__ import annotations

import logging
import math
from datetime import timedelta

import pytest

from jobs.runtime.process import Passed
from reconciler.features.workflows.shuffle_counter import (
    LONGEST,
    NODES,
    SERIES,
    Entered,
    ShuffleCounter,
    ShuffleCounts,
    ShuffleRow,
    Shuffles,
    entered,
)
from reconciler.model.errors import Conflict, Forbidden, Unreachable
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.pod import Workload, WorkloadKind
from reconciler.model.values import replace
from reconciler.settings.load import parse_settings
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.worlds import look, world_of

SETTINGS = parse_settings(
    """\
intervals: {requeue: 1s}
instances: {}
profiles:
- name: default
  operational:
    transitions: [{next: in-maintenance}]
""",
    "their.yaml",
)


class Reader:
    """Each node has one pod of a Deployment, or an error."""

    def __init__(self, **errors: Exception) -> None:
        self.errors = errors
        self.asked: list[str] = []

    def on_node(self, node: str) -> tuple[Workload, ...]:
        self.asked.append(node)
        if node in self.errors:
            raise self.errors[node]
        return (Workload(WorkloadKind.DEPLOYMENT, node, 2),)


def entering(*names: str) -> tuple[Plan, tuple[Outcome, ...]]:
    """A pass in which these nodes enter maintenance."""
    return look(world_of([builders.node(name) for name in names]), SETTINGS)


def owners(counter: ShuffleCounter) -> list[str]:
    return [row.owner for row in counter.counts.rows]


def test_the_counts_go_on_from_pass_to_pass() -> None:
    reader = Reader()
    counter = ShuffleCounter(reader)
    counter.after(*entering("a", "b"))
    counter.after(*entering("a"))

    assert [(row.owner, row.profile, row.pods) for row in counter.counts.rows] == [
        ("deployment_a", "default", 2),
        ("deployment_b", "default", 1),
    ]
    assert reader.asked == ["a", "b", "a"]


def test_a_node_that_waits_for_maintenance_only_begins_its_counters() -> None:
    counter = ShuffleCounter(Reader())
    waiting = parse_settings(
        "{intervals: {requeue: 1s}, instances: {}, profiles: [{name: default, "
        "operational: {transitions: [{next: maintenance-required}]}}]}",
        "their.yaml",
    )
    counter.after(*look(world_of([builders.node("a")]), waiting))

    assert [(row.owner, row.pods) for row in counter.counts.rows] == [("deployment_a", 0)]


@pytest.mark.parametrize(
    ("error", "said", "others"),
    [
        (
            Forbidden("no", needs="get daemonsets"),
            "its pods are not counted for default: needs get daemonsets; k8s/shuffles has",
            ["deployment_b"],
        ),
        # The next one would wait for retries, too.
        (Unreachable("no answer"), "its pods are not counted for default: no answer", []),
        (KeyError("x"), "its pods are not counted: KeyError", ["deployment_b"]),
    ],
)
def test_a_node_that_cannot_be_read_is_left_out_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture, error: Exception, said: str, others: list[str]
) -> None:
    counter = ShuffleCounter(Reader(a=error))
    with caplog.at_level(logging.WARNING):
        counter.after(*entering("a", "b"))

    assert said in caplog.text
    assert owners(counter) == others


def test_a_pass_counts_a_limited_number_of_nodes(caplog: pytest.LogCaptureFixture) -> None:
    reader = Reader()
    counter = ShuffleCounter(reader)
    counter.after(*entering(*(f"n{number:02}" for number in range(NODES + 3))))

    assert len(reader.asked) == len(owners(counter)) == NODES
    assert "the pods of 3 nodes are not counted: it would take too long" in caplog.text


def test_a_slow_server_costs_a_pass_a_limited_time(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]

    class Slow(Reader):
        def on_node(self, node: str) -> tuple[Workload, ...]:
            now[0] += LONGEST / 2
            return super().on_node(node)

    counter = ShuffleCounter(Slow(), clock=lambda: now[0])
    counter.after(*entering(*"abcde"))

    assert len(owners(counter)) == 3
    assert "the pods of 2 nodes are not counted: it would take too long" in caplog.text


@pytest.mark.parametrize("on", [True, False])
def test_moved_pods_are_counted_and_shown_only_where_the_settings_ask_for_it(on: bool) -> None:
    reader = Reader()
    plan, outcomes = entering("a")
    chosen = builders.settings(f"profiles: {{shuffleCounts: {str(on).lower()}}}")
    shuffles = Shuffles(ShuffleCounter(reader))
    shuffles.after(Passed(plan, chosen, outcomes, rehearsed=False))

    shown = [(sample.family.name, sample.labels[0], sample.value) for sample in shuffles.samples()]
    counts = [
        ("maintenance_controller_pod_shuffle_count", "deployment_a", 1),
        ("maintenance_controller_pod_shuffles_per_replica", "deployment_a", 0.5),
    ]
    assert (reader.asked, shown) == ((["a"], counts) if on else ([], []))


WORKFLOW = parse_settings(
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
        found.append(entered(*look(world, WORKFLOW)))
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
        ((DAEMON, replace(DAEMON, replicas=2)), (ShuffleRow("daemon_set_agent", "p", 2, math.inf),)),
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
