"""Rules for pods, like Cluster API's MachineDrainRule, and what a pod itself asks for.

Source: cluster-api, core/reconcilers/machine/drain and the MachineDrainRule proposal. If several rules
select a pod, the first one by name applies. A drain label on the pod wins over all rules.

What a pod tells an autoscaler is weaker than a rule. Karpenter does not evict a pod whose annotation
`karpenter.sh/do-not-disrupt` is `true`, and waits for it (karpenter, pkg/utils/pod/scheduling.go, IsEvictable
and IsDrainable). With a duration it does so while the pod is younger. The cluster autoscaler waits for a pod
whose annotation `cluster-autoscaler.kubernetes.io/safe-to-evict` is `on-completion`; `false` only keeps it
from scaling down (autoscaler, cluster-autoscaler/simulator/drainability/rules).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from reconciler.calendar.values import parse_duration
from reconciler.model.drains import Behavior, PodRule
from reconciler.model.keys import keys_of
from reconciler.model.moments import shifted
from reconciler.model.pod import DO_NOT_DISRUPT, ON_COMPLETION, SAFE_TO_EVICT, Pod

CAPI_LABEL = "cluster.x-k8s.io/drain"
_SAYS = {"skip": Behavior.SKIP, "wait-completed": Behavior.WAIT_COMPLETED}
_WAITS = {"true": Behavior.WAIT_COMPLETED}
_ASKS_OTHERS = ((DO_NOT_DISRUPT, "true"), (SAFE_TO_EVICT, ON_COMPLETION))


def rule_for(
    pod: Pod, rules: Iterable[PodRule], namespaces: Mapping[str, Mapping[str, str]]
) -> PodRule | None:
    """Return the rule for a pod: the first one by name that selects it, or None."""
    matching = (rule for rule in rules if _selects(rule, pod, namespaces))
    return min(matching, key=lambda rule: rule.name, default=None)


def own_word(pod: Pod, prefix: str) -> tuple[Behavior, str] | None:
    """Return the behavior that the pod's label asks for, and the label. Our keys win over Cluster API's."""
    keys = keys_of(prefix)
    ours, wait = keys.drain, keys.wait_completed
    for kind, key, value, says in (
        ("label", ours, pod.labels.get(ours), _SAYS),
        ("annotation", ours, pod.annotations.get(ours), _SAYS),
        ("label", wait, pod.labels.get(wait), _WAITS),
        ("annotation", wait, pod.annotations.get(wait), _WAITS),
        ("label", CAPI_LABEL, pod.labels.get(CAPI_LABEL), _SAYS),
    ):
        behavior = says.get((value or "").lower())
        if behavior is not None:
            return behavior, f"its {kind} {key}={value}"
    return None


def others_word(pod: Pod) -> str:
    """Return the annotation by which a pod asks an autoscaler to let it finish, empty if there is none."""
    for key, value in _ASKS_OTHERS:
        if pod.annotations.get(key) == value:
            return f"its annotation {key}={value}"
    if _protected_for(pod) is not None:
        return f"its annotation {DO_NOT_DISRUPT}={pod.annotations[DO_NOT_DISRUPT]}"
    return ""


def others_end(pod: Pod) -> datetime | None:
    """Return when that annotation asks for nothing any more (UTC), None if it says no time.

    Since v1.12, Karpenter counts a duration from the start of the pod, which is seconds after its creation.
    """
    protected = _protected_for(pod)
    return None if protected is None or pod.created is None else shifted(pod.created, protected)


def _protected_for(pod: Pod) -> timedelta | None:
    try:
        return parse_duration(pod.annotations[DO_NOT_DISRUPT])
    except (KeyError, ValueError):
        return None


def _selects(rule: PodRule, pod: Pod, namespaces: Mapping[str, Mapping[str, str]]) -> bool:
    if rule.namespaces is not None and pod.namespace not in rule.namespaces:
        return False
    if rule.namespace_selector is not None and not rule.namespace_selector.matches(
        # Every namespace has this label, so it works even if the namespaces were not read.
        {"kubernetes.io/metadata.name": pod.namespace, **namespaces.get(pod.namespace, {})}
    ):
        return False
    return rule.pods.matches(pod.labels)
