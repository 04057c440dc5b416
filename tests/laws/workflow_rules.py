"""Rules of workflows, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_RUN = "reconciler/workflows/run.py"
_DECIDED = "reconciler/decide/workflows.py"
_PASSES = "tests/decide/test_workflows.py"
_HYPERVISORS = "tests/decide/test_hypervisors.py"

WORKFLOW_RULES = (
    Mutant(
        19,
        "a node is in maintenance for one profile at a time",
        _RUN,
        "return begins and bool(self._others)",
        "return False",
        _PASSES,
    ),
    Mutant(
        19,
        "a profile that leaves maintenance keeps the others out of it for this pass",
        _RUN,
        "others = {*first, *_in_maintenance(ran.data)} - {workflow.name}",
        "others = {*_in_maintenance(ran.data)} - {workflow.name}",
        _PASSES,
    ),
    Mutant(
        0,
        "a chain that waits for a drain goes on whatever its check says",
        _RUN,
        "return next((step for step in (*open_ones, *draining) if step in draining), None)",
        "return next(iter(open_ones), None)",
        _PASSES,
    ),
    Mutant(
        0,
        "a transition that is unknown stops those behind it",
        _RUN,
        "if one[1] is not Verdict.FAILED",
        "if one[1] is Verdict.PASSED",
        _PASSES,
    ),
    Mutant(
        1,
        "nothing is evicted after somebody has uncordoned the node of a workflow",
        _DECIDED,
        "if one.node.unschedulable or not waiting or record.cordon is None:",
        "if True:",
        _PASSES,
    ),
    Mutant(
        2,
        "a workflow leaves the cordon of somebody else",
        "reconciler/workflows/triggers/uncordon.py",
        "(after.cordon is None and before.cordon.whose.may_be_undone)",
        "after.cordon is None",
        _PASSES,
    ),
    Mutant(
        0,
        "a step is not written if what its checks read has changed on the node",
        "reconciler/decide/planned.py",
        "seen_by_checks=used_keys(node, needs.labels, needs.annotations)",
        "seen_by_checks={}",
        _PASSES,
    ),
    Mutant(
        17,
        "a pod waits for a limited time over all attempts of a workflow's drain",
        _DECIDED,
        "return shifted(drain.since, -lasted)",
        "return drain.since",
        _PASSES,
    ),
    Mutant(
        16,
        "data of workflows that can't be read are not overwritten",
        _DECIDED,
        "    if member.problem:\n",
        "    if False:\n",
        _PASSES,
    ),
    Mutant(
        0,
        "a node that enters maintenance counts for the nodes after it in the pass",
        "reconciler/decide/members.py",
        "        if (before.node, before.data) != (node, data):\n",
        "        if False:\n",
        _PASSES,
    ),
    Mutant(
        0,
        "a Lease that a node takes is taken for the nodes after it in the pass",
        _DECIDED,
        "        progress.members.read = progress.members.read.taken(take)\n",
        "        del take\n",
        _PASSES,
    ),
    Mutant(
        0,
        "other entries of a node's lists stay",
        "reconciler/model/plan.py",
        "kept = [one for one in before if one in self.taints or (one.key, one.effect) not in changed]",
        "kept: list[Taint] = []",
        "tests/real/clients/test_node_writing.py",
    ),
    Mutant(
        8,
        "a Hypervisor that has its values already is not written",
        "reconciler/workflows/triggers/alter_hypervisor.py",
        "if found.spec[key] != value}",
        "if True}",
        _HYPERVISORS,
    ),
    Mutant(
        0,
        "a chain begins only if its Hypervisor can be changed",
        _RUN,
        "        if missing:\n",
        "        if False:\n",
        _HYPERVISORS,
    ),
    Mutant(
        9,
        "a node takes no step without the change of its Hypervisor",
        "reconciler/act.py",
        "partial(writer.write_hypervisor, wanted))\n        if outcome.result is not Result.DONE:",
        "partial(writer.write_hypervisor, wanted))\n        if False:",
        _HYPERVISORS,
    ),
    Mutant(
        13,
        "another Hypervisor with the name of the node is not changed",
        "reconciler/clients/kubernetes/hypervisors.py",
        'body = {"metadata": {"uid": wanted.uid}, "spec": fields}',
        'body = {"spec": fields}',
        "tests/real/clients/test_hypervisors.py",
    ),
    Mutant(
        5,
        "a field of another type than expected passes no check",
        "reconciler/workflows/checks/check_hypervisor.py",
        "        if seen is None:\n",
        "        if False:\n",
        "tests/workflows/checks/test_hypervisors.py",
    ),
)
