"""docs/replacing.md says what is so: its settings are good, its role asks for what the client does."""

from __future__ import annotations

import json
import re
from pathlib import Path

from reconciler.features.machines.feature import PROVIDERS
from reconciler.features.machines.settings import REPLACE, REPLACES, PoolCount
from reconciler.model.event import Kind
from reconciler.model.machine import CLUSTER_API_MACHINE, OPENSHIFT_MACHINE
from reconciler.model.node import CONTROL_PLANE_LABELS, KARPENTER_LABEL
from reconciler.settings.load import parse_settings

PAGE = (Path(__file__).parents[3] / "docs" / "replacing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_settings_of_the_page_are_good() -> None:
    kinds, pools, surge = (parse_settings(block, "maintenance.yaml") for block in BLOCKS)

    assert REPLACES.in_policy(kinds.policies({}).of_kind(Kind.REDEPLOY))
    assert REPLACE.of(pools).aks.cluster is not None
    assert REPLACE.of(pools).aks.count is PoolCount.RESTORE
    assert REPLACE.of(surge).surge
    assert not surge.says(REPLACES.key)


def test_every_provider_and_what_names_it_on_a_node_is_in_the_table() -> None:
    table = PAGE.partition("| provider |")[2].partition("\n\n")[0]

    assert [one.name for one in PROVIDERS if one.name not in table] == []
    for key in (KARPENTER_LABEL, CLUSTER_API_MACHINE, OPENSHIFT_MACHINE):
        assert f"`{key}`" in table
    assert f"`{CONTROL_PLANE_LABELS[0]}`" in PAGE


def test_the_role_has_the_rights_of_agent_pools() -> None:
    (text,) = re.findall(r"<<JSON\n(.*?)\nJSON", PAGE, re.DOTALL)
    rights = {
        action.removeprefix("Microsoft.ContainerService/managedClusters/")
        for action in json.loads(text)["Actions"]
    }

    assert rights == {
        "agentPools/read",
        "agentPools/write",
        "agentPools/machines/read",
        "agentPools/deleteMachines/action",
    }
