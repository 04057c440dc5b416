"""Whether the platform has started on a node, and nobody has counted yet which pods it met."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.event import REQUEST, Reading, Signal, Status
from reconciler.model.node import Node
from reconciler.model.record import Record, identity, same_event
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
    policy = settings.policy(signal.kind, "", node.labels)
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
