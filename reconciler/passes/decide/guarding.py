"""Whether the program guards a node: it drains it before announced maintenance, and brings it back after."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.calendar.occurrences import FOREVER
from reconciler.model.event import Answer
from reconciler.model.holds import SETTINGS
from reconciler.model.instructions import resume_command
from reconciler.model.node import HOSTED_LABEL
from reconciler.model.plan import JudgedEvent, NodePlan
from reconciler.model.reconciler import LOOK
from reconciler.model.record import State
from reconciler.model.unguarded import Unguarded, UnguardedWhy
from reconciler.passes.node_facts import NodeFacts, PassContext
from reconciler.profiles import case as cases
from reconciler.settings.schema import Mode


def unguarded(node: NodeFacts, plan: NodePlan, context: PassContext) -> Unguarded | None:
    """Return why nobody guards a node that needs it, None for any other.

    A node needs it while an event requires its drain, and while it is out of service for one. `plan` is what
    the pass does with it. Whoever drains a node by hand guards it. AKS guards the nodes that it manages.
    """
    read, case, settings = node.read, node.case, context.settings
    asking = [event for event in node.judged if event.asks and event.starts]
    begun = case.state is State.IN_MAINTENANCE
    by_hand = node.record is not None and node.record.claimed_by
    if not (asking or case.open) or by_hand or HOSTED_LABEL in read.labels:
        return None
    keys = settings.keys.names
    drain, release = f"`{keys.drain_by_hand(node.name)}`", f"`{keys.release(node.name)}`"
    back = release if begun else drain
    announced = min(
        (event.event.since for event in asking if event.event.since is not None), default=case.facts.announced
    )
    acts = context.snapshot.reconciler
    if settings.rejected:
        if acts.runs:
            # It goes on with its last good settings, which are not known here.
            return None
        because = "the settings have a mistake, and no earlier ones are known, so nobody acts on any node"
        who = f"{SETTINGS}: `reconciler check-config FILE` names each mistake; or by hand: {back}"
        return Unguarded(UnguardedWhy.SETTINGS_REJECTED, because, who, announced)
    if not settings.in_fleet(read.labels):
        because = "nodeSelector does not select it, so the reconciler leaves it alone"
        who = f"{SETTINGS}: `nodeSelector` selects nodes; or by hand: {back}"
        return Unguarded(UnguardedWhy.NOT_SELECTED, because, who, announced)
    if not settings.manages(read.labels):
        because = f"its label {keys.ignore} excludes it, so the reconciler leaves it alone"
        who = (
            f"whoever labelled the node: `kubectl label node {node.name} {keys.ignore}-`; or by hand: {back}"
        )
        return Unguarded(UnguardedWhy.NOT_SELECTED, because, who, announced)
    if settings.mode is Mode.OBSERVE and (asking or begun):
        does = "uncordons no node" if begun else "drains no node"
        because = f"mode Observe only shows what the reconciler would do, and {does}"
        lets = "Finish" if begun else "Enforce"
        who = f"{SETTINGS}: `mode: {lets}` lets it act; or by hand: {back}"
        return Unguarded(UnguardedWhy.MODE, because, who, announced)
    if settings.mode is Mode.FINISH and asking and not begun:
        who = f"{SETTINGS}: `mode: Enforce` starts drains again; or by hand: {back}"
        return Unguarded(UnguardedWhy.MODE, "mode Finish begins no drain", who, announced)
    if not acts.acts and (asking or begun):
        who = f"whoever runs the reconciler: `{LOOK}`; or by hand: {back}"
        return Unguarded(UnguardedWhy.NO_RECONCILER, "no reconciler runs", who, acts.last_pass)
    who = f"whoever is on call: {release} lets the reconciler drain it; or by hand: {drain}"
    return (
        _left(node, plan, asking, context, who)
        or _held(node, plan, asking)
        or _silent(node, plan, context, release)
    )


def _left(
    node: NodeFacts, plan: NodePlan, asking: Iterable[JudgedEvent], context: PassContext, who: str
) -> Unguarded | None:
    """Return that an event is ignored although it requires a drain, because a case of it was dismissed."""
    if plan.record is None or plan.after is State.IN_MAINTENANCE:
        return None
    current = cases.not_dismissed(plan.record, node.judged)
    ignored = [event for event in asking if event not in current]
    if not ignored:
        return None
    because, uncordoned = cases.dismissed_words(plan.record, context.now), plan.record.uncordoned
    if uncordoned is None:
        return Unguarded(UnguardedWhy.DISMISSED, because, who)
    return Unguarded(UnguardedWhy.UNCORDONED_BY_HAND, because, who, uncordoned.at)


def _held(node: NodeFacts, plan: NodePlan, asking: Iterable[JudgedEvent]) -> Unguarded | None:
    """Return that a person holds the node for too long: no drain begins, or the one that runs is stopped."""
    hold = node.instructions.hold
    drain = plan.record.drain if plan.record is not None else None
    if hold is None or (drain is not None and (drain.done is not None or not hold.stops)):
        return None
    moments = (
        (event.times.latest if event.times is not None else None) or event.deadline or event.lost_from
        for event in asking
    )
    latest = min((moment for moment in moments if moment is not None), default=None)
    if latest is None or (hold.word.until or FOREVER) <= latest:
        return None
    because = hold.words(node.name)
    who = f"whoever holds it: `{resume_command(hold.word.scope, node.name)}`"
    return Unguarded(UnguardedWhy.HELD_BY_PERSON, because, who, hold.word.at)


def _silent(node: NodeFacts, plan: NodePlan, context: PassContext, release: str) -> Unguarded | None:
    """Return that nobody says whether the maintenance of the case is still to come, or over."""
    if plan.record is None or not plan.record.open or any(event.asks for event in node.current):
        return None
    switched_on = context.reading_names.__contains__
    silent = {
        source: known.condition or known.kind
        for known in plan.record.events
        for source in known.sources
        if cases.is_silent(known, source, node.assessment, switched_on)
    }
    if not silent:
        return None
    source, kind = min(silent.items())
    ended = (
        reading.believed_until
        for reading in node.assessment.readings
        if reading.source in silent and reading.answer is Answer.UNKNOWN
    )
    since = min((moment for moment in ended if moment is not None), default=None)
    because = f"{source} reported {kind}, and can't be read now: whether it is over is not known"
    who = f"the administrator of the cluster must make {source} readable; or, if it is over: {release}"
    return Unguarded(UnguardedWhy.SOURCE_SILENT, because, who, since)
