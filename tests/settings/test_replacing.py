"""The keys that acknowledge and replace: what each default is, where they may stand, what is refused."""

from __future__ import annotations

import pytest

from reconciler.model.errors import SettingsError
from reconciler.model.event import Kind
from reconciler.settings.explain import explain_settings
from reconciler.settings.load import parse_settings
from reconciler.settings.replacing import PoolCount, replacing_of
from reconciler.settings.schema import Settings

CLUSTER = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.ContainerService/managedClusters/shop"


def read(text: str) -> Settings:
    return parse_settings(text, "maintenance.yaml")


def test_nothing_is_acknowledged_or_replaced_by_default() -> None:
    chosen = read("")

    assert not chosen.replaces()
    assert not any(chosen.policies({}).of_kind(kind).acknowledge for kind in Kind)
    assert (replacing_of(chosen).surge, replacing_of(chosen).aks.cluster) == (False, None)
    assert replacing_of(chosen).aks.count is PoolCount.RESTORE


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
    assert read(text).replaces()


def test_an_override_has_the_last_word() -> None:
    chosen = read(
        "events: {Reboot: {acknowledge: true, replace: true}}\n"
        "overrides: [{nodeSelector: {agentpool: np}, events: {Reboot: {acknowledge: false, replace: false}}}]"
    )
    everywhere, there = (chosen.policies(labels).of_kind(Kind.REBOOT) for labels in ({}, {"agentpool": "np"}))

    assert (everywhere.acknowledge, everywhere.replace) == (True, True)
    assert (there.acknowledge, there.replace) == (False, False)


@pytest.mark.parametrize("cluster", [CLUSTER, CLUSTER.casefold()])
def test_a_cluster_is_named_by_its_resource_id(cluster: str) -> None:
    assert replacing_of(read(f"replace: {{aks: {{cluster: {cluster}}}}}")).aks.cluster == cluster


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
        ("conditions: {KernelDeadlock: {acknowledge: true}}", "KernelDeadlock.acknowledge", ""),
    ],
)
def test_what_can_not_be_is_refused(text: str, key: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(text)

    (mistake,) = raised.value.mistakes
    assert key in mistake
    assert said in mistake


def test_what_happens_once_a_node_is_drained_is_explained() -> None:
    text = explain_settings(read("events: {Reboot: {acknowledge: true, replace: true}}"))

    assert "Once drained it is acknowledged. Once drained the machine is replaced." in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Reboot: {replace: true}", "It starts early where it can be replaced, else late like other events."),
        ("Reboot: {replace: true, start: Early}", "It starts early, also where it can't be replaced"),
        ("Reboot: {acknowledge: true}", "start early only if all of them can start together."),
        ("Reboot: {acknowledge: true, start: Late}", "It starts late, because start is Late."),
        ("Reboot: {replace: true}", "AKS agent pools are not replaced without replace.aks.cluster."),
    ],
)
def test_which_way_an_early_start_goes_is_explained(text: str, said: str) -> None:
    assert said in explain_settings(read(f"events: {{{text}}}"))
