"""What `serve` counts of moved pods after a pass, and what a node that can't be read costs."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from jobs.runtime.process import Observer, Passed
from reconciler.features.workflows.shuffle_counter import LONGEST, NODES, ShuffleCounter, Shuffles
from reconciler.model.errors import Forbidden, Unreachable
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.pod import Workload, WorkloadKind
from reconciler.model.workflow import ShuffleRow
from reconciler.settings.load import parse_settings
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
    class Other(Observer):
        owners: Sequence[str] = ()

        def shuffled(self, counts: Sequence[ShuffleRow]) -> None:
            self.owners = [row.owner for row in counts]

    other, reader = Other(), Reader()
    plan, outcomes = entering("a")
    chosen = builders.settings(f"profiles: {{shuffleCounts: {str(on).lower()}}}")
    Shuffles(ShuffleCounter(reader), other).after(Passed(plan, chosen, outcomes, rehearsed=False))

    assert (reader.asked, other.owners) == ((["a"], ["deployment_a"]) if on else ([], []))
