"""What follows from all nodes or all pods is computed once, not once for each node that is asked about."""

from __future__ import annotations

from datetime import timedelta

from reconciler.features.workflows.situation import Fleet
from reconciler.model.workflow import LeaseRef, LeaseTake, ReadForChecks
from tests.features.workflows.scene import member
from tests.support.builders import NOW


class Counting:
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        return self.calls


def test_what_follows_from_all_nodes_is_computed_once_for_these_nodes() -> None:
    counting = Counting()
    fleet = Fleet([member("a"), member("b")])

    assert [fleet.once("x", counting), fleet.once("x", counting), fleet.once("y", counting)] == [1, 1, 2]
    assert Fleet(fleet).once("x", counting) == 3


def test_what_follows_from_all_pods_is_kept_when_a_lease_is_taken() -> None:
    counting = Counting()
    read = ReadForChecks()
    assert read.of_pods("x", counting) == 1

    taken = read.taken(LeaseTake(LeaseRef("ops", "turn-0"), "a", NOW, timedelta(minutes=1)))

    assert taken.of_pods("x", counting) == 1
    assert ReadForChecks().of_pods("x", counting) == 2
