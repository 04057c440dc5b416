"""`replace`, the section and the key of a kind: the defaults, where they may stand, what is refused."""

from __future__ import annotations

import pytest

from reconciler.features.machines.settings import REPLACE, REPLACES, PoolCount
from reconciler.model.errors import SettingsError
from reconciler.model.event import Kind
from reconciler.settings.explain import explain_settings
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings

CLUSTER = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/shop"


def read(text: str) -> Settings:
    return parse_settings(text, "maintenance.yaml")


def test_nothing_is_replaced_by_default() -> None:
    chosen = read("")

    assert not chosen.says(REPLACES.key)
    assert not any(REPLACES.in_policy(chosen.policies({}).of_kind(kind)) for kind in Kind)
    assert (REPLACE.of(chosen).surge, REPLACE.of(chosen).aks.cluster) == (False, None)
    assert REPLACE.of(chosen).aks.count is PoolCount.RESTORE


@pytest.mark.parametrize(
    "text",
    [
        "events: {Redeploy: {replace: true}}",
        "conditions: {KernelDeadlock: {replace: true}}",
        "overrides: [{nodeSelector: {agentpool: np}, events: {Redeploy: {replace: true}}}]",
        "overrides: [{nodeSelector: {agentpool: np}, conditions: {KernelDeadlock: {replace: true}}}]",
    ],
)
def test_machines_are_looked_at_where_anything_on_any_node_replaces_them(text: str) -> None:
    assert read(text).says(REPLACES.key)


@pytest.mark.parametrize("cluster", [CLUSTER, CLUSTER.casefold()])
def test_a_cluster_is_named_by_its_resource_id(cluster: str) -> None:
    assert REPLACE.of(read(f"replace: {{aks: {{cluster: {cluster}}}}}")).aks.cluster == cluster


@pytest.mark.parametrize(
    ("text", "key", "said"),
    [
        ("replace: {aks: {cluster: shop}}", "replace.aks.cluster", "az aks show --query id"),
        (
            f"replace: {{aks: {{cluster: {CLUSTER}/agentPools/np}}}}",
            "replace.aks.cluster",
            "not the resource ID of a managed",
        ),
        ("replace: {aks: {count: Keep}}", "replace.aks.count", "Keep"),
        ("replace: {surge: 1}", "replace.surge", ""),
    ],
)
def test_what_can_not_be_is_refused(text: str, key: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(text)

    (mistake,) = raised.value.mistakes
    assert key in mistake
    assert said in mistake


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("events: {Reboot: {replace: true}}", "Once drained the machine is replaced."),
        ("conditions: {DiskFull: {replace: true}}", "Once drained the machine is replaced."),
        (
            "events: {Reboot: {replace: true}}",
            "It starts early where it can be replaced, else late like other events.",
        ),
        (
            "events: {Reboot: {replace: true, start: Early}}",
            "It starts early, also where it can't be replaced",
        ),
        (
            "events: {Reboot: {replace: true}}",
            "AKS agent pools are not replaced without replace.aks.cluster.",
        ),
    ],
)
def test_what_comes_of_a_replacement_is_explained(text: str, said: str) -> None:
    assert said in explain_settings(read(text))


def test_with_the_cluster_nothing_is_said_of_agent_pools() -> None:
    text = f"events: {{Reboot: {{replace: true}}}}\nreplace: {{aks: {{cluster: {CLUSTER}}}}}"

    assert "AKS agent pools" not in explain_settings(read(text))
