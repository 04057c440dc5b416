"""The drain that a record speaks of: whether it goes on, waits, is over, or is tried again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from reconciler.checks.left_to_us import AUTOSCALER_DELETES, left_to_us
from reconciler.checks.others_first import others_first
from reconciler.decide.acknowledging import acknowledged
from reconciler.decide.planned import node_patch, node_plan
from reconciler.decide.progress import Progress
from reconciler.decide.seen import DEFAULT, Seen
from reconciler.engine import case as cases
from reconciler.engine.machine import Walk
from reconciler.engine.orders import drain_order
from reconciler.eviction.survey import Survey, survey
from reconciler.model.drains import Blocker, DrainOptions, DrainProgress, Phase
from reconciler.model.holds import HoldCode
from reconciler.model.node import AUTOSCALER_TAINT, Node
from reconciler.model.plan import (
    Hold,
    NodePlan,
    Notice,
    NoticeType,
)
from reconciler.model.record import DrainRecord, Record, State
from reconciler.model.snapshot import Snapshot
from reconciler.publishing.publisher import Showing
from reconciler.publishing.registry import node_signs
from reconciler.publishing.standing import Standing
from reconciler.settings.schema import Settings


def follow_drain(
    one: Seen,
    walked: Walk,
    view: cases.CaseView,
    drained: DrainProgress | None,
    snapshot: Snapshot,
    settings: Settings,
    progress: Progress,
    now: datetime,
) -> NodePlan:
    """Add to what the state machine decided the drain that the record speaks of."""
    node, record = one.node, walked.effects.record
    notices = list(walked.effects.notices)
    order, held = None, None
    kept: tuple[Blocker, ...] = ()
    stale = drained if drained is not None and drained.uid != node.uid else None
    drained = None if stale is not None else drained
    drain = record.drain if walked.state is State.IN_MAINTENANCE else None
    under_way = drain is not None and drain.done is None
    wanted = any(event.asks for event in view.present) or bool(view.unknown)
    goes_on = drain is not None and under_way and wanted
    # While a node is being emptied nobody waits for its uncordon yet.
    holds = [] if goes_on else list(walked.holds)
    if drain is not None and goes_on:
        order = drain_order(node, record.events, drain.since, settings, snapshot)
        held = _held_drain(node, snapshot, settings, progress)
        found = _pods_left(node, order.options, snapshot, now)
        if found is not None:
            kept = found.kept
        # What the drainer still waits for (volumes to be detached) is not seen in the pods.
        if found is not None and found.drained and not running(drained):
            record = replace(record, drain=replace(drain, done=now.replace(microsecond=0)))
            order = None
            left = f"; kept: {', '.join(blocker.pod for blocker in kept)}" if kept else ""
            notices.append(Notice("MaintenanceDrained", f"drained{left}"))
        elif held is None and now - drain.since >= settings.drain.timeout:
            again = DrainRecord(now.replace(microsecond=0), drain.attempt + 1)
            record = replace(record, drain=again)
            order = replace(order, since=again.since)
            because = _blocked(drained)
            message = f"not drained after {settings.drain.timeout}, trying again{because}"
            notices.append(Notice("MaintenanceDrainTimedOut", message, NoticeType.WARNING))
    # The record as it is by now: our own node need not wait for a pass more when the last one is drained.
    if under_way and record.drain and not record.drain.done and node.name != snapshot.own_node:
        progress.undrained += 1
    if order is not None and held is not None:
        holds.append(held)
        order = None
    elif order is not None:
        progress.drains += 1
    if drained is not None and order is not None:
        holds += [Hold(node.name, HoldCode.DRAIN, f"{b.pod}: {b.because}") for b in drained.blockers]
    standing = Standing(walked.state, record, view, tuple(holds), draining=order is not None)
    word = acknowledged(node, walked, record, progress.acknowledgements, settings.keys.prefix)
    whole = (one.record or Record(node.uid)).with_case(DEFAULT, record, now)
    showing = Showing(settings.publish, settings.keys.prefix, now)
    signs = node_signs(node, standing, showing)
    return node_plan(
        one,
        walked.state,
        tuple(holds),
        walked=walked,
        record=record,
        publications=signs.writes,
        write=node_patch(one, walked, whole, settings, {**signs.annotations, **word}),
        order=order,
        stop_drain=order is None and (running(drained) or running(stale)),
        # A drain that ended with an earlier case is not this one's.
        progress=drained if drain is not None or running(drained) else None,
        notices=tuple(notices),
        kept=kept,
        perform=walked.effects.perform,
        machine=walked.effects.machine,
    )


def _held_drain(node: Node, snapshot: Snapshot, settings: Settings, progress: Progress) -> Hold | None:
    """Return why a cordoned node's drain has to wait, None where it goes on."""
    if node.has_taint(AUTOSCALER_TAINT):
        return left_to_us.hold(node.name, AUTOSCALER_DELETES)
    if node.name == snapshot.own_node and progress.undrained:
        reason = f"we run on it, so it goes last: {progress.undrained} other nodes are being drained"
        return others_first.hold(node.name, reason)
    limit = settings.drain.max_concurrent_nodes
    if progress.drains >= limit:
        return Hold(
            node.name, HoldCode.DRAIN_SLOT, f"{limit} nodes are drained at once (drain.maxConcurrentNodes)"
        )
    return None


def _pods_left(node: Node, options: DrainOptions, snapshot: Snapshot, now: datetime) -> Survey | None:
    pods = snapshot.pods.get(node.name)
    if pods is None:
        return None
    return survey(pods, options, now=now, namespaces=snapshot.namespaces, own_pod=snapshot.own_pod)


def _blocked(drained: DrainProgress | None) -> str:
    if drained is None or not drained.blockers:
        return ""
    return "; " + "; ".join(f"{blocker.pod} {blocker.because}" for blocker in drained.blockers[:3])


def running(drained: DrainProgress | None) -> bool:
    """Whether a drain is under way in this process."""
    return drained is not None and drained.phase is Phase.RUNNING
