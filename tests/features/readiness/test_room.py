"""Whether the pods of each node have room on the others: the same answer as a search of its own per node."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.drain.room import room
from reconciler.features.readiness.room import Mounts, Shelter
from reconciler.model.node import Taint
from reconciler.model.pod import Owner, Placement, Pod, PodDisruptionBudget, PodSpec, Volume
from reconciler.model.selector import LabelSelector, Requirement
from reconciler.model.values import replace
from tests.features.readiness.scene import codes, judged, node, only, pod

NODES = (node("a"), node("b"))


def sized(name: str, on: str, cpu: str, **selector: str) -> Pod:
    made = pod(name, on, app=name, cpu=cpu)
    assert made.placement is not None
    return replace(made, placement=replace(made.placement, node_selector=selector))


def homeless(pods: list[Pod], on: str = "a", most_looks: int = 1000) -> list[str]:
    shelter = Shelter(NODES, pods, Mounts((), NODES), most_looks=most_looks)
    return sorted(one.pod.name for one in shelter.homeless(on, [each for each in pods if each.node == on]))


def test_a_pod_without_room_is_found_with_the_reasons_of_the_other_nodes() -> None:
    tainted = replace(node("c"), taints=(Taint("gpu", "", "NoSchedule"),))
    pods = [sized("web", "a", "3"), sized("web", "b", "2")]
    found = judged(pods, nodes=(*NODES, tainted))

    assert ("noRoom", "outage") in codes(found)
    because = found.workloads[0].findings[0].because
    assert because == "no other node has room for it: 1 tainted, 1 without enough cpu"


def test_each_node_is_judged_alone() -> None:
    # Either node can go while the other one stays, although both together could not.
    assert codes(judged([sized("web", "a", "2"), sized("web", "b", "2")])) == []


def test_the_pods_of_one_node_share_the_room_that_there_is() -> None:
    pods = [sized("one", "a", "2"), sized("two", "a", "2"), sized("there", "b", "1")]

    assert homeless(pods) == ["two"]


def test_what_is_tried_for_one_node_is_free_for_the_next() -> None:
    pods = [sized("one", "a", "2"), sized("two", "b", "2")]
    shelter = Shelter(NODES, pods, Mounts((), NODES))

    assert [shelter.homeless("a", pods[:1]) for _ in range(3)] == [[], [], []]


def test_a_pod_with_a_volume_has_room_only_where_the_volume_can_be_mounted() -> None:
    nodes = (node("a", "1", disk="1"), node("b", "1", disk="1"), node("c", "2", disk="2"))
    volume = Volume("pv", "shop", "data", ((Requirement("disk", "In", ("1",)),),))
    pods = [replace(sized("web", "a", "3"), spec=PodSpec(claims=("data",))), sized("web-2", "b", "3")]
    found = judged(pods, nodes=nodes, volumes=(volume,))

    assert ("noRoom", "outage") in codes(found)
    assert "1 not able to mount its volumes" in found.workloads[0].findings[0].because


def test_a_pod_that_nothing_creates_again_needs_no_room() -> None:
    alone = replace(sized("web", "a", "9"), owner=None)

    assert codes(judged([alone], settings="events: {Reboot: {unmanagedPods: Evict}}")) == [
        ("unmanaged", "outage")
    ]


def test_after_the_limit_nothing_is_claimed_and_the_answer_says_so() -> None:
    pods = [sized(f"web-{number}", "a", f"{9 - number}") for number in range(5)]
    shelter = Shelter(NODES, pods, Mounts((), NODES), most_looks=3)

    assert len(shelter.homeless("a", pods)) < 5
    assert shelter.exhausted
    assert shelter.homeless("b", pods) == []


def test_a_quantity_that_cannot_be_read_harms_only_its_pod() -> None:
    odd = replace(pod("odd"), placement=Placement(requests=({"cpu": "much"},)))
    other = replace(sized("web", "a", "9"), owner=Owner("Job", "web", "batch/v1"))
    found = judged([odd, replace(odd, name="odd-2", uid="odd-2"), other])

    assert [one.code for each in found.workloads for one in each.findings] == ["noRoom"]
    assert "can't be read" in found.notes[0]
    assert only(found).pods == ("web",)


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.sampled_from(["", "a", "b"])), max_size=12
    )
)
def test_where_the_preview_of_one_drain_finds_room_readiness_does_too(
    shapes: list[tuple[str, int, str]],
) -> None:
    nodes = (node("a", place="a"), node("b", place="b"), node("c", place="b"))
    pods = [
        sized(f"p{number}", on, f"{size}00m", **({"place": place} if place else {}))
        for number, (on, size, place) in enumerate(shapes)
    ]
    shelter = Shelter(nodes, pods, Mounts((), nodes))
    for one in nodes:
        here = [each for each in pods if each.node == one.name]
        alone = room(nodes, pods, here[:1])
        assert bool(shelter.homeless(one.name, here[:1])) == bool(alone)


def held(allowed: int, *pods: Pod) -> list[tuple[str, str]]:
    """The findings about these pods under a budget that allows so many disruptions."""
    selector = LabelSelector((Requirement("app", "Exists"),))
    covering = PodDisruptionBudget("shop", "all", selector, allowed, desired=1, healthy=9, expected=9)
    return [found for found in codes(judged(pods, covering)) if found[0] != "singleton"]


def test_a_drain_waits_where_more_pods_have_no_room_than_their_budget_allows_to_be_down() -> None:
    one, two = sized("one", "a", "3"), sized("two", "a", "3")
    full = replace(sized("full", "b", "3"), labels={})

    assert held(2, one, two, full) == [("noRoom", "outage")] * 3
    blocked = held(1, one, two, full)
    assert sorted(blocked) == [("budgetNoRoom", "blocks")] * 2 + [("noRoom", "outage")] * 3


def test_pods_that_no_budget_counts_do_not_make_a_drain_wait() -> None:
    pods = [replace(sized(name, "a", "3"), ready=False) for name in ("one", "two")]

    assert held(1, *pods, replace(sized("full", "b", "3"), labels={})) == [("noRoom", "outage")] * 3
