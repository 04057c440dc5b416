"""How urgent a node is, by its events."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.node import Node
from reconciler.model.plan import JudgedEvent
from reconciler.model.record import KnownEvent
from reconciler.model.schedule import Urgency
from reconciler.settings.schema import Settings


def urgency_of(
    judged: Iterable[JudgedEvent], hidden: Iterable[KnownEvent], node: Node, settings: Settings
) -> Urgency | None:
    """Return the urgency of a node: that of its most urgent event, None if no event requires a drain.

    `judged` are the events that are reported now, without dismissed ones. `hidden` are those of the record
    that no source can report now; they count with what the record keeps of them.
    """
    found = [_reported(one) for one in judged if one.asks and one.starts]
    found += [_recorded(one, node, settings) for one in hidden]
    return min(found, key=lambda one: one.key, default=None)


def _reported(one: JudgedEvent) -> Urgency:
    event = one.event
    # For most kinds this is the deadline. A kind with seconds of notice has none that comes in time.
    latest = one.lost_from if event.not_before is not None and not event.started else one.deadline
    return Urgency(event.kind, latest, event.started, event.date_unreadable)


def _recorded(known: KnownEvent, node: Node, settings: Settings) -> Urgency:
    policy = settings.policy(known.kind, known.condition, node.labels)
    lead = policy.lead_time if policy is not None else None
    deadline = known.not_before - lead if known.not_before and lead is not None else known.not_before
    return Urgency(known.kind, deadline)
