"""Checks of the node: its labels, annotations, conditions, Hypervisor and hooks, and what people say."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import partial

from reconciler.features.workflows.check_types import (
    AffinityCheck,
    AnnotationCheck,
    ConditionCheck,
    HooksDoneCheck,
    HypervisorCheck,
    HypervisorConditionCheck,
    KeylessCheck,
    KubernikusCountCheck,
    LabelCheck,
    ScheduledEventCheck,
)
from reconciler.features.workflows.reading import Needs
from reconciler.features.workflows.services import KubernikusAnswer, KubernikusQuery, Value
from reconciler.features.workflows.situation import Fleet, WorkflowSituation, check_type
from reconciler.model import limits
from reconciler.model.clocks import own_times
from reconciler.model.holds import NOBODY, SETTINGS
from reconciler.model.instructions import instructions_of
from reconciler.model.limits import count_of, first_of
from reconciler.model.moments import shifted, to_text
from reconciler.model.pod import Pod
from reconciler.model.record import State
from reconciler.model.selector import Operator, Requirement
from reconciler.model.steps import holders_of
from reconciler.profiles.vocabulary import CheckResult, failed, passed, unknown

_OPERATOR = "whoever runs the hypervisor operator: `kubectl get hypervisors.kvm.cloud.sap {node} -o yaml`"


def _reads_label(config: LabelCheck) -> Needs:
    return Needs(labels=frozenset({config.key}))


@check_type(
    "anyLabel", LabelCheck, needs=_reads_label, who="whoever labels nodes: `kubectl get nodes --show-labels`"
)
def any_label(config: LabelCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when a node of the cluster has the label, with the value if one is set."""
    wanted = f"{config.key}={config.value}" if config.value else config.key
    name = situation.members.once(
        ("anyLabel", config.key, config.value), partial(_first, config, situation.members)
    )
    if not name:
        return failed(f"no node has the label {wanted}")
    return passed(f"node {name} has the label {wanted}")


def _first(config: LabelCheck, members: Fleet) -> str:
    for member in members:
        value = member.node.labels.get(config.key)
        if value is not None and config.value in ("", value):
            return member.node.name
    return ""


def _compared(
    what: str, value: str | None, wanted: str, show: Callable[[str], str] = str, whose: str = ""
) -> CheckResult:
    """Return whether something has a value, and the wanted one if that is not empty."""
    if value is None:
        return failed(f"the {whose or 'node'} has no {what}")
    said = f"the {what}{whose and f' of the {whose}'} is {show(value)}"
    if wanted and value != wanted:
        return failed(f"{said}, not {wanted if show is str else repr(wanted)}")
    return passed(said)


@check_type(
    "hasLabel",
    LabelCheck,
    needs=_reads_label,
    who="whoever labels nodes: `kubectl label node {node} KEY=VALUE`",
)
def has_label(config: LabelCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when the node has the label, with the value if one is set."""
    return _compared(f"label {config.key}", situation.node.labels.get(config.key), config.value, repr)


@check_type(
    "hasAnnotation",
    AnnotationCheck,
    needs=lambda config: Needs(annotations=frozenset({config.key})),
    who="whoever annotates nodes: `kubectl annotate node {node} KEY=VALUE`",
)
def has_annotation(config: AnnotationCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when the node has the annotation, with the value if one is set."""
    value = situation.node.annotations.get(config.key)
    return _compared(f"annotation {config.key}", value, config.value, limits.excerpt)


@check_type(
    "condition",
    ConditionCheck,
    needs=lambda config: Needs(conditions=frozenset({config.type})),
    who="whoever reports the condition: `kubectl describe node {node}`",
)
def condition(config: ConditionCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when the node has the condition with this status; one that the node does not have fails."""
    found = situation.node.condition(config.type)
    return _compared(f"condition {config.type}", found.status if found else None, config.status)


@check_type(
    "hypervisorCondition", HypervisorConditionCheck, needs=lambda _: Needs(hypervisors=True), who=_OPERATOR
)
def hypervisor_condition(config: HypervisorConditionCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when the Hypervisor has the condition with this status; one that it does not have fails."""
    hypervisor, why = situation.read.hypervisor(situation.node.name)
    if hypervisor is None:
        return unknown(why)
    if hypervisor.conditions is None:
        return unknown("the conditions of the Hypervisor can't be read")
    status = hypervisor.conditions.get(config.type)
    return _compared(f"condition {config.type}", status, config.status, whose="Hypervisor")


@check_type("checkHypervisor", HypervisorCheck, needs=lambda _: Needs(hypervisors=True), who=_OPERATOR)
def check_hypervisor(config: HypervisorCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when all fields have their values. A field that can't be read is unknown."""
    found, why = situation.read.hypervisor(situation.node.name)
    if found is None:
        return unknown(why)
    others = []
    for key, value in config.fields.items():
        seen = found.status[key]
        if seen is None:
            return unknown(f"the field status.{key} of the Hypervisor is of another type than expected")
        if seen != value:
            others.append(f"{key} is {_shown(seen)}, not {_shown(value)}")
    if others:
        return failed(f"of the Hypervisor, {', '.join(others)}")
    return passed(f"of the Hypervisor, {', '.join(f'{k} is {_shown(v)}' for k, v in config.fields.items())}")


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return limits.text(f"[{', '.join(value)}]", 100)
    return limits.excerpt(value)


def _query(config: KubernikusCountCheck) -> KubernikusQuery:
    url, secret = config.url or "", config.cloud_provider_secret
    if secret.name and secret.namespace:
        return KubernikusQuery(config.cluster, secret.namespace, secret.name, url=url)
    return KubernikusQuery(config.cluster, file=config.credentials_file, url=url)


@check_type(
    "kubernikusCount",
    KubernikusCountCheck,
    needs=lambda config: Needs(kubernikus=frozenset({_query(config)})),
    who="the administrator of the node pools in Kubernikus: `kubectl get nodes` shows which nodes are there",
)
def kubernikus_count(config: KubernikusCountCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when the cluster has at least the nodes of all node pools. Without an answer, it is unknown."""
    answer = situation.read.kubernikus.get(_query(config), KubernikusAnswer(problem="it was not asked"))
    if answer.problem:
        return unknown(f"Kubernikus, {config.cluster}: {answer.problem}")
    count = len(situation.members)
    said = f"the cluster has {count_of(count, 'node')}, and its node pools have {answer.nodes}"
    return passed(said) if count >= answer.nodes else failed(said)


@check_type(
    "scheduledEvent",
    ScheduledEventCheck,
    who=f"{NOBODY} when the platform announces maintenance",
    by_itself=True,
)
def scheduled_event(config: ScheduledEventCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when a source reports an event of the node that counts.

    Without one, a source that can't be read makes the answer unknown: it may hide an event.
    """
    platform = situation.platform
    if platform is None:
        return unknown("the events of the platform are not read")
    counted = [
        one
        for one in platform.judged
        if (not config.kinds or one.event.kind in config.kinds) and (one.asks or not config.drains)
    ]
    if counted:
        return passed("; ".join(dict.fromkeys(one.because for one in counted)))
    if situation.silent:
        return unknown("; ".join(situation.silent))
    other = "; ".join(dict.fromkeys(one.because for one in platform.judged))
    later = min((one.until for one in platform.judged if one.until), default=None)
    return failed(f"no event counts: {other}" if other else "no event is reported", later)


@check_type(
    "affinity",
    AffinityCheck,
    needs=lambda _: Needs(all_pods=True),
    who=f"{NOBODY} when the other nodes are done; or {SETTINGS}: `minOperational` of the check",
    by_itself=True,
)
def affinity(config: AffinityCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass unless this node has such a pod, and another node that requires maintenance has none.

    Only nodes with the same profile are compared. It has an answer in the state maintenance-required only.
    """
    if situation.state is not State.REQUIRED:
        return unknown(f"the check affinity is for the state {State.REQUIRED}; this one is {situation.state}")
    key = ("affinity", situation.profile)
    operational = situation.members.once(key, partial(_operational, situation.profile, situation.members))
    if config.min_operational and operational >= config.min_operational:
        return passed(
            f"{count_of(operational, 'node', 'are')} operational, and {config.min_operational} are enough"
        )
    if situation.read.unread_pods:
        return unknown(f"the pods can't be read: {situation.read.unread_pods}")
    wanted = Requirement(situation.keys.maintenance_state, Operator.IN, (State.OPERATIONAL.value,))
    choosy = situation.read.of_pods(("affinity", wanted), partial(_nodes_with, wanted, situation.read.pods))
    if situation.node.name not in choosy:
        return passed("no pod of the node prefers operational nodes")
    key = ("affinity first", situation.profile)
    first = situation.members.once(
        key, partial(_affinity_first, situation.profile, situation.members, choosy)
    )
    if first:
        return failed(f"pods of the node prefer operational nodes; node {first} has none, and goes first")
    return passed("every other node that requires maintenance has pods that prefer operational nodes, too")


def _operational(profile: str, members: Fleet) -> int:
    kept = (member.data.profiles.get(profile) for member in members)
    return sum(data is not None and data.current is State.OPERATIONAL for data in kept)


def _affinity_first(profile: str, members: Fleet, choosy: Container[str]) -> str:
    for member in members:
        data = member.data.profiles.get(profile)
        if data is not None and data.current is State.REQUIRED and member.node.name not in choosy:
            return member.node.name
    return ""


def _nodes_with(wanted: Requirement, pods: Mapping[str, tuple[Pod, ...]]) -> frozenset[str]:
    return frozenset(
        name
        for name, there in pods.items()
        if any(
            not pod.finished and pod.placement is not None and wanted in pod.placement.prefers
            for pod in there
        )
    )


@check_type("approved", KeylessCheck, who="whoever may approve it: `reconciler approve {node}{config}`")
def approved(_config: KeylessCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when `reconciler approve` was called for the node after the profile entered its state.

    So an approval is for one run of the workflow. One that can't be read, or whose time lies in the future,
    approves nothing.
    """
    prefix = situation.keys.prefix
    found = instructions_of(situation.node, prefix, situation.now).permission("approved")
    command = situation.keys.permit("approve", situation.node.name)
    if found is None:
        return failed(f"nobody has approved it yet; {command} does")
    word = found.word
    if word.problem:
        return unknown(f"{word.problem}; {command} replaces it")
    if not found.for_profiles:
        return failed(f"the approval {word.once} is for events of the platform only; {command} renews it")
    if word.at is None or word.at > own_times(situation.now).latest:
        return failed(f"the approval has no time, or one in the future; {command} renews it")
    if word.at < situation.since:
        older = f"is older than the state {situation.state} (since {to_text(situation.since)})"
        return failed(f"the approval {word.once} {older}; {command} renews it")
    return passed(f"approved {word.once}", word.until)


@check_type("notAllowed", KeylessCheck, who=f"{NOBODY} at that moment; or {SETTINGS}: `notAllowed`")
def not_allowed(_config: KeylessCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass while an entry of `notAllowed` applies.

    A transition that must not happen then has a `!` before it.
    """
    if situation.platform is None:
        return unknown("`notAllowed` of the settings is not read")
    openness = situation.platform.settings.calendar.at(situation.now, situation.node.labels)
    if openness.not_allowed is None:
        return failed("no entry of notAllowed applies", openness.changes_at)
    return passed(openness.because, openness.changes_at)


@check_type(
    "hooksDone",
    HooksDoneCheck,
    who="the owner of the hook: `kubectl annotate node {node} {keys}/STEP.NAME-` removes one",
)
def hooks_done(config: HooksDoneCheck, situation: WorkflowSituation) -> CheckResult:
    """Pass when the node has no annotation `<prefix>/<step>.<name>`, and at the end of the time limit.

    The limit counts from the moment at which the profile entered its state. Hooks hold nothing either once an
    event of the platform can't wait any longer.
    """
    found = [
        hook
        for hook in holders_of(situation.node.annotations, situation.keys.prefix)
        if hook.step is config.step
    ]
    if not found:
        return passed(f"no hook holds {config.step.words}")
    names = first_of([str(hook) for hook in found])
    until = shifted(situation.since, config.timeout)
    if until <= situation.now:
        return passed(f"the time of hook {names} was over at {to_text(until)}")
    if situation.platform is not None and any(
        one.cannot_wait(situation.now) for one in situation.platform.judged
    ):
        return passed(f"hook {names} is there, but an event of the platform can't wait")
    ends = f"until its owner removes the annotation, {to_text(until)} at most"
    return failed(f"hook {names} holds {config.step.words} {ends}", until)
