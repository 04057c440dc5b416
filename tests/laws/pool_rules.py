"""Rules by which pools and VMs are asked for nothing on a node's word alone, with the tests that fail."""

from __future__ import annotations

from tests.laws.mutant import Mutant

POOL_RULES = (
    Mutant(
        0,
        "a pool's own list has the machine",
        "reconciler/clients/azure/agent_pools.py",
        "    listed = machines.get(vm) if vm is not None else None\n",
        '    listed = _Listed(ref.name, "any")\n    if vm in machines:\n        listed = machines[vm]\n',
        "tests/clients/azure/test_agent_pools.py",
    ),
    Mutant(
        0,
        "a machine has its node's name",
        "reconciler/clients/azure/agent_pools.py",
        "    if not _same_name(listed.name, ref.name):\n",
        "    if False:\n",
        "tests/clients/azure/test_agent_pools.py",
    ),
    Mutant(
        0,
        "a pool is scaled up for its own machines only",
        "reconciler/clients/azure/agent_pools.py",
        "        if not self._has(action.machine):\n",
        "        if False:\n",
        "tests/clients/azure/test_agent_pools.py",
    ),
    Mutant(
        0,
        "a refused deletion is done only if the machine is gone",
        "reconciler/clients/azure/agent_pools.py",
        "if error.status not in (400, 404) or self._has(machine):",
        "if error.status not in (400, 404):",
        "tests/clients/azure/test_agent_pools.py",
    ),
    Mutant(
        0,
        "our token follows a list to no other address",
        "reconciler/clients/azure/agent_pools.py",
        "            if urlsplit(str(more))[:2] != urlsplit(first)[:2]:\n",
        "            if False:\n",
        "tests/clients/azure/test_agent_pools.py",
    ),
    Mutant(
        0,
        "a providerID is read as a whole",
        "reconciler/model/azure.py",
        "    if single := _SINGLE.fullmatch(text):\n",
        "    if single := _SINGLE.match(text):\n",
        "tests/sources/test_arm.py",
    ),
    Mutant(
        0,
        "a resource group is one part of a path",
        "reconciler/model/azure.py",
        '_GROUP = r"([-\\w.()]{0,89}[-\\w()])"',
        '_GROUP = r"([^/]+)"',
        "tests/sources/test_arm.py",
    ),
    Mutant(
        0,
        "forged scopes are limited",
        "reconciler/sources/polled.py",
        "for scope in order[: self.most]}",
        "for scope in order}",
        "tests/sources/test_arm.py",
    ),
    Mutant(
        0,
        "true scopes come first",
        "reconciler/sources/polled.py",
        "key=lambda scope: -len(found[scope])",
        "key=lambda scope: 0",
        "tests/sources/test_arm.py",
    ),
    Mutant(
        0,
        "a 401 stays with its subscription",
        "reconciler/clients/azure/arm.py",
        "status == 0\n",
        "status in (0, 401)\n",
        "tests/clients/azure/test_arm.py",
    ),
)
