"""Where volumes can be mounted, and what that means for a pod that has to go."""

from __future__ import annotations

import pytest

from reconciler.features.readiness.findings import Readiness
from reconciler.model.node import Node
from reconciler.model.pod import PodSpec, Terms, Volume
from reconciler.model.selector import Requirement
from reconciler.model.values import replace
from tests.features.readiness.scene import codes, judged, node, pod

DISK_ZONE = "topology.disk.csi.azure.com/zone"
HOST = "kubernetes.io/hostname"
NODES = tuple(
    node(name, zone, **{DISK_ZONE: zone, HOST: name}) for name, zone in (("a", "1"), ("b", "1"), ("c", "2"))
)
REPLICA = pod("web-2", "c")


def one_term(key: str, *values: str, operator: str = "In") -> Terms:
    return ((Requirement(key, operator, values),),)


def with_volume(affinity: Terms, nodes: tuple[Node, ...] = NODES) -> Readiness:
    volume = Volume("pv", "shop", "data", affinity)
    return judged([pod(spec=PodSpec(claims=("data",))), REPLICA], nodes=nodes, volumes=(volume,))


@pytest.mark.parametrize(
    ("affinity", "found"),
    [
        pytest.param((), [], id="no affinity"),
        pytest.param(one_term(DISK_ZONE, "1", "2"), [], id="two zones"),
        pytest.param(one_term(DISK_ZONE, "1"), [("volumeZone", "notice")], id="one zone"),
        pytest.param(one_term(DISK_ZONE, "2", operator="NotIn"), [("volumeZone", "notice")], id="by NotIn"),
        pytest.param(one_term(HOST, "a"), [("volumeNode", "outage")], id="its own node"),
        pytest.param(one_term(HOST, "gone"), [("volumeNode", "outage")], id="no node"),
        pytest.param(
            (*one_term(HOST, "a"), *one_term(HOST, "c")), [], id="terms are alternatives, in two zones"
        ),
        pytest.param(one_term("metadata.name", "a", "c"), [], id="nodes by name"),
        pytest.param(one_term("metadata.name", "a"), [("volumeNode", "outage")], id="its own node by name"),
        pytest.param(
            one_term("metadata.name", "a", "b", operator="NotIn"),
            [("volumeZone", "notice")],
            id="not by name",
        ),
        pytest.param(((),), [("volumeNode", "outage")], id="an empty term matches nothing"),
        pytest.param(
            ((Requirement(DISK_ZONE, "In", ("1",)), Requirement(HOST, "NotIn", ("b",))),),
            [("volumeNode", "outage")],
            id="all requirements of a term",
        ),
    ],
)
def test_what_the_affinity_of_a_volume_means(affinity: Terms, found: list[tuple[str, str]]) -> None:
    assert codes(with_volume(affinity)) == found


@pytest.mark.parametrize("out", [{"unschedulable": True}, {"conditions": ()}])
def test_a_node_out_of_service_takes_no_volume(out: dict[str, object]) -> None:
    a, b, c = NODES
    found = with_volume(one_term(DISK_ZONE, "1"), (a, replace(b, **out), c))  # type: ignore[arg-type]

    assert codes(found) == [("volumeNode", "outage")]


def test_in_a_cluster_of_one_zone_the_zone_is_no_finding() -> None:
    assert codes(with_volume(one_term(DISK_ZONE, "1"), (*NODES[:2], node("c", "1")))) == []


def test_the_volume_of_another_namespace_with_the_same_claim_does_not_count() -> None:
    volume = Volume("pv", "other", "data", one_term(HOST, "a"))

    assert codes(judged([pod(spec=PodSpec(claims=("data",))), REPLICA], nodes=NODES, volumes=(volume,))) == []


def test_all_volumes_of_a_pod_have_to_be_mounted() -> None:
    volumes = (
        Volume("one", "shop", "one", one_term(HOST, "a", "b")),
        Volume("two", "shop", "two", one_term(HOST, "a", "c")),
    )

    found = judged([pod(spec=PodSpec(claims=("one", "two"))), REPLICA], nodes=NODES, volumes=volumes)
    assert codes(found) == [("volumeNode", "outage")]
