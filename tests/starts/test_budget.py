"""The budget: who holds a place, and who gets the next."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.node import UPGRADE_STATUS_LABEL, Node
from reconciler.model.snapshot import Replaced
from reconciler.starts.budget import DisruptionBudget, OurPlace, count_places, still_missing
from tests.support import builders
from tests.support.builders import NOW, minutes, node


def _places(text: str, *fleet: Node, ours: dict[str, str] | None = None) -> DisruptionBudget:
    held = {name: OurPlace(because) for name, because in (ours or {}).items()}
    return count_places(fleet, held, builders.settings(f"budget: {text}").budget, NOW)


@pytest.mark.parametrize(
    ("one", "holds"),
    [
        pytest.param(node(), "", id="in service"),
        pytest.param(node(unschedulable=True), "cordoned by others", id="cordoned"),
        pytest.param(node(ready=False, ready_since=NOW), "NotReady", id="just gone"),
        pytest.param(node(ready=False, ready_since=NOW - minutes(30)), "", id="long gone"),
        pytest.param(node(ready=False, ready_since=None), "NotReady", id="gone, nobody says since when"),
        pytest.param(
            node(unschedulable=True, labels={UPGRADE_STATUS_LABEL: "Quarantined"}), "", id="quarantined"
        ),
        pytest.param(
            node(taints=("ToBeDeletedByClusterAutoscaler",)),
            "taint ToBeDeletedByClusterAutoscaler",
            id="the autoscaler deletes it",
        ),
        pytest.param(
            node(taints=("karpenter.sh/disrupted",)), "taint karpenter.sh/disrupted", id="Karpenter"
        ),
        pytest.param(
            node(taints=("DeletionCandidateOfClusterAutoscaler",)), "", id="the autoscaler may delete it"
        ),
    ],
)
def test_which_nodes_hold_a_place(one: Node, holds: str) -> None:
    places = _places("{maxUnavailable: 1}", one, node("b"))

    assert dict(places.holders) == ({"a": holds} if holds else {})
    assert bool(places.refusals(node("b"))) is bool(holds)


def test_a_start_takes_a_place_and_needs_no_second_one() -> None:
    places = _places("{maxUnavailable: 1}", node(), node("b"))
    after = places.take(node(), "ours, starting")

    assert places.refusals(node("b")) == ()
    assert after.refusals(node("b")) == ("maxUnavailable is 1, taken by a (ours, starting)",)
    assert after.refusals(node()) == ()
    assert after.take(node(), "again") is after


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("{maxUnavailable: 2}", ""),
        ("{maxUnavailable: 1}", "2 nodes have to be drained at a time, and maxUnavailable has 1 place"),
        ("{maxUnavailable: 2, reserve: 1}", "maxUnavailable has 1 place"),
        ("{maxUnavailable: 3, perZone: 1}", "perZone in z1 has 1 place"),
        ("{maxUnavailable: 3, perPool: 1}", "perPool in np has 1 place"),
        ("{maxUnavailable: 4, perPool: 2}", ""),
    ],
)
def test_nodes_that_have_to_be_drained_at_a_time_need_a_place_each(text: str, because: str) -> None:
    both = [node(name, zone="z1", pool="np") for name in ("a", "b")]
    others = [node("c", zone="z2", pool="other"), node("d", zone="z2", pool="other")]

    assert because in _places(text, *both, *others).why_not_together(both, ())
    assert bool(because) is bool(_places(text, *both, *others).why_not_together(both, ()))


def test_places_of_others_stay_taken_and_our_own_are_given_on() -> None:
    both = [node("a"), node("b")]
    places = _places("{maxUnavailable: 2}", *both, node("c", unschedulable=True))

    taken = "2 nodes have to be drained at a time, and maxUnavailable has 2 places, 1 of them taken by others"
    assert places.why_not_together(both, ()) == taken
    assert places.why_not_together(both, {"c"}) == ""


def test_two_starts_from_the_same_places_know_nothing_of_each_other() -> None:
    places = _places("{maxUnavailable: 1}", node(), node("b"))
    first, second = places.take(node(), "first"), places.take(node("b"), "second")

    assert dict(places.holders) == {}
    assert (dict(first.holders), dict(second.holders)) == ({"a": "first"}, {"b": "second"})


@pytest.mark.parametrize(
    ("limit", "refused", "reason"),
    [
        ("perZone", "b", "perZone in z1 is 1, taken by a (ours, starting)"),
        ("perPool", "c", "perPool in np is 1, taken by a (ours, starting)"),
    ],
)
def test_a_start_takes_a_place_of_its_zone_and_of_its_pool(limit: str, refused: str, reason: str) -> None:
    fleet = {
        "a": node("a", zone="z1", pool="np"),
        "b": node("b", zone="z1", pool="web"),
        "c": node("c", zone="z2", pool="np"),
    }
    places = _places(f"{{maxUnavailable: 3, {limit}: 1}}", *fleet.values())
    after = places.take(fleet["a"], "ours, starting")

    assert [places.refusals(one) for one in fleet.values()] == [(), (), ()]
    assert {name: after.refusals(one) for name, one in fleet.items()} == {
        name: (reason,) if name == refused else () for name in fleet
    }


LOST = [
    pytest.param(node(ready=False, ready_since=NOW - timedelta(days=1)), id="long gone"),
    pytest.param(node(labels={UPGRADE_STATUS_LABEL: "Quarantined"}), id="quarantined, schedulable"),
    pytest.param(
        node(unschedulable=True, labels={UPGRADE_STATUS_LABEL: "Quarantined"}), id="quarantined, cordoned"
    ),
]


@pytest.mark.parametrize("lost", LOST)
def test_a_start_on_a_node_that_holds_no_place_takes_one_and_needs_one(lost: Node) -> None:
    places = _places("{maxUnavailable: 1}", lost, node("b"))

    assert places.refusals(lost) == ()
    assert places.take(lost, "ours").refusals(node("b")) == ("maxUnavailable is 1, taken by a (ours)",)
    assert places.take(node("b"), "ours").refusals(lost) == ("maxUnavailable is 1, taken by b (ours)",)


@pytest.mark.parametrize("lost", LOST[1:])
def test_a_node_in_maintenance_that_is_ready_holds_its_place_with_every_label(lost: Node) -> None:
    places = _places("{maxUnavailable: 1}", lost, node("b"), ours={"a": "ours, drained"})

    assert places.refusals(node("b")) == ("maxUnavailable is 1, taken by a (ours, drained)",)
    assert places.eases_at is None


@pytest.mark.parametrize(
    ("down", "taken", "held_for"),
    [
        pytest.param(5, None, 25, id="until notReadyFor"),
        pytest.param(30, None, None, id="gone for notReadyFor"),
        pytest.param(5, 10, 10, id="until the platform takes its VM"),
        pytest.param(0, 0, None, id="its VM is taken"),
        pytest.param(None, -10, 0, id="its VM is taken, and nobody has noticed"),
    ],
)
def test_a_node_in_maintenance_gives_its_place_on_once_it_does_not_come_back(
    down: float | None, taken: float | None, held_for: float | None
) -> None:
    lost = node(unschedulable=True, ready=down is None, ready_since=NOW - minutes(down or 0))
    taken_from = NOW + minutes(taken) if taken is not None else None
    fleet, ours = (lost, node("b")), {"a": OurPlace("ours, drained", taken_from)}
    places = count_places(fleet, ours, builders.settings("budget: {maxUnavailable: 1}").budget, NOW)

    assert bool(places.refusals(node("b"))) is (held_for is not None)
    assert places.eases_at == (NOW + minutes(held_for) if held_for else None)


def test_every_limit_that_is_full_is_named_with_its_holders() -> None:
    fleet = [
        node("a", zone="1", pool="web", unschedulable=True),
        node("b", zone="1", pool="web"),
        node("c", zone="2", pool="web"),
        node("d", zone="2", pool="batch"),
    ]
    places = _places("{maxUnavailable: 100%, perZone: 1, perPool: 1}", *fleet)

    assert places.refusals(fleet[1]) == (
        "perZone in 1 is 1, taken by a (cordoned by others)",
        "perPool in web is 1, taken by a (cordoned by others)",
    )
    assert places.refusals(fleet[2]) == ("perPool in web is 1, taken by a (cordoned by others)",)
    assert places.refusals(fleet[3]) == ()


def test_a_percentage_per_zone_is_of_the_zones_nodes() -> None:
    fleet = [*(node(f"a{number}", zone="1") for number in range(4)), node("b", zone="2")]
    fleet[0] = node("a0", zone="1", unschedulable=True)
    places = _places("{maxUnavailable: 100%, perZone: 25%}", *fleet)

    assert places.refusals(fleet[1]) == ("perZone in 1 is 1, taken by a0 (cordoned by others)",)
    assert places.refusals(fleet[4]) == ()


def test_a_budget_of_none_says_so() -> None:
    assert _places("{maxUnavailable: 0}", node()).refusals(node()) == (
        "maxUnavailable is 0, so no node may start",
    )


def test_the_first_place_that_comes_free_by_itself_is_known() -> None:
    down = [node(f"n{ago}", ready=False, ready_since=NOW - minutes(ago)) for ago in (5, 20, 40)]

    assert _places("{maxUnavailable: 1}", *down).eases_at == NOW + minutes(10)
    assert _places("{maxUnavailable: 1}", node()).eases_at is None


def gone(name: str, have: int, *, pool: str = "np", ago: float = 5) -> Replaced:
    return Replaced(name, f"uid-{name}", "1", pool, have, NOW - minutes(ago))


@pytest.mark.parametrize(
    ("replaced", "left"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([gone("x", 3)], ["x"], id="one is missing"),
        pytest.param([gone("x", 2)], [], id="it has come"),
        pytest.param([gone("x", 3), gone("y", 3, ago=1)], ["y"], id="one of two has come"),
        pytest.param([gone("x", 3), gone("y", 4, ago=1)], ["x", "y"], id="none of two has come"),
        pytest.param([gone("x", 3, ago=30)], [], id="long ago"),
        pytest.param([gone("x", 3, pool="other")], ["x"], id="of another pool"),
        pytest.param([gone("a", 2, ago=29)], ["a"], id="not gone yet"),
        pytest.param([gone("a", 2, ago=30)], [], id="not gone, long ago"),
        pytest.param([gone("x", 1, pool="")], ["x"], id="without a pool nothing replaces it"),
        pytest.param([gone("x", 1, pool="", ago=30)], [], id="without a pool, long ago"),
    ],
)
def test_which_replacements_are_still_to_come(replaced: list[Replaced], left: list[str]) -> None:
    fleet = [node("a", pool="np"), node("b", pool="np"), node("other")]
    found = still_missing(replaced, fleet, builders.settings().budget, NOW)

    assert [one.node for one in found] == left


def test_a_replacement_still_to_come_holds_its_place_in_its_zone_and_pool() -> None:
    fleet = [node("a", zone="1", pool="np"), node("b", zone="2", pool="other")]
    budget = builders.settings("budget: {maxUnavailable: 2, perZone: 1, perPool: 1}").budget
    places = count_places(fleet, {}, budget, NOW, [gone("x", 2), gone("b", 2)])

    assert dict(places.holders) == {"x": "replaced by us; the new node is missing"}
    assert [reason.partition(" is ")[0] for reason in places.refusals(fleet[0])] == [
        "perZone in 1",
        "perPool in np",
    ]
    assert places.refusals(fleet[1]) == ()
    assert places.eases_at == NOW + minutes(25)
    assert places.fleet == 2
