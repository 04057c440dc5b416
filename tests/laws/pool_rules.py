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
)
