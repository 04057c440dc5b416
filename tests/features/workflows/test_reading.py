"""What a pass reads for checks: each thing once, and a failure stays with the checks that need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from reconciler.features.workflows.reading import LEASES, Needs, ReadForChecks, read_for_checks
from reconciler.features.workflows.services import (
    NAME,
    Hypervisor,
    KubernikusAnswer,
    KubernikusQuery,
    PrometheusAnswer,
    PrometheusQuery,
    Sample,
)
from reconciler.model.errors import ClusterError, Forbidden, Unreachable
from reconciler.model.leases import LeaseRef, LeaseSeen
from reconciler.simulation.world import World
from tests.support.builders import NOW, node, pod
from tests.support.worlds import world_of

FIRST, SECOND = LeaseRef("ops", "turn-0"), LeaseRef("ops", "turn-1")
QUERY = PrometheusQuery("http://prometheus:9090", "up")


class Answering:
    """A Prometheus with one answer, which remembers its queries."""

    def __init__(self) -> None:
        self.asked: list[PrometheusQuery] = []

    def ask(self, queries: Sequence[PrometheusQuery], /) -> Mapping[PrometheusQuery, PrometheusAnswer]:
        self.asked += queries
        return dict.fromkeys(queries, PrometheusAnswer((Sample(7),)))


def refusing(world: World, what: str, error: ClusterError, subject: str = "") -> None:
    """Let reads of this end in an error."""

    def refuse(call: object) -> None:
        if getattr(call, "what", "") == what and subject in (getattr(call, "node", ""), ""):
            raise error

    world.api.before_read = refuse


def test_nothing_is_read_that_no_check_needs() -> None:
    world = world_of([node("a")])
    world.clients[NAME].prometheus = asked = Answering()

    read = read_for_checks(world.outside, Needs(labels=frozenset({"a"})))

    assert read == ReadForChecks()
    assert (world.api.reads, asked.asked) == (0, [])


def test_leases_pods_and_queries_are_read() -> None:
    held = LeaseSeen("b", NOW, timedelta(minutes=1))
    world = world_of([node("a"), node("b")], [pod("x", "a"), pod("y", "a"), pod("z", "b")])
    world.clients[NAME].put_lease(FIRST, held)
    world.clients[NAME].prometheus = Answering()
    needs = Needs(frozenset({FIRST, SECOND}), frozenset({QUERY}), all_pods=True)

    read = read_for_checks(world.outside, needs)

    seen = read.leases[FIRST]
    assert seen is not None
    assert (seen.holder, read.leases[SECOND], read.unread_leases) == ("b", None, {})
    assert {name: [one.name for one in pods] for name, pods in read.pods.items()} == {
        "a": ["x", "y"],
        "b": ["z"],
    }
    assert read.unread_pods == ""
    assert read.answer(QUERY).samples == (Sample(7),)


def test_what_may_not_be_read_is_named_and_the_rest_is_read() -> None:
    world = world_of([node("a")], [pod("x", "a")])
    refusing(world, "pods", Forbidden("no", status=403, needs="list pods"))

    read = read_for_checks(world.outside, Needs(frozenset({FIRST}), all_pods=True))

    assert (read.pods, read.unread_pods) == ({}, "needs list pods")
    assert read.leases == {FIRST: None}


def test_a_lease_that_may_not_be_read_harms_no_other() -> None:
    world = world_of()
    refusing(world, "lease", Forbidden("no", status=403, needs="get leases in ops"), str(FIRST))

    read = read_for_checks(world.outside, Needs(frozenset({FIRST, SECOND})))

    assert read.unread_leases == {FIRST: "needs get leases in ops"}
    assert read.leases == {SECOND: None}


def test_a_server_that_is_silent_is_asked_for_one_lease() -> None:
    world = world_of()
    refusing(world, "lease", Unreachable("no answer"))

    read = read_for_checks(world.outside, Needs(frozenset({FIRST, SECOND})))

    assert read.unread_leases == {FIRST: "no answer", SECOND: "no answer"}
    assert world.api.reads == 1


def test_a_pass_reads_a_limited_number_of_leases() -> None:
    world = world_of()
    many = frozenset(LeaseRef("ops", f"turn-{number}") for number in range(LEASES + 5))

    read = read_for_checks(world.outside, Needs(many))

    assert (len(read.leases), len(read.unread_leases), world.api.reads) == (LEASES, 5, LEASES)


def test_an_error_in_one_read_is_that_reads_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of([node("a")], [pod("x", "a")])
    monkeypatch.setitem(world.cluster.others, "leases", 1)
    monkeypatch.setattr(world.cluster, "pods", None)

    read = read_for_checks(world.outside, Needs(frozenset({FIRST}), all_pods=True))

    assert "AttributeError" in read.unread_leases[FIRST]
    assert "AttributeError" in read.unread_pods


def test_hypervisors_are_read_with_one_list() -> None:
    world = world_of([node("a"), node("b")])
    world.clients[NAME].put_hypervisors(Hypervisor("a", "u"))

    read = read_for_checks(world.outside, Needs(hypervisors=True))

    assert (read.hypervisor("a"), world.api.reads) == ((Hypervisor("a", "u"), ""), 1)
    assert read.hypervisor("b") == (None, "there is no Hypervisor b")


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Forbidden("no", needs="list hypervisors"), "needs list hypervisors"),
        (Unreachable("no answer"), "no answer"),
        (None, "the cluster has no kind Hypervisor of kvm.cloud.sap/v1"),
    ],
)
def test_hypervisors_that_cannot_be_read_say_why(error: ClusterError | None, why: str) -> None:
    world = world_of([node("a")])
    if error is not None:
        refusing(world, "hypervisors", error)

    read = read_for_checks(world.outside, Needs(hypervisors=True))

    assert read.hypervisor("a") == (None, f"the Hypervisors can't be read: {why}")


class Counting:
    """A Kubernikus with one answer."""

    def ask(self, queries: Sequence[KubernikusQuery], /) -> Mapping[KubernikusQuery, KubernikusAnswer]:
        return dict.fromkeys(queries, KubernikusAnswer(3))


def test_kubernikus_is_asked_where_there_is_a_client() -> None:
    world, query = world_of([node("a")]), KubernikusQuery("c")
    needs = Needs(kubernikus=frozenset({query}))

    assert read_for_checks(world.outside, needs).kubernikus == {}
    world.clients[NAME].kubernikus = Counting()
    asked = read_for_checks(world.outside, needs)
    assert asked.kubernikus == {query: KubernikusAnswer(3)}
