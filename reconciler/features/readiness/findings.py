"""Findings: what readiness knows of a pod, a workload and a cluster, and what is found of one pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from reconciler.drain import Action, PodDeleteStatus
from reconciler.drain.refusal import never_ends, refusal
from reconciler.drain.rules import others_word, own_word
from reconciler.drain.workloads import serves, workload_of
from reconciler.model.content import SettingsVersion
from reconciler.model.drains import DrainOrder, Refusals
from reconciler.model.findings import FindingCode, Severity, Workload
from reconciler.model.limits import quoted
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.problems import Unseen
from reconciler.model.values import replace


class Finding(Struct, frozen=True):
    """One finding about some pods of a workload.

    `pods` and `nodes` are sorted names, `nodes` those on which the pods are. `about` are the objects that
    cause it: PodDisruptionBudgets as `namespace/name`, or a webhook.
    """

    code: FindingCode
    severity: Severity
    because: str
    remedy: str
    pods: tuple[str, ...]
    nodes: tuple[str, ...]
    about: tuple[str, ...] = ()


class WorkloadFindings(Struct, frozen=True):
    """The findings about one workload, the worst first; there is at least one."""

    workload: Workload
    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        """The worst severity of its findings."""
        return self.findings[0].severity


class PeopleCode(StrEnum):
    """How people keep a drain from its begin."""

    HOLD = "hold"
    DEFERRAL = "deferral"
    APPROVAL = "approval"


class KeptByPeople(Struct, frozen=True):
    """Why a person keeps these nodes, sorted by name, from a drain; `until` (UTC) is None without an end."""

    code: PeopleCode
    because: str
    remedy: str
    until: datetime | None
    nodes: tuple[str, ...]


class WebhookRefusal(Struct, frozen=True):
    """The admission webhook or policy `webhook` refused the dry-run eviction of a pod, or gave no answer.

    `reached` is False if the API server could not call the webhook, and therefore refuses.
    """

    namespace: str
    pod: str
    webhook: str
    message: str
    reached: bool = True


class WebhookAnswers(Struct, frozen=True):
    """The answers to dry-run evictions: `asked` of them, `left` not requested, `silent` without an answer.

    `needs` is the permission that is missing, `because` the answer of the server about it.
    """

    asked: int = 0
    left: int = 0
    silent: int = 0
    refusals: tuple[WebhookRefusal, ...] = ()
    needs: str = ""
    because: str = ""


class Readiness(Struct, frozen=True):
    """The whole answer.

    `nodes` and `pods` are how many were judged, `blocked` the names of the nodes that would not drain.
    `kind` is the kind of event that was assumed. `unsure` says that a read failed without which nobody knows
    whether a drain would end. `people` is what keeps drains from their begin, which is no finding about a
    workload. `now` is UTC, for people it is shown in `time_zone`.
    """

    now: datetime
    kind: str
    nodes: int
    pods: int
    blocked: tuple[str, ...]
    workloads: tuple[WorkloadFindings, ...]
    notes: tuple[str, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    unsure: bool = False
    time_zone: str = "UTC"
    settings: SettingsVersion | None = None
    people: tuple[KeptByPeople, ...] = ()

    @property
    def stops(self) -> bool:
        """Whether something would stop a drain."""
        return bool(self.blocked)

    def of_namespace(self, namespace: str) -> Readiness:
        """Return what is found of the workloads of a namespace, and the nodes that these block."""
        workloads = tuple(each for each in self.workloads if each.workload.namespace == namespace)
        blocked = {
            node
            for workload in workloads
            for finding in workload.findings
            if finding.severity is Severity.BLOCKS
            for node in finding.nodes
        }
        note = f"only the workloads of the namespace {quoted(namespace)} are shown"
        return replace(
            self,
            workloads=workloads,
            blocked=tuple(name for name in self.blocked if name in blocked),
            notes=(*self.notes, note),
        )


class PodFinding(NamedTuple):
    """One finding about one pod.

    `about` are the objects that cause it. The findings about a workload with the same `code` and `about` are
    shown as one, so `because` and `remedy` name no pod.
    """

    pod: Pod
    code: FindingCode
    severity: Severity
    because: str
    remedy: str
    about: tuple[str, ...] = ()


REFUSALS = Refusals("emptyDir", "unmanaged")
"""Reasons by which this file knows which filter keeps a pod; people never see them."""


class Policy(Struct, frozen=True):
    """What the settings mean for the pods of one node: its drain, and the settings that evict what is kept.

    The order's options have `REFUSALS`. `evict_empty_dir` is such as `events.Reboot.emptyDir: Evict`.
    """

    order: DrainOrder
    evict_empty_dir: str
    evict_unmanaged: str


def staying(judged: PodDeleteStatus, policy: Policy, now: datetime) -> Iterator[PodFinding]:
    """Yield why the pod stays on the node, or what the drain waits for; `now` is UTC."""
    pod = judged.pod
    if judged.action is Action.KEEP:
        for reason in judged.reasons:
            yield _kept(pod, reason, policy)
    elif judged.spared or _skips_itself(judged, policy):
        because = f"{'; '.join(judged.reasons)}, so it stays on the node and goes down with it"
        own = own_word(pod, policy.order.options.prefix) is not None
        where = "Remove this from the pod" if own else "Change the rule in drain.skipPods or drain.rules"
        remedy = f"{where}, so that a drain evicts it."
        yield PodFinding(pod, FindingCode.SKIPPED, Severity.OUTAGE, because, remedy, judged.reasons)
    elif judged.action is Action.WAIT and pod.deleting_until is None:
        yield _waits(judged, policy)
    elif judged.action is Action.WAIT:
        found = never_ends(pod, now)
        if found is not None:
            yield PodFinding(pod, found.code, found.severity, found.because, found.remedy)


def _kept(pod: Pod, reason: str, policy: Policy) -> PodFinding:
    stays = "so it stays on the node and goes down with it"
    if reason == REFUSALS.empty_dir:
        because = f"it has local storage (emptyDir), {stays}"
        remedy = f"Set {policy.evict_empty_dir} to evict it; the data in the emptyDir is then lost."
        return PodFinding(pod, FindingCode.EMPTY_DIR, Severity.OUTAGE, because, remedy)
    because = f"it has no controller, {stays}"
    remedy = f"Give it a controller such as a Deployment, or set {policy.evict_unmanaged} to evict it."
    return PodFinding(pod, FindingCode.UNMANAGED, Severity.OUTAGE, because, remedy)


def _skips_itself(judged: PodDeleteStatus, policy: Policy) -> bool:
    """Whether the pod's own label skips it. It stays, also if drain.podsMayWait no longer spares it."""
    word = own_word(judged.pod, policy.order.options.prefix)
    if word is None or judged.action is not Action.SKIP or judged.pod.finished:
        return False
    return any(reason.startswith(word[1]) for reason in judged.reasons)


def _waits(judged: PodDeleteStatus, policy: Policy) -> PodFinding:
    word = own_word(judged.pod, policy.order.options.prefix)
    who = word[1] if word is not None else others_word(judged.pod)
    if not any(who and reason.startswith(who) for reason in judged.reasons):
        because = "; ".join(judged.reasons)
        remedy = "Change the rule in drain.rules if the pod never completes by itself."
        return PodFinding(judged.pod, FindingCode.WAITS, Severity.NOTICE, because, remedy, judged.reasons)
    because = f"{who} says to wait until it has completed, for as long as drain.podsMayWait at most"
    remedy = "Remove this from the pod if it never completes by itself."
    return PodFinding(judged.pod, FindingCode.WAITS, Severity.NOTICE, because, remedy, (who,))


def leaving(
    pod: Pod, covering: Sequence[PodDisruptionBudget], policy: Policy, siblings: int
) -> Iterator[PodFinding]:
    """Yield what refuses the eviction of a pod that a drain would evict, and what it costs.

    `covering` are the budgets that select it. `siblings` is how many pods its workload runs in the cluster.
    """
    if pod.finished:
        return
    order = policy.order
    refused = refusal(pod, covering, prefix=order.options.prefix, restart_singletons=order.restart_singletons)
    restarts = refused is not None and refused.code is FindingCode.SINGLETON
    if refused is not None:
        yield PodFinding(
            pod, refused.code, refused.severity, refused.because, refused.remedy, refused.budgets
        )
    if pod.owner is None:
        because = "it has no controller, so nothing creates it again after its eviction"
        remedy = "Give it a controller such as a Deployment."
        yield PodFinding(pod, FindingCode.UNMANAGED, Severity.OUTAGE, because, remedy)
    elif siblings == 1 and serves(workload_of(pod)) and not restarts:
        because = "it is the only pod of its workload, so its eviction interrupts the service"
        yield PodFinding(pod, FindingCode.SINGLETON, Severity.NOTICE, because, "Run at least two replicas.")
