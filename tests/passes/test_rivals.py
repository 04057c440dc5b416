"""Two reconcilers with different locks are known to each other before one of them has begun a record."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.model.coverage import Coverage, Selected, SettingsSeen
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.values import replace
from reconciler.run import rehearse
from tests.support import builders
from tests.support.builders import NOW, minutes, node
from tests.support.worlds import world_of


class Locks:
    """A reader of the nodes that sees one other lock, and counts how often it is asked."""

    def __init__(self, cluster: object, other: Reconciler) -> None:
        self._cluster, self._other = cluster, other
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._cluster, name)

    def reconciler_of(self, namespace: str) -> Reconciler:
        self.asked += 1
        return replace(self._other, lock=namespace)


@pytest.mark.parametrize(
    ("selector", "yields", "asked"),
    [
        (None, "", 0),
        ("", "first", 1),
        ("agentpool=np", "first", 1),
        ("agentpool=other", "", 0),
        ("agentpool in (np", "", 0),
        ("team!=shop", "", 0),
    ],
    ids=["no pass has ended", "all", "the same nodes", "other nodes", "cut", "by labels that are not read"],
)
def test_of_two_that_select_the_same_nodes_the_younger_yields_before_any_record(
    selector: str | None, yields: str, asked: int
) -> None:
    seen = None
    if selector is not None:
        seen = SettingsSeen(Coverage("Enforce", selected=(Selected("nodeSelector", selector),)))
    first = Reconciler(Running.RUNNING, lock="first", since=NOW - minutes(1), seen=seen)
    second = Reconciler(Running.RUNNING, lock="second", since=NOW, rivals=(first,))
    world = world_of([node("a", labels={"agentpool": "np"})])
    locks: Any = Locks(world.outside.reader, first)
    outside = replace(world.outside, reader=locks, reconciler=second)
    plan = rehearse(outside, builders.settings("nodeSelector: {agentpool: np}"), NOW)

    assert (plan.reconciler.yields_to, locks.asked) == (yields, asked)
