"""The provider of a node's machine: the node itself names it, without a request."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.features.machines import feature
from reconciler.features.machines.feature import FEATURE, PROVIDERS, MachineProvider, machine_of
from reconciler.model.machine import MachineRef
from reconciler.model.node import Node
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from tests.support import builders

VM = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/a"
OPENSHIFT = {"machine.openshift.io/machine": "machines/m-a"}
CLUSTER_API = {"cluster.x-k8s.io/machine": "m-a", "cluster.x-k8s.io/cluster-namespace": "clusters"}
CLAIM = MachineRef("a", "uid-a", "Karpenter", "a")
OF_OPENSHIFT = MachineRef("a", "uid-a", "OpenShift", "m-a", "machines")
OF_CLUSTER_API = MachineRef("a", "uid-a", "Cluster API", "m-a", "clusters")


def node(
    annotations: Mapping[str, str] | None = None, *, karpenter: bool = False, pool: str = "", vm: str = ""
) -> Node:
    made = builders.node(pool=pool, annotations=dict(annotations or {}))
    labels = {**made.labels, "karpenter.sh/nodepool": "spot"} if karpenter else made.labels
    return replace(made, labels=labels, provider_id=vm)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(node(karpenter=True), CLAIM, id="Karpenter"),
        pytest.param(node(OPENSHIFT), OF_OPENSHIFT, id="OpenShift"),
        pytest.param(node(CLUSTER_API), OF_CLUSTER_API, id="Cluster API"),
        pytest.param(
            node({"cluster.x-k8s.io/machine": "m-a"}, vm="aws:///eu-west-1a/i-1"),
            replace(OF_CLUSTER_API, namespace="default", provider_id="aws:///eu-west-1a/i-1"),
            id="Cluster API without a namespace",
        ),
        pytest.param(
            node(pool="np", vm=VM), MachineRef("a", "uid-a", "AKS", "a", pool="np", provider_id=VM), id="AKS"
        ),
        pytest.param(node(pool="np", vm="aws:///eu-west-1a/i-1"), None, id="a pool outside of Azure"),
        pytest.param(node(vm=VM), None, id="a VM in no pool"),
        pytest.param(node(), None, id="nobody's"),
    ],
)
def test_a_node_says_whose_its_machine_is(found: Node, expected: MachineRef | None) -> None:
    assert machine_of(found) == expected


@pytest.mark.parametrize(
    ("found", "provider"),
    [
        pytest.param(node(OPENSHIFT, karpenter=True, pool="np", vm=VM), "Karpenter", id="Karpenter first"),
        pytest.param(node({**OPENSHIFT, **CLUSTER_API}, pool="np", vm=VM), "OpenShift", id="then OpenShift"),
        pytest.param(node(CLUSTER_API, pool="np", vm=VM), "Cluster API", id="AKS last"),
        pytest.param(
            node({"machine.openshift.io/machine": "m-a"}, pool="np", vm=VM),
            "OpenShift",
            id="an annotation that names no machine is not AKS's either",
        ),
    ],
)
def test_the_first_provider_that_knows_the_node_has_its_machine(found: Node, provider: str) -> None:
    ref = machine_of(found)

    assert ref is not None
    assert ref.provider == provider


def test_the_annotations_that_providers_read_are_asked_for() -> None:
    assert FEATURE.reads is not None
    assert FEATURE.reads(Settings()).annotations == {*OPENSHIFT, *CLUSTER_API}
    assert len({provider.name for provider in PROVIDERS}) == len(PROVIDERS)


def test_a_provider_is_added_by_a_line_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = MachineProvider("Toy", lambda node: MachineRef(node.name, node.uid, "Toy", f"toy-{node.name}"))
    monkeypatch.setattr(feature, "PROVIDERS", (*PROVIDERS, toy))

    assert machine_of(node(OPENSHIFT)) == OF_OPENSHIFT
    assert machine_of(node()) == MachineRef("a", "uid-a", "Toy", "toy-a")
