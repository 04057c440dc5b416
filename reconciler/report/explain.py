"""Explain: one node or one pod: what is announced, what follows, what blocks it, and who can change that."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial

from reconciler import plugins
from reconciler.calendar.occurrences import FOREVER
from reconciler.drain.prospect import preview_safely
from reconciler.drain.workloads import PEOPLE, owned_by, owner_of
from reconciler.model.drains import Blocker
from reconciler.model.event import REQUEST, Answer, Kind
from reconciler.model.explanation import (
    Examination,
    NodeExplanation,
    Obstacle,
    PodExplanation,
    PodPast,
    SeenEvent,
    SourceAnswer,
)
from reconciler.model.holds import DISMISSED, DRAIN_BLOCKED, LOOKED_AFTER, NOBODY, RECONCILER_RUNS
from reconciler.model.instructions import resume_command
from reconciler.model.keys import DEFAULT_PREFIX, OwnKeys
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.model.node import BY_OTHERS, HOSTED_LABEL, Node
from reconciler.model.plan import BudgetUse, NodePlan, NodeStatus, Plan, PodVerdict, Preview
from reconciler.model.pod import Pod
from reconciler.model.problems import BUDGETS, NAMESPACES, PODS, guarded
from reconciler.model.record import KnownEvent, State
from reconciler.model.schedule import CaseForecast
from reconciler.model.snapshot import NodeAssessment, Snapshot
from reconciler.model.values import replace
from reconciler.profiles import case as cases
from reconciler.profiles.orders import drain_order
from reconciler.report.kinds import hold_kinds
from reconciler.report.moves import move_of
from reconciler.report.standing import ends_by_itself
from reconciler.settings.schema import Settings
from reconciler.starts.budget import pool_of

_PLATFORM = "the platform, which ends the event after its maintenance"
_REQUESTER = "whoever requested it: `reconciler request {node} --cancel{config}` ends it"

_UNUSED = BudgetUse(0, 0)

UNGUARDED = "unguarded"
"""The code of why nobody guards a node."""

FORECAST = "forecast"
"""The code of what keeps a drain from its end as far as the pods show, or of what could not be read."""

MISSED = "missed"
"""The code of a miss that nothing else of the node explains."""

_SAID_BY_UNGUARDED = frozenset({LOOKED_AFTER.code, DISMISSED.code, RECONCILER_RUNS.code, "startsAllowed"})
"""Holds of which the reason why nobody guards the node says more."""


@cache
def _readers() -> Mapping[str, str]:
    """Return who can make a source readable again, by the first part of the names of its readings."""
    return {
        name.partition(":")[0]: source.who
        for module in plugins.modules("source")
        for source in module.SOURCES
        for name in source.reading_names(Settings())
    }


def who_ends(
    code: str, node: str, keys: OwnKeys, *, requested: bool = False, scope: str = "", who: str = ""
) -> str:
    """Return who can end a hold of this code on the node, and how; `who` is what the hold itself says.

    `requested` is whether a person requested the maintenance that has to end, and `scope` that of the hold or
    deferral that a person gave to many nodes, empty for one to the node. The commands name what they
    need where the prefix of the keys is not the default.
    """
    other = keys.prefix != DEFAULT_PREFIX
    parts = {
        "node": node,
        "keys": keys.prefix,
        "release": keys.release(node),
        "resume": resume_command(scope, node),
        "prefix": f" --prefix {keys.prefix}" if other else "",
        "config": " --config FILE" if other else "",
    }
    ends = (_REQUESTER if requested else _PLATFORM).format(**parts)
    if not who:
        kind = hold_kinds().get(code)
        who = kind.who if kind is not None and kind.who else "see docs/holds.md"
    return who.format(**parts, ends=ends)


def _with_commands(obstacles: Iterable[Obstacle], node: str) -> tuple[Obstacle, ...]:
    """Return the obstacles of the node; whoever must act has a command, here and so in every output.

    Where nothing is known to type that ends an obstacle, it is the one that shows the pods and conditions of
    the node.
    """
    shows = f"`kubectl describe node {node}` shows its pods and conditions"
    return tuple(
        obstacle
        if obstacle.by_itself or "`" in obstacle.who
        else replace(obstacle, who=f"{obstacle.who.rstrip('.')}; {shows}")
        for obstacle in obstacles
    )


def who_reads(source: str, node: str) -> str:
    """Return who can make a source readable again, and what to check."""
    return _readers().get(source.partition(":")[0], "the administrator of the cluster").format(node=node)


ASSUMED = Kind.REBOOT
"""The kind for which the drain of a node without an event is explained."""


def explain_node(
    node: Node, found: Examination, assessment: NodeAssessment, settings: Settings, now: datetime
) -> NodeExplanation:
    """Return what happens to the node `now` (UTC), and who can change it.

    The examination has a preview, and the pods of the whole cluster unless they can't be seen.
    """
    plan = plan_of(node, found.plan)
    drain, assumed = _drain(node, plan, found.snapshot, settings, now)
    pods = {pod.key: pod for pod in found.snapshot.pods.get(node.name, ())}
    # Without an event nothing is to be unblocked; the preview says what would block.
    blockers = drain.blockers if drain is not None and not assumed else ()
    unread = plan.schedule is not None and plan.schedule.forecast is CaseForecast.UNKNOWN
    kept = tuple(_kept(plan, settings.keys.names, found.plan.budget))
    unknown = [
        reading for reading in assessment.readings if reading.answer is Answer.UNKNOWN and reading.installed
    ]
    return NodeExplanation(
        plan,
        _unmanaged(node, settings),
        # A cordon in the plan is no news.
        "" if plan.before is State.IN_MAINTENANCE else node.out_of_service,
        tuple(
            SourceAnswer(reading.source, reading.answer.value, reading.because, reading.as_of)
            if reading.installed
            else SourceAnswer(reading.source, "not installed", reading.because)
            for reading in assessment.readings
        ),
        _with_commands(
            (
                # What could not be read for the forecast is among what could not be seen.
                *(each for each in kept if each.code != FORECAST or not unread),
                *(_unread(reading.source, reading.because, node.name) for reading in unknown),
                *(blocked_by(blocker, pods.get(blocker.pod)) for blocker in _each_budget_once(blockers)),
            ),
            node.name,
        ),
        assumed,
        drain,
        _then(node, plan, drain, now),
    )


_PLATFORMS = {"azure": "Azure", "aws": "AWS", "gce": "Google Cloud", "openstack": "OpenStack"}
"""By the begin of a node's provider ID."""

_DOES = {
    Kind.FREEZE: "pauses it",
    Kind.LIVE_MIGRATION: "moves it to another host",
    Kind.REBOOT: "reboots it",
    Kind.REDEPLOY: "moves it to other hardware",
    Kind.PREEMPT: "takes it away",
    Kind.TERMINATE: "deletes it",
    Kind.REBALANCE: "may take it away",
    Kind.UNKNOWN: "does its maintenance",
}


def _then(node: Node, plan: NodePlan, drain: Preview | None, now: datetime) -> str:
    """Return what happens if nobody does anything, empty if nothing is announced that requires a drain."""
    asking = [judged.event for judged in plan.events if judged.asks]
    if not asking:
        return ""
    first = min(asking, key=lambda event: (not event.started, event.not_before or FOREVER))
    what = _DOES[first.kind]
    platform = _PLATFORMS.get(node.provider_id.partition(":")[0].casefold(), "the platform")
    if not first.reports_start:
        platform, what = f"whoever requested the {first.kind}", "may begin"
    date, schedule, outcome = first.not_before, plan.schedule, plan.outcome
    when = f"at {to_text(date)}" if date is not None and date > now else "at any moment"
    if first.started:
        when = "now"
    if first.condition:
        what, platform, when = "stays on it", f"the fault {first.condition}", "until somebody repairs it"
    strikes = f"{platform} {what} {when}"
    if outcome is not None and outcome.drained is not None and plan.before is State.IN_MAINTENANCE:
        return f"{strikes}, and no pod has to leave any more"
    on_track = schedule is not None and schedule.forecast is CaseForecast.ON_TRACK and not schedule.observed
    start = schedule.planned_start if schedule is not None else None
    stay = [pod for pod in drain.pods if pod.action != "skip"] if drain is not None else None
    if on_track and start is not None and plan.unguarded is None:
        begins = f"starts at {to_text(start)}" if start > now else "starts now"
        begins = "has begun" if plan.before is State.IN_MAINTENANCE else begins
        left = [pod for pod in stay or () if pod.action == "keep"]
        if not left:
            return f"nobody has to act: its drain {begins}, and {strikes}"
        return f"its drain {begins}; if nobody acts, {strikes}, with {_pods(left)} on it"
    return f"if nobody acts, {strikes}, with {_pods(stay)} on it"


def _pods(pods: Sequence[PodVerdict] | None) -> str:
    """Return how many pods these are, None if that is not known."""
    if pods is None:
        return "its pods"
    return count_of(len(pods), "pod") if pods else "no pod"


def obstacles(plan: NodePlan, keys: OwnKeys, budget: BudgetUse = _UNUSED) -> tuple[Obstacle, ...]:
    """Return what holds the node of a plan, who can change that, and what blocks the drain that it previews.

    Unlike an explanation, this needs the plan only; `budget` is its use by the whole fleet. A node whose data
    breaks the program has none.
    """
    work = partial(_obstacles, plan, keys, budget)
    return guarded(f"node {plan.node} can't be explained", work, ())[0]


def _obstacles(plan: NodePlan, keys: OwnKeys, budget: BudgetUse) -> tuple[Obstacle, ...]:
    preview = plan.draining.preview
    blockers = preview.blockers if preview is not None else ()
    return _with_commands(
        (
            *_kept(plan, keys, budget),
            *(_unread(source, because, plan.node) for source, because in plan.status.unread),
            *(blocked_by(blocker, None) for blocker in _each_budget_once(blockers)),
        ),
        plan.node,
    )


def _kept(plan: NodePlan, keys: OwnKeys, budget: BudgetUse) -> Iterator[Obstacle]:
    """Yield why nobody guards the node, what holds it, and what keeps its drain from being in time.

    For a node that nobody guards, and for one that is missed or will be, one of them waits for a person.
    """
    kept = list(_holds(plan, keys, budget))
    if plan.unguarded is not None:
        # These holds say the same, but not that nobody drains the node.
        kept = [hold for hold in kept if hold.code not in _SAID_BY_UNGUARDED]
        kept.insert(0, Obstacle(UNGUARDED, plan.unguarded.words, plan.unguarded.who))
    drain = plan.record.drain if plan.record is not None else None
    for sender in drain.kept.coming if drain is not None else ():
        # The drain is done, so nothing holds it. Whoever sends these pods loses them all the same.
        who = f"whoever creates pods in the namespace {sender.namespace}: `{sender.command(plan.node)}`"
        kept.append(Obstacle(DRAIN_BLOCKED.code, str(sender), who))
    schedule, outcome = plan.schedule, plan.outcome
    if schedule is not None and (schedule.by_pods or schedule.forecast is CaseForecast.AT_RISK):
        # The holds of a drain for these pods name no owner and no command.
        named = tuple(f"{stays.pod}: " for stays in schedule.prospect.obstacles)
        kept = [
            hold for hold in kept if hold.code != DRAIN_BLOCKED.code or not hold.because.startswith(named)
        ]
        for stays in schedule.prospect.obstacles:
            namespace, _, pod = stays.pod.partition("/")
            ways = stays.commands or (f"kubectl -n {namespace} describe pod {pod}",)
            how = f"{stays.remedy.rstrip('.')}: {' or '.join(f'`{way}`' for way in ways)}"
            kept.append(Obstacle(FORECAST, str(stays), f"the owner of {stays.owner or stays.pod}: {how}"))
    elif schedule is not None and schedule.forecast is CaseForecast.UNKNOWN:
        who = f"whoever is on call, if it stays unknown: `reconciler explain {plan.node}`"
        kept.append(Obstacle(FORECAST, schedule.forecast_words, who))
    if all(obstacle.by_itself for obstacle in kept):
        if schedule is not None and schedule.missed:
            who = schedule.who_starts or f"by hand: `{keys.drain_by_hand(plan.node)}`"
            kept.append(Obstacle(MISSED, schedule.because, who))
        elif outcome is not None and not outcome.result.good:
            pods = f"kubectl get pods -A --field-selector spec.nodeName={plan.node}"
            who = f"the owners of its pods: `{pods}` shows what is there now"
            kept.append(Obstacle(MISSED, outcome.words, who))
    yield from kept


def plan_of(node: Node, plan: Plan) -> NodePlan:
    """Return the plan of the node; that of a node without anything to report is empty."""
    quiet = NodePlan(
        node.name,
        node.zone,
        pool_of(node),
        State.OPERATIONAL,
        State.OPERATIONAL,
        status=NodeStatus(unschedulable=node.unschedulable),
    )
    return next((planned for planned in plan.nodes if planned.node == node.name), quiet)


def order_events(plan: NodePlan) -> tuple[tuple[KnownEvent, ...], str]:
    """Return the events for which a drain of the node would be, and the kind that was assumed, if any."""
    recorded = cases.allowed(plan.record) if plan.record is not None else ()
    events = recorded or tuple(cases.known(judged.event) for judged in plan.events if judged.asks)
    return (events, "") if events else ((KnownEvent(ASSUMED, None, (), ()),), ASSUMED.value)


def blocked_by(blocker: Blocker, pod: Pod | None) -> Obstacle:
    """Return a pod that a drain leaves on the node, or whose eviction a budget refuses, with whom to ask."""
    owner = owned_by(pod) if pod is not None else ""
    of_pod = f"the owner of {owner}" if owner else "the owner of the pod"
    if "," in blocker.budget:
        return Obstacle("budget", f"{blocker.pod}: {blocker.because}", f"{of_pod}: let one budget select it")
    if blocker.budget:
        namespace, _, name = blocker.budget.partition("/")
        who = (
            f"{of_pod}: run more replicas, or let the budget {blocker.budget} allow a disruption; `kubectl "
            f"describe pdb {name} -n {namespace}` shows what it requires"
        )
        return Obstacle("budget", f"{blocker.pod}: {blocker.because}", who)
    return Obstacle("pod", f"{blocker.pod}: {blocker.because}", f"{of_pod}, or the owner of the settings")


def _drain(
    node: Node, plan: NodePlan, snapshot: Snapshot, settings: Settings, now: datetime
) -> tuple[Preview | None, str]:
    events, assumed = order_events(plan)
    if plan.draining.preview is not None:
        return plan.draining.preview, ""
    unseen = snapshot.problems.refused
    if PODS in unseen:
        return None, assumed
    order = drain_order(node, events, now, settings, snapshot)
    staying = [other for other in snapshot.nodes if other.name != node.name and not other.unschedulable]
    pods = [pod for of_node in snapshot.pods.values() for pod in of_node]
    unknown = tuple(unseen[what] for what in (BUDGETS, NAMESPACES) if what in unseen)
    seen = preview_safely(order, staying, pods, snapshot.budgets, now)
    return replace(seen, unknown=unknown), assumed


def _unmanaged(node: Node, settings: Settings) -> str:
    if HOSTED_LABEL in node.labels:
        return f"AKS manages the node itself (label {HOSTED_LABEL})"
    if not settings.in_fleet(node.labels):
        return "nodeSelector of the settings does not select it"
    if not settings.manages(node.labels):
        return f"its label {settings.keys.names.ignore} excludes it"
    return ""


def _holds(plan: NodePlan, keys: OwnKeys, budget: BudgetUse) -> Iterator[Obstacle]:
    requested = any(REQUEST in judged.event.sources for judged in plan.events)
    said, schedule = plan.status.instructions, plan.schedule
    held = said.hold.word.scope if said.hold is not None else ""
    deferred = said.deferral.word.scope if said.deferral is not None else ""
    for hold in plan.holds:
        # Of the nodes that the reason names, those that nobody maintains come back by a command.
        closed = [
            f"`kubectl uncordon {node}`"
            for node, because in (budget.holders if hold.code == "budgetLeft" else ())
            if because == BY_OTHERS and node in hold.reason
        ]
        scope = deferred if hold.code == "notDeferred" else held
        who = who_ends(hold.code, plan.node, keys, requested=requested, scope=scope, who=hold.who)
        by_itself = hold.by_itself or ends_by_itself(hold.code, requested=requested)
        if hold.who.startswith(NOBODY) and not by_itself:
            # Its end is no known moment.
            who = who.partition("; or ")[2]
        if hold.code == "eventsGone" and plan.record is not None and plan.record.quiet_since is not None:
            # The event has ended, and only the settle time is left, if somebody lets it pass.
            left, by_itself = plan.unguarded, plan.unguarded is None
            who = left.who if left is not None else f"{NOBODY} after the settle time"
        elif closed:
            who = f"whoever cordoned these nodes: {', '.join(closed[:_MOST_CLOSED])}; or {who}"
        elif holder := _HOLDER.search(hold.reason):
            who = who.replace(f"{holder[1]}.NAME-", f"{holder[1]}.{holder[2]}-")
        of_start = any(check.name == hold.code for check in plan.checks)
        starts = schedule.who_starts if schedule is not None and of_start else ""
        if by_itself and schedule is not None and not schedule.started:
            # What ends by itself after the latest start, or of a drain that starts too late anyway, is for a
            # person to end in time.
            latest = schedule.latest_start
            late = schedule.missed and not schedule.by_pods
            if hold.until > latest if hold.until is not None and latest is not None else late:
                by_itself, who = False, who.partition("; or ")[2] if who.startswith(NOBODY) else who
                starts = starts or f"by hand: `{keys.drain_by_hand(plan.node)}`"
        if starts and not by_itself:
            who = f"{who}; or {starts}" if who else starts
        yield Obstacle(hold.code, hold.reason, who, hold.until, by_itself)


_HOLDER = re.compile(r"\b((?:pre|post)-[a-z]+)\.([\w.-]+)")
"""The first annotation that holds a step, as a reason names it."""

_MOST_CLOSED = 2
"""Commands for nodes that somebody has cordoned."""


def _unread(source: str, because: str, node: str) -> Obstacle:
    return Obstacle("source", f"{source} can't be read: {because}", who_reads(source, node))


def _each_budget_once(blockers: tuple[Blocker, ...]) -> Iterator[Blocker]:
    """Yield the blockers, of the pods that one budget holds only the first."""
    seen: set[str] = set()
    for blocker in blockers:
        if not blocker.budget or blocker.budget not in seen:
            yield blocker
        seen.add(blocker.budget)


OWNER_LABELS = ("app.kubernetes.io/managed-by", "app.kubernetes.io/part-of", "app.kubernetes.io/created-by")
"""Labels of a pod that often name who is responsible, beside those that end with one of `PEOPLE`."""

_MOST = 8


def owner_labels(pod: Pod) -> tuple[tuple[str, str], ...]:
    """Return the labels that name an owner or a team, sorted by their key, the first few."""
    labels = sorted(
        (key, value)
        for key, value in pod.labels.items()
        if value and (key in OWNER_LABELS or key.rpartition("/")[2] in PEOPLE)
    )
    return tuple(labels[:_MOST])


_SCHEDULED = "Scheduled"
"""The reason of the scheduler's Event about a pod; its message ends with the node."""

NONE = "none"
"""What a drain does with a pod that is on no node, or on one that no longer exists."""

UNKNOWN = "unknown"
"""What it does with a pod that has no verdict."""


def find_pod(snapshot: Snapshot, namespace: str, name: str) -> Pod | None:
    """Return the pod of that name, None if there is none. The snapshot has the pods of the whole cluster."""
    every = (pod for of_node in snapshot.pods.values() for pod in of_node)
    return next((pod for pod in every if (pod.namespace, pod.name) == (namespace, name)), None)


def past_of(
    examination: Examination, namespace: str, name: str, events: tuple[SeenEvent, ...], unseen: str
) -> PodPast:
    """Return what is known of why a pod was moved, which may be gone.

    `events` are those about it and its owner, the newest first, and `unseen` is why they could not be read.
    """
    placed = next((event for event in events if event.reason == _SCHEDULED), None)
    if placed is not None and find_pod(examination.snapshot, namespace, name) is None:
        # Drains of other nodes, and earlier ones of this node, moved other pods of its owner.
        node = placed.message.rpartition(" to ")[2]
        # Our Events have whole seconds, those of the scheduler fractions.
        since = placed.at.replace(microsecond=0) if placed.at is not None else None
        events = tuple(
            event
            for event in events
            if event.name == name
            or (
                f"node {node} " in f"{event.message} "
                and (event.at is None or since is None or event.at >= since)
            )
        )
    owners = {f"{event.kind} {namespace}/{event.name}" for event in events}
    pods = [
        pod
        for of_node in examination.snapshot.pods.values()
        for pod in of_node
        if pod.namespace == namespace and pod.name != name and pod.owner is not None and not pod.finished
    ]
    successors = [
        (pod.key, pod.node)
        for pod in pods
        if pod.owner is not None and (name.startswith(f"{pod.owner.name}-") or owner_of(pod) in owners)
    ]
    drained = [
        (plan.node, plan.record.drain.since, plan.record.drain.done)
        for plan in examination.plan.nodes
        # What a rehearsal would begin has not begun.
        if plan.before is State.IN_MAINTENANCE and plan.record is not None and plan.record.drain is not None
    ]
    return PodPast(f"{namespace}/{name}", events, tuple(sorted(successors)), tuple(drained), unseen)


def explain_pod(pod: Pod, node: NodeExplanation | None, snapshot: Snapshot) -> PodExplanation:
    """Return what a drain of the pod's node would do with it, and what refuses its eviction.

    `node` explains its node, with what a drain would do; None for a pod whose node does not exist.
    """
    drain = node.drain if node is not None else None
    verdicts = drain.pods if drain is not None else ()
    verdict = next((known for known in verdicts if known.uid == pod.uid), None)
    if verdict is None and node is not None:
        verdict = PodVerdict(pod.key, pod.uid, UNKNOWN)
    elif verdict is None:
        reason = f"its node {pod.node} no longer exists" if pod.node else "it is on no node"
        verdict = PodVerdict(pod.key, pod.uid, NONE, (reason,))

    owner = owner_of(pod)
    blockers = [
        blocker for blocker in (drain.blockers if drain is not None else ()) if blocker.pod == pod.key
    ]
    kept = [blocked_by(blocker, pod) for blocker in blockers]
    if not blockers and verdict.action in ("skip", "wait"):
        of_pod = f"the owner of {owner}" if owner else "the owner of the pod"
        kept.append(Obstacle("pod", "; ".join(verdict.reasons), f"{of_pod}, or the owner of the settings"))
    obstacles = _with_commands(kept, pod.node)
    budgets = (budget for budget in snapshot.budgets if budget.covers(pod))
    return PodExplanation(
        pod,
        owner,
        owner_labels(pod),
        verdict,
        move_of(pod, node.plan if node is not None else None, verdict, obstacles[0] if blockers else None),
        tuple(sorted(budgets, key=lambda budget: budget.key)),
        next((blocker for blocker in blockers if blocker.budget), None),
        obstacles,
    )
