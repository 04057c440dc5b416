"""The values that a pass shows: pure functions from its plan to samples.

Series of a node exist only while the plan has a case or a hold for it, so they vanish with the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial

from msgspec import Struct, field

from jobs.runtime.metrics import Sample
from reconciler.features.metrics import catalogue
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.ended_case import EndedCase, leading_kind
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.problems import guarded
from reconciler.model.record import State
from reconciler.model.schedule import CaseForecast

BUDGETS = 20
"""PodDisruptionBudgets that one node's drain shows, those with the most blocked pods first.

The rest is one series without namespace and budget: whoever may create pods may create budgets.
"""

_FORECASTS = (
    (catalogue.WILL_BE_MISSED, CaseForecast.WILL_BE_MISSED),
    (catalogue.AT_RISK, CaseForecast.AT_RISK),
)

_OF_PERSON = ("notHeld", "notStopped")
"""The codes of a person's hold."""

HoldsSince = Mapping[tuple[str, str], datetime]
"""Since when a node has a hold, by its name and the code of the hold (UTC)."""


class PassView(Struct, frozen=True):
    """What there is to show of the last pass.

    `drains` is the progress of each drain of this process, by node. `holds_since` is what `held_since`
    returned for the plan.
    """

    plan: Plan
    drains: Mapping[str, DrainProgress] = field(default_factory=dict)
    holds_since: HoldsSince = field(default_factory=dict)


class ProcessView(Struct, frozen=True):
    """What there is to show of the process; `last_success` is UTC, None before the first successful pass.

    `waiting` is the number of messages that wait to be sent, None where nobody is told anything.
    """

    version: str
    python: str
    leads: bool = False
    settings_good: bool = True
    last_success: datetime | None = None
    waiting: int | None = None


def process_samples(view: ProcessView) -> tuple[Sample, ...]:
    """Return the samples of the process."""
    found = [
        Sample(catalogue.BUILD_INFO, 1, (view.version, view.python)),
        Sample(catalogue.SETTINGS_GOOD, int(view.settings_good)),
        Sample(catalogue.LOCK_HELD, int(view.leads)),
    ]
    if view.last_success is not None:
        found.append(Sample(catalogue.PASS_LAST_SUCCESS, view.last_success.timestamp()))
    if view.waiting is not None:
        found.append(Sample(catalogue.NOTICES_WAITING, view.waiting))
    return tuple(found)


def held_since(before: HoldsSince, plan: Plan) -> HoldsSince:
    """Return since when each hold of the plan is there: from this plan on, if it was not there before."""
    return {
        key: min(before.get(key, plan.now), plan.now)
        for node in plan.nodes
        for key in ((node.node, code) for code in hold_codes(node))
    }


def hold_codes(node: NodePlan) -> tuple[str, ...]:
    """Return the code of each hold of the node, also of a person's hold while nothing is to be drained."""
    codes = dict.fromkeys(str(hold.code) for hold in node.holds)
    if node.status.instructions.hold is not None and codes.keys().isdisjoint(_OF_PERSON):
        codes["notHeld"] = None
    return tuple(codes)


def pass_samples(view: PassView) -> tuple[Sample, ...]:
    """Return the samples of a pass. A node that can't be shown has none, and harms no other."""
    samples = [*_fleet(view)]
    for source in view.plan.sources:
        if source.last is not None:
            samples.append(Sample(catalogue.SOURCE_LAST_ANSWER, source.last.timestamp(), (source.name,)))
        samples.append(Sample(catalogue.SOURCE_UNREADABLE_NODES, source.unknown, (source.name,)))
    for node in view.plan.nodes:
        shown, _ = guarded(f"node {node.node} has no metrics", partial(_of_node, node, view), ())
        samples += shown
    return tuple(samples)


def has_case(node: NodePlan) -> bool:
    """Whether the node has a case after the pass."""
    return node.schedule is not None or node.after is not State.OPERATIONAL


def _fleet(view: PassView) -> Iterator[Sample]:
    plan = view.plan
    version = plan.settings.version
    labels = (version.hash if version is not None else "", plan.mode, plan.reconciler.cluster)
    yield Sample(catalogue.SETTINGS_INFO, 1, labels)
    if version is not None and version.loaded is not None:
        yield Sample(catalogue.SETTINGS_LOADED, version.loaded.timestamp())
    yield Sample(catalogue.PASS_NODES, plan.managed)
    for namespace in plan.reconciler.others:
        yield Sample(catalogue.OTHER_RECONCILER, 1, (namespace,))
    states = Counter(node.after for node in plan.nodes)
    busy = states[State.REQUIRED] + states[State.IN_MAINTENANCE]
    # A node that the settings no longer select may still have a case.
    yield Sample(catalogue.NODES, max(0, plan.managed - busy), (State.OPERATIONAL.value,))
    for state in (State.REQUIRED, State.IN_MAINTENANCE):
        yield Sample(catalogue.NODES, states[state], (state.value,))
    for nodes in plan.profiles:
        state_value = nodes.state.value if nodes.state is not None else "unknown"
        yield Sample(catalogue.PROFILE_NODES, nodes.count, (nodes.profile, state_value))
    running = sum(1 for drain in view.drains.values() if drain.phase is Phase.RUNNING)
    yield Sample(catalogue.DRAINS_RUNNING, running)
    yield Sample(catalogue.BUDGET_PLACES, plan.budget.limit)
    yield Sample(catalogue.BUDGET_PLACES_TAKEN, len(plan.budget.holders))


def _of_node(node: NodePlan, view: PassView) -> tuple[Sample, ...]:
    held = hold_codes(node)
    if not has_case(node) and not held and node.unguarded is None:
        return ()
    samples = [Sample(catalogue.NODE_STATE, 1, (node.node, node.pool, node.zone, node.after.value))]
    said = node.status.instructions.hold
    for code in held:
        labels = (node.node, code)
        samples.append(Sample(catalogue.NODE_HOLD, 1, labels))
        given = said.word.at if said is not None and code in _OF_PERSON else None
        since = given if given is not None else view.holds_since.get(labels)
        if since is not None:
            samples.append(Sample(catalogue.NODE_HOLD_SINCE, since.timestamp(), labels))
    if node.unguarded is not None:
        kind, why = leading_kind(node.case_events), node.unguarded.why.value
        samples.append(Sample(catalogue.UNGUARDED, 1, (node.node, kind, why)))
    if has_case(node):
        samples += _case(node)

    drain = view.drains.get(node.node)
    if drain is not None and node.after is State.IN_MAINTENANCE:
        pods = Counter(
            (blocker.pod.partition("/")[0], blocker.budget.rpartition("/")[2])
            for blocker in drain.blockers
            if not blocker.leaving
        )
        most = sorted(pods.items(), key=lambda pair: (-pair[1], pair[0]))
        for (namespace, budget), count in most[:BUDGETS]:
            samples.append(Sample(catalogue.BLOCKED_PODS, count, (node.node, namespace, budget)))
        if rest := sum(count for _, count in most[BUDGETS:]):
            samples.append(Sample(catalogue.BLOCKED_PODS, rest, (node.node, "", "")))
    return tuple(samples)


def open_kinds(plan: Plan) -> frozenset[str]:
    """Return the kinds of the cases that are open after the pass."""
    return frozenset(leading_kind(node.case_events) for node in plan.nodes if has_case(node))


def _case(node: NodePlan) -> Iterator[Sample]:
    labels = (node.node, leading_kind(node.case_events))
    schedule = node.schedule
    moments = (
        (catalogue.PLATFORM_TIME, node.platform_time),
        (catalogue.LATEST_START, schedule.latest_start if schedule is not None else None),
        (catalogue.PLANNED_START, schedule.planned_start if schedule is not None else None),
    )
    yield from (Sample(family, at.timestamp(), labels) for family, at in moments if at is not None)
    # What was not read is no forecast: a 0 would say that all is right.
    if schedule is not None and schedule.forecast is not CaseForecast.UNKNOWN:
        for family, forecast in _FORECASTS:
            yield Sample(family, int(schedule.forecast is forecast), labels)


def missed_samples(cases: Iterable[EndedCase]) -> Iterator[Sample]:
    """Yield when each of these cases ended, whose nodes were not drained in time."""
    last = {(case.place.node, case.kind, case.outcome.value): case.times.ended for case in cases}
    for labels, at in sorted(last.items()):
        yield Sample(catalogue.CASE_MISSED, at.timestamp(), labels)


def count_answers(plan: Plan) -> Iterable[tuple[tuple[str, str], int]]:
    """Yield how many answers the sources gave in this pass, by the source's name and the result."""
    for source in plan.sources:
        yield (source.name, "event"), source.events
        yield (source.name, "no_event"), source.quiet
        yield (source.name, "unknown"), source.unknown
