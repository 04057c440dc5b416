"""Rules of readiness, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_BUDGETS = "reconciler/drain/budgets.py"
_PODS = "reconciler/features/readiness/pods.py"
_REFUSAL = "reconciler/drain/refusal.py"
_ROOM = "reconciler/features/readiness/room.py"
_VOLUMES = "reconciler/features/readiness/volumes.py"
_DRY = "reconciler/features/readiness/dry_evictions.py"
_OF_PODS = "tests/features/readiness/test_pods.py"
_OF_ROOM = "tests/features/readiness/test_room.py"
_OF_VOLUMES = "tests/features/readiness/test_volumes.py"
_OF_DRY = "tests/features/readiness/test_dry_evictions.py"
_OF_SUMMING = "tests/features/readiness/test_summing.py"

READINESS_RULES = (
    Mutant(
        0,
        "a budget that requires all of its pods never allows an eviction",
        _BUDGETS,
        "budget.desired >= budget.expected",
        "budget.desired > budget.expected",
        _OF_PODS,
    ),
    Mutant(
        0,
        "a budget without a label of its own in the index is found, too",
        _BUDGETS,
        "places: list[tuple[str, ...]] = [()]",
        "places: list[tuple[str, ...]] = []",
        "tests/drain/test_budgets.py",
    ),
    Mutant(
        0,
        "a pod under two budgets can't be evicted",
        _REFUSAL,
        "if len(covering) > 1:",
        "if len(covering) > 2:",
        _OF_PODS,
    ),
    Mutant(
        0,
        "a singleton with a volume is not called restartable",
        _REFUSAL,
        "restarted = not pod.claims and",
        "restarted =",
        _OF_PODS,
    ),
    Mutant(
        0,
        "no budget applies to a pod that does not run",
        _REFUSAL,
        "if asks_none(pod):",
        "if False:",
        _OF_PODS,
    ),
    Mutant(
        0,
        "the pods that leave one node share the room of the others",
        _ROOM,
        "free.get(resource, 0) - taken.get(resource, 0) >= amount",
        "free.get(resource, 0) >= amount",
        _OF_ROOM,
    ),
    Mutant(
        0,
        "a pod has no room on the node that it leaves",
        _ROOM,
        "free.name != node and",
        "",
        _OF_ROOM,
    ),
    Mutant(
        0,
        "the search for room ends at its limit",
        _ROOM,
        "elif not self.exhausted:",
        "else:",
        _OF_ROOM,
    ),
    Mutant(
        0,
        "a drain waits only for pods beyond those that the budget allows to be down",
        "reconciler/features/readiness/stuck.py",
        "if len(down) <= allowed:",
        "if len(down) < allowed:",
        _OF_ROOM,
    ),
    Mutant(
        0,
        "a pod that no budget counts uses none of its disruptions",
        "reconciler/features/readiness/stuck.py",
        " and asks(covering[0], one.pod)",
        "",
        _OF_ROOM,
    ),
    Mutant(
        0,
        "a pod has room only where its volumes can be mounted",
        _ROOM,
        "(shape.mounts is None or node.name in shape.mounts)",
        "True",
        _OF_ROOM,
    ),
    Mutant(
        0,
        "a node out of service mounts no volume",
        _VOLUMES,
        "_Reach(names & self._usable, zones)",
        "_Reach(names, zones)",
        _OF_VOLUMES,
    ),
    Mutant(
        0,
        "a volume of another namespace is another volume",
        _VOLUMES,
        "self._affinity.get((pod.namespace, claim))",
        "next((found for (_, name), found in self._affinity.items() if name == claim), None)",
        _OF_VOLUMES,
    ),
    Mutant(
        0,
        "a volume that is no longer bound binds nobody",
        "reconciler/kubernetes/volumes.py",
        'if claim is None or found.status.phase != "Bound":',
        "if claim is None:",
        "tests/kubernetes/test_volumes.py",
    ),
    Mutant(
        0,
        "an affinity that is too large is not read",
        "reconciler/kubernetes/volumes.py",
        "if max(lengths) > TERMS:",
        "if False:",
        "tests/kubernetes/test_volumes.py",
    ),
    Mutant(
        0,
        "an eviction that asks webhooks is a dry run",
        _DRY,
        'query={"dryRun": "All"},',
        "",
        _OF_DRY,
    ),
    Mutant(
        0,
        "an eviction that asks webhooks is a dry run by its options, too",
        _DRY,
        '{"preconditions": {"uid": pod.uid}, "dryRun": ["All"]}',
        '{"preconditions": {"uid": pod.uid}}',
        _OF_DRY,
    ),
    Mutant(
        0,
        "evictions that ask webhooks end after some without an answer",
        _DRY,
        "or counts.silent >= SILENT",
        "",
        _OF_DRY,
    ),
    Mutant(
        0,
        "a cluster whose pods or budgets are unseen is not called ready",
        "reconciler/features/readiness/judging.py",
        "& {PODS, BUDGETS})",
        "& {PODS})",
        _OF_SUMMING,
    ),
    Mutant(
        0,
        "an error about one node harms that node's findings only",
        "reconciler/features/readiness/judging.py",
        'guarded(f"node {node.name} can\'t be judged", work, ([], []))',
        "(work(), ())",
        _OF_SUMMING,
    ),
)
