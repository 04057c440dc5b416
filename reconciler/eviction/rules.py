"""Rules for pods, like Cluster API's MachineDrainRule, and drain labels of the pod itself.

Source: cluster-api, core/reconcilers/machine/drain and the MachineDrainRule proposal. If several rules
select a pod, the first one by name applies. A label on the pod wins over all rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.model.drains import Behavior, PodRule
from reconciler.model.keys import OwnKeys
from reconciler.model.pod import Pod

CAPI_LABEL = "cluster.x-k8s.io/drain"
_SAYS = {"skip": Behavior.SKIP, "wait-completed": Behavior.WAIT_COMPLETED}


def rule_for(
    pod: Pod, rules: Iterable[PodRule], namespaces: Mapping[str, Mapping[str, str]]
) -> PodRule | None:
    """Return the rule for a pod: the first one by name that selects it, or None."""
    matching = (rule for rule in rules if _selects(rule, pod, namespaces))
    return min(matching, key=lambda rule: rule.name, default=None)


def own_word(pod: Pod, prefix: str) -> tuple[Behavior, str] | None:
    """Return the behavior that the pod's label asks for, and the label. Our keys win over Cluster API's."""
    ours = OwnKeys(prefix).drain
    for kind, key, value in (
        ("label", ours, pod.labels.get(ours)),
        ("annotation", ours, pod.annotations.get(ours)),
        ("label", CAPI_LABEL, pod.labels.get(CAPI_LABEL)),
    ):
        behavior = _SAYS.get((value or "").lower())
        if behavior is not None:
            return behavior, f"its {kind} {key}={value}"
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
