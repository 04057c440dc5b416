"""Why an eviction is refused: budgets, singletons, webhooks.

Source of what the API server checks: kubernetes pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

from reconciler.drain.workloads import workload_of
from reconciler.model import limits
from reconciler.model.findings import FindingCode, Severity
from reconciler.model.keys import keys_of
from reconciler.model.limits import count_of
from reconciler.model.moments import shifted, to_text
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.selector import Operator
from reconciler.model.values import replace

MOST_COVERING = 10
"""Budgets of one pod that are found. The API server refuses its eviction from the second one on."""

_VALUES = 8


def asks_none(pod: Pod) -> bool:
    """Whether no budget applies: the pod has finished, never started, or is being deleted (canIgnorePDB)."""
    return pod.finished or pod.phase == "Pending" or pod.deleting_until is not None


def asks(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the eviction of the pod uses one of the budget's allowed disruptions.

    The eviction of an unready pod uses none with AlwaysAllow. With IfHealthyBudget, and by default, it uses
    none while enough other pods are healthy.
    """
    if pod.ready:
        return True
    return not (budget.unhealthy_always or (budget.healthy >= budget.desired > 0))


def would_refuse(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the server would refuse the eviction now because of this budget."""
    return budget.allowed <= 0 and asks(budget, pod)


def never_allows(budget: PodDisruptionBudget) -> bool:
    """Whether the budget allows no disruption even while all of its pods are healthy."""
    return bool(budget.failed) or (bool(budget.expected) and budget.desired >= budget.expected)


_UNPLACED = 2
"""Pods without a node that a budget names."""


def with_unplaced(
    budgets: Iterable[PodDisruptionBudget], pods: Iterable[Pod]
) -> tuple[PodDisruptionBudget, ...]:
    """Return the budgets; those that allow no disruption name which of these pods they count without a node.

    Such a pod keeps a budget from the next eviction, and is on no node whose pods a drain reads.
    """
    waiting = [pod for pod in pods if pod.unplaced]
    return tuple(
        replace(
            budget,
            unplaced="; ".join(
                f"{pod.key}, which it counts, has no node: {pod.unplaced}"
                for pod in list(filter(budget.covers, waiting))[:_UNPLACED]
            ),
        )
        if waiting and budget.allowed <= 0
        else budget
        for budget in budgets
    )


class BudgetIndex:
    """Which budgets select a pod, without a look at every budget of its namespace."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        """Index the budgets by a label that their pods must have; the others only by namespace."""
        self._by_label: dict[tuple[str, ...], list[PodDisruptionBudget]] = {}
        self._keys: dict[str, set[str]] = {}
        for budget in budgets:
            for label in _labels(budget):
                self._by_label.setdefault((budget.namespace, *label), []).append(budget)
                self._keys.setdefault(budget.namespace, set()).update(label[:1])

    def covering(self, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        """Return the budgets that select the pod, sorted by namespace and name; of very many, the first."""
        keys, labels = self._keys.get(pod.namespace), pod.labels
        if keys is None:
            return ()
        places: list[tuple[str, ...]] = [()]
        # Few labels are those of budgets, and a pod has few labels where a namespace has many budgets.
        for key in keys.intersection(labels):
            places += ((key,), (key, labels[key]))
        candidates = (one for place in places for one in self._by_label.get((pod.namespace, *place), ()))
        found = islice((candidate for candidate in candidates if candidate.covers(pod)), MOST_COVERING)
        return tuple(sorted(found, key=lambda budget: budget.key))


def _labels(budget: PodDisruptionBudget) -> set[tuple[str, ...]]:
    """Return labels of which each pod of the budget has one: a key and a value, only a key, or neither."""
    if budget.selector is None:
        return set()
    keys: set[tuple[str, ...]] = {()}
    for requirement in budget.selector.requirements:
        if requirement.operator == Operator.IN and len(requirement.values) <= _VALUES:
            return {(requirement.key, value) for value in requirement.values}
        if requirement.operator in (Operator.IN, Operator.EXISTS):
            keys = {(requirement.key,)}
    return keys


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


_LONGEST = 300
_DENIES = re.compile(
    r"admission webhook \"([^\"]+)\" denied the request(?:: (.*)| without explanation)", re.DOTALL
)
_POLICY = re.compile(
    r"ValidatingAdmissionPolicy '([^']+)'(?: with binding '[^']*')? denied request:? ?(.*)", re.DOTALL
)
_FAILS = re.compile(r"failed calling webhook \"([^\"]+)\":? ?(.*)", re.DOTALL)
_FORMS = (
    (_DENIES, "webhook", True),
    (_POLICY, "ValidatingAdmissionPolicy", True),
    (_FAILS, "webhook", False),
)


class Denial(Struct, frozen=True):
    """A request that a webhook or a policy denied.

    `by` names it: `webhook drain-cleaner.strimzi.io`. `words` is its reason in one line, at most 300
    characters. `reached` is False if the API server could not call the webhook, and therefore refuses.
    """

    by: str
    words: str
    reached: bool = True


def read_denial(message: str) -> Denial | None:
    """Return who denied a request, from the API server's message; None if the answer is its own."""
    for pattern, what, reached in _FORMS:
        found = pattern.search(message)
        if found is not None:
            words = " ".join((found[2] or "no reason is given").split())
            name = limits.text(found[1], limits.NAME)
            return Denial(f"{what} {name}", limits.text(words, _LONGEST), reached)
    return None


STUCK_AFTER = timedelta(minutes=10)
"""A pod that still exists so long after the end of its grace period does not end by itself."""

_NAMED = 5


class Refusal(NamedTuple):
    """Why a pod stays.

    `because` and `remedy` name no pod. `budgets` are those that refuse its eviction, as `namespace/name`. A
    `severity` of NOTICE: the Deployment of the pod is restarted instead. Each of the `commands` is a remedy.
    """

    code: FindingCode
    severity: Severity
    because: str
    remedy: str
    budgets: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def refusal(
    pod: Pod, covering: Sequence[PodDisruptionBudget], *, prefix: str, restart_singletons: bool
) -> Refusal | None:
    """Return why the API server refuses the eviction of the pod now, None if it does not.

    `covering` are the budgets that select the pod. `restart_singletons` is the setting of the drain, and
    `prefix` that of our keys.
    """
    if asks_none(pod):
        return None
    keys = tuple(budget.key for budget in covering)
    if len(covering) > 1:
        more = " and more" if len(keys) > _NAMED else ""
        because = (
            f"it is selected by several PodDisruptionBudgets ({', '.join(keys[:_NAMED])}{more}), and the API"
            " server refuses to evict such a pod"
        )
        remedy = "Change the selectors, so that one PodDisruptionBudget selects each pod."
        return Refusal(FindingCode.TWO_BUDGETS, Severity.BLOCKS, because, remedy, keys)
    if not covering or not would_refuse(covering[0], pod):
        return None
    budget = covering[0]
    # Whether a volume can be mounted twice is known only when the Deployment is read.
    restarted = not pod.spec.claims and may_be_restarted(
        pod, covering, prefix=prefix, everywhere=restart_singletons
    )
    if restarted and pod.ready and never_allows(budget):
        because = (
            f"PodDisruptionBudget {budget.key} never allows the eviction of the only pod; its Deployment is"
            " restarted instead, if its strategy allows that"
        )
        remedy = "Keep maxSurge at 1 or more and maxUnavailable at 0, or run at least two replicas."
        return Refusal(FindingCode.SINGLETON, Severity.NOTICE, because, remedy, keys)
    code, because, remedy = _reason(pod, budget)
    return Refusal(code, Severity.BLOCKS, because, remedy, keys, tuple(_commands(pod, budget)))


def never_ends(pod: Pod, now: datetime) -> Refusal | None:
    """Return why a pod that is being deleted does not end by itself, None while it may; `now` is UTC."""
    end = pod.deleting_until
    if end is None or now < shifted(end, STUCK_AFTER):
        return None
    because = f"it is being deleted, and its grace period ended at {to_text(end)}"
    remedy = "Find out what keeps it: a finalizer, a volume, or its kubelet."
    return Refusal(FindingCode.TERMINATING, Severity.BLOCKS, because, remedy)


_SCALED = ("Deployment", "StatefulSet", "ReplicaSet")


def _commands(pod: Pod, budget: PodDisruptionBudget) -> Iterator[str]:
    """Yield the commands of which each lets the budget allow an eviction, or shows why it allows none."""
    if not pod.ready or budget.failed or not never_allows(budget):
        yield f"kubectl -n {budget.namespace} describe pdb {budget.name}"
        return
    workload = workload_of(pod)
    # Anyone who may write a pod may write any text as its owner.
    known = workload.kind in _SCALED and limits.is_object_name(workload.name)
    if known and budget.more_replicas_help:
        replicas = budget.desired + 1
        named = f"{workload.kind.lower()} {workload.name}"
        yield f"kubectl -n {pod.namespace} scale {named} --replicas {replicas}"
    limit = '{"spec":{"minAvailable":null,"maxUnavailable":1}}'
    yield f"kubectl -n {budget.namespace} patch pdb {budget.name} --type merge -p '{limit}'"


_COUNTABLE = (
    "Let the PodDisruptionBudget require a number of pods (minAvailable: 1, not a percentage and not"
    " maxUnavailable), which needs no controller that can be scaled."
)


FITS_NOWHERE = (
    "Add or uncordon a node on which it can run, change its node selector, affinity or tolerations, or check"
    " that an autoscaler may add a node for it."
)
"""What helps a pod that can run on no node."""


def _reason(pod: Pod, budget: PodDisruptionBudget) -> tuple[FindingCode, str, str]:
    named = f"PodDisruptionBudget {budget.key}"
    if budget.failed:
        because = f"{named} selects it, and its controller can't count the pods: {budget.failed}"
        return FindingCode.BUDGET_UNCOUNTED, because, _COUNTABLE
    if budget.expected <= 0:
        because = f"{named} selects it, but counts no pods, so it allows no eviction"
        return (
            FindingCode.BUDGET_UNCOUNTED,
            because,
            f"Wait until it is counted. If it stays so: {_COUNTABLE}",
        )
    if not pod.ready and never_allows(budget):
        because = (
            f"{named} requires {budget.desired} of {budget.expected} healthy pods; the pod is not ready, and"
            " without unhealthyPodEvictionPolicy: AlwaysAllow it is never evicted"
        )
        remedy = "Set unhealthyPodEvictionPolicy: AlwaysAllow on the PodDisruptionBudget."
        return FindingCode.BUDGET_NEVER, because, remedy
    if never_allows(budget):
        have = "is" if budget.expected == 1 else "are"
        because = (
            f"{named} requires {count_of(budget.desired, 'healthy pod')}, and there {have} only "
            f"{budget.expected} in all, so it never allows"
            " an eviction"
        )
        let = "let it allow one disruption (maxUnavailable: 1)"
        more = f"Run more replicas than it requires, or {let}" if budget.more_replicas_help else f"L{let[1:]}"
        also = ", and repair the pods that are not healthy" if budget.healthy < budget.expected else ""
        return FindingCode.BUDGET_NEVER, because, f"{more}{also}."
    counts = f"{named} requires {budget.desired} healthy pods and has {budget.healthy} of {budget.expected}"
    if pod.ready:
        because = f"{counts}, so it allows no eviction now"
        remedy = "Repair the pods that are not healthy, or wait until they are."
        if budget.unplaced:
            because, remedy = f"{because}; {budget.unplaced}", FITS_NOWHERE
        return FindingCode.BUDGET_NOW, because, remedy
    because = (
        f"{counts}; the pod is not ready, and without unhealthyPodEvictionPolicy: AlwaysAllow it can be"
        " evicted only while enough others are healthy"
    )
    remedy = "Repair the pods, or set unhealthyPodEvictionPolicy: AlwaysAllow on the PodDisruptionBudget."
    return FindingCode.BUDGET_NOW, because, remedy
