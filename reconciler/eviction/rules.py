"""Rules for pods, as Cluster API's MachineDrainRule has them, and what a pod says about itself.

Source: cluster-api, core/reconcilers/machine/drain and the MachineDrainRule proposal: of several rules that
select a pod the first by name wins; a label on the pod beats them all.
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
    """Return the rule that holds for a pod: the first by name of those that select it."""
    matching = (rule for rule in rules if _selects(rule, pod, namespaces))
    return min(matching, key=lambda rule: rule.name, default=None)


def own_word(pod: Pod, prefix: str) -> tuple[Behavior, str] | None:
    """Return what the pod asks for itself, and in which words; our keys are heard before Cluster API's."""
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
        # The API server puts this label on every namespace, so it can be told without having read any.
        {"kubernetes.io/metadata.name": pod.namespace, **namespaces.get(pod.namespace, {})}
    ):
        return False
    return rule.pods.matches(pod.labels)
