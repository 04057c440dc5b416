"""Which pods are replaced before they go: the only one of its kind, where somebody allows it."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.keys import OwnKeys
from reconciler.model.pod import Pod, PodDisruptionBudget


def may_be_restarted(
    pod: Pod, covering: Sequence[PodDisruptionBudget], *, prefix: str, everywhere: bool
) -> bool:
    """Whether the pod's Deployment may be restarted in place of an eviction that its budgets refuse.

    `everywhere` is the settings' word; the pod's own label `<prefix>/restart: "true"` is as good. Whether
    the Deployment fits (its strategy, its volumes) is seen only when it is read.
    """
    asked = everywhere or pod.labels.get(OwnKeys(prefix).restart) == "true"
    if not asked or pod.owner is None or pod.owner.kind != "ReplicaSet":
        return False
    return all(budget.expected <= 1 for budget in covering)
