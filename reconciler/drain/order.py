"""The order of evictions: by tier, then by the order of rules, then the lowest priority first.

The tiers are those of Karpenter (pkg/controllers/node/termination/terminator): pods that others depend on
go later.
"""

from __future__ import annotations

from enum import IntEnum

from reconciler.model.pod import Pod

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})


class Tier(IntEnum):
    """A tier starts when the previous one is gone. `OWN` is the pod of the reconciler itself."""

    ORDINARY = 0
    DAEMONSET = 1
    CRITICAL = 2
    CRITICAL_DAEMONSET = 3
    OWN = 4


def tier_of(pod: Pod, own_pod: str | None = None) -> Tier:
    """Return the tier of a pod. `own_pod` is the `namespace/name` of the reconciler's own pod."""
    if own_pod is not None and pod.key == own_pod:
        return Tier.OWN
    daemonset = pod.owner is not None and pod.owner.kind == "DaemonSet"
    if pod.priority_class in _CRITICAL:
        return Tier.CRITICAL_DAEMONSET if daemonset else Tier.CRITICAL
    return Tier.DAEMONSET if daemonset else Tier.ORDINARY
