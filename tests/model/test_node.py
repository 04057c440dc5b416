"""What the labels, taints and annotations of a node mean."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.model.node import READ_LABELS, SCALE_DOWN_ANNOTATION, SCALE_DOWN_REASON_ANNOTATION, Taint
from reconciler.model.values import replace
from tests.support.builders import IN_UPGRADE, node


@pytest.mark.parametrize(
    ("labels", "pool"),
    [
        ({}, ""),
        ({"agentpool": "np", "kubernetes.azure.com/agentpool": "np"}, "np"),
        ({"kubernetes.azure.com/agentpool": "long", "agentpool": "short"}, "long"),
        ({"karpenter.sh/nodepool": "spot", "agentpool": "aks-spot"}, "spot"),
        ({"agentpool": "", "eks.amazonaws.com/nodegroup": "workers"}, "workers"),
        ({"cloud.google.com/gke-nodepool": "default-pool"}, "default-pool"),
        ({"topology.cluster.x-k8s.io/deployment-name": "md-0"}, "md-0"),
        ({"cluster.x-k8s.io/pool-name": "mp-0"}, "mp-0"),
        ({"hypershift.openshift.io/nodePool": "hosted"}, "hosted"),
    ],
)
def test_the_pool_is_read_from_the_label_of_each_cloud(labels: Mapping[str, str], pool: str) -> None:
    assert node(labels=labels).pool == pool


@pytest.mark.parametrize(
    ("annotations", "pool"),
    [
        ({"cluster.x-k8s.io/owner-name": "md-0-x7k2p"}, "md-0-x7k2p"),
        ({"machine.openshift.io/machine": "openshift-machine-api/shop-worker-b-7xkzq"}, "shop-worker-b"),
        ({"machine.openshift.io/machine": "alone"}, ""),
    ],
)
def test_the_pool_of_a_machine_is_that_of_its_set(annotations: Mapping[str, str], pool: str) -> None:
    assert node(annotations=annotations).pool == pool


def test_the_agent_pool_of_a_node_of_karpenter_is_not_its_nodepool() -> None:
    assert node(labels={"karpenter.sh/nodepool": "spot", "agentpool": "aks"}).agent_pool == "aks"


@pytest.mark.parametrize(
    ("zone", "provider", "pool", "found"),
    [
        pytest.param("0", "azure:///subscriptions/s", "", "", id="Azure's fault domain"),
        pytest.param("0", "", "np", "", id="of an agent pool"),
        pytest.param("westeurope-1", "azure:///subscriptions/s", "np", "westeurope-1", id="Azure's zone"),
        pytest.param("0", "openstack:///x", "", "0", id="a zone of another cloud"),
    ],
)
def test_a_fault_domain_of_azure_is_no_zone(zone: str, provider: str, pool: str, found: str) -> None:
    assert replace(node(zone=zone, pool=pool), provider_id=provider).zone == found


@pytest.mark.parametrize(("label", "found"), [("", "old"), ("new", "new")])
def test_the_older_label_of_the_zone_counts_where_there_is_no_other(label: str, found: str) -> None:
    labels = {"failure-domain.beta.kubernetes.io/zone": "old"}
    labels |= {"topology.kubernetes.io/zone": label} if label else {}

    assert replace(node(), labels=labels).zone == found
    assert labels.keys() <= READ_LABELS


@pytest.mark.parametrize(
    "key",
    [
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "remediator.kubernetes.azure.com/unschedulable",
        "node.kubernetes.io/out-of-service",
        "node.cloudprovider.kubernetes.io/shutdown",
    ],
)
def test_a_taint_takes_a_node_out_of_service(key: str) -> None:
    assert node(taints=(key,)).out_of_service == f"taint {key}"


def test_a_taint_that_only_prefers_other_nodes_does_not() -> None:
    preferred = Taint("ToBeDeletedByClusterAutoscaler", effect="PreferNoSchedule")

    assert replace(node(), taints=(preferred,)).out_of_service == ""
    assert node(taints=("DeletionCandidateOfClusterAutoscaler",)).out_of_service == ""


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        pytest.param({}, "upgraded by AKS", id="both annotations"),
        pytest.param({SCALE_DOWN_ANNOTATION: "false"}, "", id="scaled down again"),
        pytest.param({SCALE_DOWN_REASON_ANNOTATION: "other"}, "", id="for another reason"),
        pytest.param({SCALE_DOWN_REASON_ANNOTATION: ""}, "", id="for no reason"),
    ],
)
def test_a_node_that_aks_upgrades_is_out_of_service(changes: dict[str, str], because: str) -> None:
    assert node(annotations={**IN_UPGRADE, **changes}).out_of_service == because
