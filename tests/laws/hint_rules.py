"""Rules about scheduling hints, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

HINT_RULES = (
    Mutant(
        0,
        "an event without a deadline may come at any moment",
        "reconciler/features/publishing/hints.py",
        "    if any(one.deadline is None for one in asking):\n        return ANY_MOMENT\n",
        "",
        "tests/features/publishing/test_hints.py",
    ),
    Mutant(
        0,
        "only an event that requires a drain gives hints",
        "reconciler/features/publishing/hints.py",
        "if one.asks] if standing.open else []",
        "] if standing.open else []",
        "tests/features/publishing/test_hints.py",
    ),
    Mutant(
        0,
        "the hints end with the case",
        "reconciler/features/publishing/hints.py",
        "if one.asks] if standing.open else []",
        "if one.asks]",
        "tests/features/publishing/test_hints.py",
    ),
    Mutant(
        5,
        "what an unreadable source reported keeps its hints",
        "reconciler/features/publishing/hints.py",
        "            hidden = standing.open and bool(standing.case.unknown)\n",
        "            hidden = False\n",
        "tests/features/publishing/test_hints.py",
    ),
    Mutant(
        0,
        "another effect is another taint",
        "reconciler/features/publishing/hints.py",
        "any((one.key, one.effect) == (taint.key, taint.effect) for one in node.taints)",
        "any(one.key == taint.key for one in node.taints)",
        "tests/features/publishing/test_hints.py",
    ),
    Mutant(
        0,
        "a node that leaves the fleet loses its hints",
        "reconciler/passes/decide/one_node.py",
        "    return removed_hints(node, settings.keys.prefix)\n",
        "    return NodeSigns()\n",
        "tests/features/publishing/test_hints.py",
    ),
    Mutant(
        0,
        "a node that left the fleet stays in the plan while it has hints",
        "reconciler/passes/decide/__init__.py",
        " or bears_hints(node, prefix)\n",
        "\n",
        "tests/features/publishing/test_hints.py",
    ),
    Mutant(
        0,
        "a changed hint is no action",
        "reconciler/model/plan.py",
        "bool(self.labels.keys() - {keys.deadline})",
        "bool(self.labels)",
        "tests/features/publishing/test_hints.py",
    ),
    Mutant(
        0,
        "a taint is written against the version that was read",
        "reconciler/kubernetes/node_writing.py",
        '        seen = {"uid": write.uid, "resourceVersion": found.metadata.resourceVersion}\n',
        '        seen = {"uid": write.uid}\n',
        "tests/real/clients/test_taints.py",
    ),
    Mutant(
        0,
        "a taint is not written to another node of that name",
        "reconciler/kubernetes/node_writing.py",
        "        if found.metadata.uid != write.uid:\n",
        "        if False:\n",
        "tests/real/clients/test_taints.py",
    ),
    Mutant(
        8,
        "a taint that is as wanted is not written",
        "reconciler/kubernetes/node_writing.py",
        "        if (len(others) < len(have)) is write.wanted:\n            return\n",
        "",
        "tests/real/clients/test_taints.py",
    ),
)
