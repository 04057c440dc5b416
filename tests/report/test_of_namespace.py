"""The pods of a namespace: which of them move, when, and what keeps the others."""

from __future__ import annotations

import pytest

from reconciler.model.errors import Forbidden, NotFound
from reconciler.model.explanation import Moves, NamespacePods
from reconciler.model.selector import parse_selector_text
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.report.moves import pod_lines
from reconciler.report.of_namespace import pods_of
from reconciler.simulation.workloads import BudgetSpec
from reconciler.simulation.world import World
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.builders import DRAIN_NOW, REQUEST
from tests.support.worlds import world_of

LATER = '{"kind":"Reboot","notBefore":"2026-11-21T22:15:00Z"}'


def fleet() -> World:
    """Three nodes: one is drained now, one this night, and one not at all."""
    nodes = [
        builders.node("a", annotations={REQUEST: DRAIN_NOW}),
        builders.node("b", annotations={REQUEST: LATER}),
        builders.node("c"),
    ]
    pods = [
        builders.pod("web-1"),
        replace(builders.pod("ledger"), labels={"app": "ledger"}),
        builders.pod("agent", owner="DaemonSet"),
        builders.pod("web-2", "b"),
        builders.pod("web-3", "c"),
        replace(builders.pod("done", "c"), phase="Succeeded"),
        builders.pod("other", namespace="team"),
    ]
    world = world_of(nodes, pods)
    ledger = parse_selector_text("app=ledger")
    world.cluster.add_budget(BudgetSpec("shop", "ledger", ledger, max_unavailable=0))
    return world


def shown(explained: Explained, namespace: str) -> NamespacePods:
    examination = explained.found
    return pods_of(
        examination, assess(examination.snapshot, examination.plan.now), namespace, explained.settings
    )


def test_each_pod_of_the_namespace_has_its_answer_and_those_that_need_a_person_come_first() -> None:
    explained = Explained(fleet())

    pods = shown(explained, "shop")

    assert [(move.pod, move.node, move.answer) for move in pods.moves] == [
        ("shop/ledger", "a", Moves.BLOCKED),
        ("shop/web-1", "a", Moves.MOVES),
        ("shop/web-2", "b", Moves.MOVES),
        ("shop/agent", "a", Moves.STAYS),
        ("shop/web-3", "c", Moves.STAYS),
    ]
    assert pods.nodes == {"a", "b", "c"}
    assert [line.text.partition(":")[0] for line in pod_lines(pods, explained.found.plan.now)] == [
        "pods of shop",
        "ledger on a does not move",
        "web-1 on a moves now",
        "web-2 on b moves in 9h, at 2026-11-21T21",
        "agent on a stays",
        "1 pod on 1 node without maintenance that requires a drain",
    ]


def test_a_namespace_without_pods_is_an_error_that_helps() -> None:
    explained = Explained(fleet())

    with pytest.raises(NotFound, match=r"no node runs a pod of the namespace 'shopp'; did you mean shop\?"):
        shown(explained, "shopp")


def test_pods_that_may_not_be_read_are_not_taken_for_none() -> None:
    explained = Explained(fleet(), refused=("pods",))

    with pytest.raises(Forbidden, match="needs list pods"):
        shown(explained, "shop")
