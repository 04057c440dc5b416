"""Which of Azure's scheduled events may start now: those of which every VM is a drained node (law 12).

One acknowledgement starts the event for all of its VMs. A VM that is no known node, or still has pods,
prevents it. Source: learn.microsoft.com, "Scheduled Events for Linux VMs", section "Start an event".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from reconciler.model.event import MaintenanceEvent, Reading, Signal, Status
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.plan import Ending, Notice, SharedEvent
from reconciler.model.problems import Faults, guarded
from reconciler.model.record import CaseRecord, State
from reconciler.model.values import replace
from reconciler.passes.decision import CaseDecision, NodeSigns
from reconciler.passes.node_facts import Decider, NodeFacts, PassContext
from reconciler.passes.plugin import Deciding, Feature
from reconciler.profiles import case as cases
from reconciler.profiles.endings import Means
from reconciler.profiles.situation import Offer, Request, Situation
from reconciler.profiles.vocabulary import CheckResult, failed, passed
from reconciler.settings.policies import EventPolicy
from reconciler.sources.imds import scheduled_events as imds
from reconciler.sources.imds.keys import ACKNOWLEDGED, PUBLISHED
from reconciler.sources.imds.settings import ACKNOWLEDGES

NAME = "imds"

ACKNOWLEDGE = "acknowledge"
"""The name of the offer by which Azure is asked to start a scheduled event."""

FOLLOWED = timedelta(minutes=30)
"""So long after it was asked to start an event, Azure does not start it any more: usually it does at once."""

_NAMED_AT_MOST = 3


_NAMELESS = "it does not say which VMs it is about"


class Acknowledgement(Struct, frozen=True):
    """An event that should start early, with its ID as in IMDS; `refusal` says why it may not."""

    id: str
    refusal: str = ""


def _due(situation: Situation) -> CheckResult:
    """Pass when every VM of an event that the settings acknowledge is a drained node (law 12)."""
    record = situation.record
    if record.drain is None or record.drain.done is None:
        return failed("the node is not drained yet", holds=False)
    if ids := _to_acknowledge(situation):
        return passed(f"every VM of event {', '.join(ids)} is drained")
    events: Sequence[Acknowledgement] = situation.of_features.get(NAME, ())
    refused = [f"event {event.id} is not acknowledged: {event.refusal}" for event in events if event.refusal]
    return failed("; ".join(refused)) if refused else failed("there is no event to acknowledge", holds=False)


def _to_acknowledge(situation: Situation) -> tuple[str, ...]:
    """Return the IDs of the events that may start now and are not acknowledged yet."""
    known = _acknowledged(situation.record)
    events: Sequence[Acknowledgement] = situation.of_features.get(NAME, ())
    return tuple(event.id for event in events if not event.refusal and event.id not in known)


def _acknowledged(record: CaseRecord) -> frozenset[str]:
    asked = record.asked_by(ACKNOWLEDGE)
    return frozenset(asked.events if asked is not None else ())


def _request(situation: Situation) -> Request:
    """Return which events Azure may start. The annotation that the agent reads follows from the record."""
    ids = _to_acknowledge(situation)
    message = f"every VM of event {', '.join(ids)} is drained, so Azure may start it now"
    return Request(Notice("MaintenanceAcknowledged", message), events=ids)


def ends(
    event: MaintenanceEvent, policy: EventPolicy, node: Node, means: Means, now: datetime
) -> Ending | None:
    """Return how an event ends that the settings acknowledge; None for any other."""
    del node
    if not ACKNOWLEDGES.in_policy(policy):
        return None
    asked = means.record.asked_by(ACKNOWLEDGE)
    follows = asked.last + FOLLOWED if asked is not None else None
    signals = [signal for reading in means.readings for signal in _with_id(reading) if signal.id in event.ids]
    refused = ""
    if asked is not None and now >= asked.last + FOLLOWED and not set(event.ids).isdisjoint(asked.events):
        refused = f"Azure was asked to start it at {to_text(asked.last)}, and has not started it"
    elif because := _why_never(signals, means):
        refused = f"it can't be acknowledged: {because}"
    return Ending(
        ACKNOWLEDGE,
        "once every VM of the event is drained, Azure is asked to start it",
        refused,
        follows if follows is not None and now < follows else None,
        tuple(_shared(signal, means.vms()) for signal in signals),
        want="acknowledge",
    )


def _why_never(signals: Sequence[Signal], means: Means) -> str:
    """Return why Azure can't be asked to start an event early, whatever is drained; empty if it can."""
    if not signals:
        return "the node agent does not report it"
    refusals = (why_no_node(vm, means.vms().get(vm, ())) for vm in _vms(signals))
    if refusal := next(filter(None, refusals), ""):
        return refusal
    if not all(signal.resources for signal in signals):
        return _NAMELESS
    return next((why for signal in signals if (why := means.in_vain.get(signal.id.casefold()))), "")


def _shared(signal: Signal, vms: Mapping[str, Sequence[str]]) -> SharedEvent:
    nodes = {name for vm in _vms((signal,)) for name in vms.get(vm, ())}
    return SharedEvent(signal.id.casefold(), tuple(sorted(nodes)))


def _vms(signals: Iterable[Signal]) -> list[str]:
    return sorted({name.strip().casefold() for signal in signals for name in signal.resources})


def why_no_node(vm: str, names: Sequence[str]) -> str:
    """Return why it is not known which node a VM of an event is; `names` are the nodes that have it."""
    if not names:
        return f"VM {vm} is not a node of this cluster"
    return f"VM {vm} may be any of {', '.join(sorted(names))}" if len(names) > 1 else ""


OFFER = Offer(
    ACKNOWLEDGE,
    "Azure",
    _due,
    _request,
    who="whoever can drain the other nodes of the event: `reconciler report` says of each what it waits for",
    by_itself=True,
    ends=ends,
)


def acknowledgements(
    seen: Sequence[NodeFacts],
    vms: Callable[[], Mapping[str, Sequence[str]]],
    awaits: Callable[[NodeFacts], str],
    faults: Faults | None = None,
) -> Mapping[str, tuple[Acknowledgement, ...]]:
    """Return, by node, the events that the settings acknowledge, and what prevents it.

    `vms` returns the nodes of each VM, by its name (casefolded), and `awaits` why nothing may follow the
    drain of a node yet. A node whose data ends in an error is one of `faults`. No event about it is
    acknowledged.
    """
    faults = Faults() if faults is None else faults
    by_id: dict[str, list[tuple[NodeFacts, Signal]]] = {}
    for node in seen:
        signals = faults.of(node.name, "its events are not known", partial(_by_id, node), ())
        for name, signal in signals:
            by_id.setdefault(name, []).append((node, signal))
    wanted = {
        name: pairs
        for name, pairs in by_id.items()
        if any(
            faults.of(node.name, "its events are not known", partial(_wants, node, signal), False)
            for node, signal in pairs
        )
    }
    if not wanted:
        return {}
    by_vm = vms()
    by_name = {node.name: node for node in seen}
    found: dict[str, list[Acknowledgement]] = {}
    for pairs in wanted.values():
        judged, _ = guarded(
            "an event is not acknowledged", partial(_of_event, pairs, by_vm, by_name, awaits), ()
        )
        for name, answer in judged:
            found.setdefault(name, []).append(answer)
    # An event that is reported twice counts once.
    return {name: tuple(dict.fromkeys(some)) for name, some in found.items()}


def _of_event(
    pairs: Sequence[tuple[NodeFacts, Signal]],
    by_vm: Mapping[str, Sequence[str]],
    by_name: Mapping[str, NodeFacts],
    awaits: Callable[[NodeFacts], str],
) -> tuple[tuple[str, Acknowledgement], ...]:
    # Each VM reports the event; if the reports differ, every VM that any of them names counts.
    vms = _vms(signal for _, signal in pairs)
    reasons = [why for vm in vms if (why := _why_not(vm, by_vm.get(vm, []), by_name, pairs, awaits))]
    if not all(signal.resources for _, signal in pairs):
        reasons.insert(0, _NAMELESS)
    more = f" and {len(reasons) - _NAMED_AT_MOST} more" if len(reasons) > _NAMED_AT_MOST else ""
    refusal = "; ".join(reasons[:_NAMED_AT_MOST]) + more
    return tuple(
        (node.name, Acknowledgement(signal.id, refusal)) for node, signal in pairs if _wants(node, signal)
    )


def _by_id(node: NodeFacts) -> tuple[tuple[str, Signal], ...]:
    return tuple(
        (signal.id.casefold(), signal) for reading in node.assessment.readings for signal in _with_id(reading)
    )


def _with_id(reading: Reading) -> Iterator[Signal]:
    """Yield what a reading says of scheduled events that have an ID."""
    if reading.source == imds.SOURCE:
        yield from (signal for signal in reading.signals if signal.id)


def _wants(node: NodeFacts, signal: Signal) -> bool:
    """Whether the settings acknowledge the event on this node. Only an event that has not started can be."""
    if signal.status is not Status.SCHEDULED:
        return False
    return any(judged.after_drain.by(ACKNOWLEDGE) and signal.id in judged.event.ids for judged in node.judged)


def _why_not(
    vm: str,
    names: Sequence[str],
    by_name: Mapping[str, NodeFacts],
    pairs: Iterable[tuple[NodeFacts, Signal]],
    awaits: Callable[[NodeFacts], str],
) -> str:
    """Return why one VM prevents it, empty if it does not."""
    if refusal := why_no_node(vm, names):
        return refusal
    node = by_name.get(names[0])
    mine = [signal for other, signal in pairs if node is not None and other.read.name == node.name]
    if node is None or not mine:
        return f"node {names[0]} has not reported it yet"
    if node.untouched is not None:
        return f"node {names[0]} must not be changed: {node.untouched.reason}"
    if not all(_wants(node, signal) for signal in mine):
        return f"the settings of node {names[0]} do not acknowledge it, or it has started there"
    if not all(_is_drained_for(node, signal) for signal in mine):
        return f"node {names[0]} is not drained for it yet"
    return f"node {names[0]} {why}" if (why := awaits(node)) else ""


def _is_drained_for(node: NodeFacts, signal: Signal) -> bool:
    """Whether we cordoned and drained the node with this event on record.

    An older drain may keep pods that this event evicts, and so may a drain that starts again in this pass.
    """
    record = node.case
    return (
        not (node.record is not None and node.record.claimed_by)
        and record.state is State.IN_MAINTENANCE
        and node.read.unschedulable
        and record.drain is not None
        and record.drain.done is not None
        and any(signal.id in known.ids for known in record.events)
        and not any(signal.id in known.ids and known.waits for known in record.events)
        and not cases.newly_asking(record, node.current)
    )


class Acknowledging(Decider):
    """Which events should start early, in one pass."""

    def __init__(self, nodes: Sequence[NodeFacts], context: PassContext) -> None:
        """Find them; where that fails, no event is acknowledged."""
        faults = context.faults
        nothing: Mapping[str, tuple[Acknowledgement, ...]] = {}
        self._events = faults.step(
            "no event is acknowledged",
            lambda: acknowledgements(
                nodes, lambda: context.vms, lambda node: context.awaits(node, context), faults
            ),
            nothing,
        )

    def decide(
        self, decision: CaseDecision, node: NodeFacts, situation: Situation, context: PassContext
    ) -> tuple[NodeFacts, Situation]:
        """Return both, the situation with the events of the node, and what prevents each."""
        del decision, context
        if events := self._events.get(node.name, ()):
            situation = replace(situation, of_features={**situation.of_features, NAME: events})
        return node, situation


def _taken_back(node: Node, prefix: str) -> NodeSigns:
    """Return the change that removes the acknowledgement from a node that must not be changed otherwise."""
    key = ACKNOWLEDGED.below(prefix)
    return NodeSigns({key: None} if key in node.annotations else {})


def _signs(decision: CaseDecision, node: NodeFacts, context: PassContext) -> NodeSigns:
    """Return the change of the agent's annotation: the IDs that are acknowledged and still may be.

    An id is removed as soon as a node of the event is uncordoned, or the event has started. What was
    published about another VM is removed, too.
    """
    events: Sequence[Acknowledgement] = decision.known.get(NAME, ())
    may = {event.id for event in events if not event.refusal}
    acknowledged = _acknowledged(decision.record)
    ids = sorted(may & acknowledged) if decision.drained and decision.cordoned else []
    text = imds.to_acknowledgement(ids) if ids else None
    read, changed = node.read, dict[str, str | None]()
    told, published = (key.below(context.keys.prefix) for key in (ACKNOWLEDGED, PUBLISHED))
    if read.annotations.get(told) != text:
        changed[told] = text
    if imds.published(read.annotations.get(published, "")).is_of_another_vm(read.provider_id):
        changed[published] = None
    return NodeSigns(changed)


FEATURE = Feature(NAME, offers=(OFFER,), decide=Deciding(Acknowledging), signs=_signs, taken_back=_taken_back)
