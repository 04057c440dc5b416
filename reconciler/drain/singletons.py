"""Which pods are restarted instead of evicted: the only replica of a Deployment, if that is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.keys import keys_of
from reconciler.model.pod import Pod, PodDisruptionBudget


def may_be_restarted(
    pod: Pod, covering: Sequence[PodDisruptionBudget], *, prefix: str, everywhere: bool
) -> bool:
    """Whether the pod's Deployment may be restarted, because its budgets refuse the eviction.

    `everywhere` is the setting; the pod's label `<prefix>/restart: "true"` has the same effect. The strategy
    and the volumes of the Deployment are checked later, when it is read.
    """
    asked = everywhere or pod.labels.get(keys_of(prefix).restart) == "true"
    if not asked or pod.owner is None or pod.owner.kind != "ReplicaSet":
        return False
    return all(budget.expected <= 1 for budget in covering)
