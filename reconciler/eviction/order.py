"""In which order pods go: tiers, then the order that rules give, then the lowest priority first.

The tiers are Karpenter's (pkg/controllers/node/termination/terminator): what others need goes after them.
"""

from __future__ import annotations

from enum import IntEnum

from reconciler.model.pod import Pod

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})


class Tier(IntEnum):
    """A later tier starts when the former one is gone; `OWN` is the pod that we run in."""

    ORDINARY = 0
    DAEMONSET = 1
    CRITICAL = 2
    CRITICAL_DAEMONSET = 3
    OWN = 4


def tier_of(pod: Pod, own_pod: str | None = None) -> Tier:
    """Tell the tier of a pod; `own_pod` is `namespace/name`."""
    if own_pod is not None and pod.key == own_pod:
        return Tier.OWN
    daemonset = pod.owner is not None and pod.owner.kind == "DaemonSet"
    if pod.priority_class in _CRITICAL:
        return Tier.CRITICAL_DAEMONSET if daemonset else Tier.CRITICAL
    return Tier.DAEMONSET if daemonset else Tier.ORDINARY
