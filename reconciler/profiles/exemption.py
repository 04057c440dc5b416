"""Starts that wait for no place, and whether the platform has started on a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from reconciler.model.case_outcome import reports_start
from reconciler.model.event import REQUEST, Reading, Signal, Status
from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent
from reconciler.model.record import Record, identity, same_event
from reconciler.profiles.case import known
from reconciler.profiles.situation import Situation
from reconciler.settings.schema import Mode, Settings


def is_struck(node: Node, record: Record | None, readings: Iterable[Reading], settings: Settings) -> bool:
    """Whether the node's pods have to be read, because an event has started that may require a drain.

    It asks less than the judgement of an event, so a node too many may be read, and none is left out.
    """
    if settings.mode is Mode.OBSERVE or (record is not None and record.claimed_by):
        return False
    if not (settings.in_fleet(node.labels) and settings.manages(node.labels)):
        return False
    return any(
        _counts(signal, node, settings) and not _is_known(signal, record)
        for reading in readings
        for signal in reading.signals
    )


def _counts(signal: Signal, node: Node, settings: Settings) -> bool:
    if signal.status is not Status.STARTED or signal.condition or signal.source == REQUEST:
        return False
    policy = settings.policies(node.labels)[signal.kind, ""]
    return policy is not None and policy.drain


def _is_known(signal: Signal, record: Record | None) -> bool:
    """Whether the record has the answer: nobody was on the node, the pods were counted, or it is ignored."""
    if record is None:
        return False
    if record.drain is not None and record.drain.drain.done is not None:
        return True
    mine = identity(signal)
    return any(
        any(same_event(start.event, mine) and start.pods is not None for start in kept.facts.starts)
        or any(same_event(one, mine) for one in kept.dismissed)
        for _, kept in record.profiles
    )


def has_struck(judged: JudgedEvent) -> bool:
    """Whether the platform has started an event that requires a drain, so that the node goes down anyway."""
    return judged.asks and judged.starts and judged.event.started and reports_start(known(judged.event))


def is_exempt(situation: Situation) -> bool:
    """Whether an event of an exempt kind is due, or the platform has started an event.

    The node is lost or out of service soon, with or without a place. Before that, it waits like any other.
    """
    return any(moment <= situation.now for moment in _lost_from(situation))


def exempt_from(situation: Situation) -> datetime | None:
    """Return the next moment from which the node is exempt (UTC), None if there is none."""
    return min((moment for moment in _lost_from(situation) if moment > situation.now), default=None)


def _lost_from(situation: Situation) -> Iterator[datetime]:
    exempt = situation.settings.budget.exempt
    for one in situation.asking:
        if one.event.kind in exempt and one.lost_from is not None:
            yield one.lost_from
    yield from (situation.now for one in situation.undrained if has_struck(one))
