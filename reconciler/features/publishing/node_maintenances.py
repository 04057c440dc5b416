"""NodeMaintenance objects: what `kubectl get nodemaintenances` shows of a plan.

The objects depend only on the plan and on the objects that exist. Words that change with the clock are not
compared, so a pass with nothing new to show writes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

from msgspec import Struct

from reconciler.features.publishing.objects import (
    LATE,
    MAINTENANCES,
    MISSED,
    OBJECTS,
    Maintenance,
    MaintenanceWrite,
    Stage,
)
from reconciler.features.publishing.settings import HISTORY, PUBLISH, Sign
from reconciler.model.case_outcome import CaseResult, outcome_of_event
from reconciler.model.errors import ClusterError
from reconciler.model.event import Kind
from reconciler.model.holds import DISMISSED, DRAIN_BLOCKED, INTERNAL
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.moments import shifted, to_text
from reconciler.model.node import DRAINED, DRAINING, IN_PROGRESS, LIFECYCLE, PLANNED, Condition, Node
from reconciler.model.plan import JudgedEvent, NodePlan
from reconciler.model.ports import Outside
from reconciler.model.problems import Gaps, guarded
from reconciler.model.record import KnownEvent, State
from reconciler.model.snapshot import LedgerPart
from reconciler.model.tasks import Clients
from reconciler.model.values import code_of, replace
from reconciler.passes.plugin import Fleet, ObjectChanges, ReadObjects
from reconciler.profiles.case import known
from reconciler.settings.schema import Settings

# An object's name may have 253 characters; ours ends in a dash and ten of a hash.
_LONGEST_NODE = 240
_LONGEST_TEXT = 1024
_DONE = frozenset({Stage.CORDONED, Stage.DRAINING, Stage.DRAINED, Stage.STARTED, Stage.SETTLING})
"""A case that ends after one of these stages had its maintenance. Before them, the event only disappeared."""

_NOT_DRAINED = frozenset({Stage.HELD, Stage.WAITING, Stage.CORDONED, Stage.DRAINING})
"""Stages of an event that requires a drain, on a node that may have pods that it has to evict."""


class _Live(Struct, frozen=True):
    """An event that a source reports, or that the record still waits for."""

    event: KnownEvent
    judged: JudgedEvent | None


SIGN = Sign.NODE_MAINTENANCES

Signs = tuple[str, ...]
"""The names of signs."""

IN_LEDGER: LedgerPart[Signs] = LedgerPart(
    "published", code_of(Signs), (), "objects of all signs are looked for", unread=tuple(Sign), most=1000
)
"""The signs that may have objects. The objects are deleted once the settings no longer name the sign."""


def read_objects(
    outside: Outside, settings: Settings, earlier: Collection[str] = (), gaps: Gaps | None = None
) -> ReadObjects:
    """Return the objects of this installation by sign, and a message if they can't be read.

    They are read while the settings publish them, and after that until none is left: `earlier` are the signs
    that may have objects. They only show something, so no pass fails because of them. With `gaps`, a missing
    permission is noted there instead of in a message. A process without a client reads nothing.
    """
    on = SIGN in PUBLISH.of(settings)
    if not on and SIGN not in earlier:
        return {}, ()
    client, prefix = outside.client(MAINTENANCES.name), settings.keys.prefix
    if client is None:
        return {}, ()
    try:
        objects = outside.beside.read((OBJECTS, prefix), partial(client.read, prefix))
    except ClusterError as error:
        if error.needs and not on:
            return {SIGN: ()}, (f"{OBJECTS} are no longer published, and stay as they are: {error}",)
        if error.needs and gaps is not None:
            gaps.note(OBJECTS, error, "they are left as they are")
            return {}, ()
        return {}, (f"{OBJECTS} can't be read, and are left as they are: {error}",)
    # A cluster without the CRD has none.
    return ({SIGN: objects or ()} if objects is not None or not on else {}), ()


def object_changes(published: Mapping[str, Sequence[Any]], fleet: Fleet) -> ObjectChanges:
    """Return the changes of the objects that were read."""
    objects = published.get(SIGN)
    if objects is None:
        return ObjectChanges()
    return (changes if SIGN in PUBLISH.of(fleet.settings) else deletions)(objects, fleet)


def keeps(earlier: Signs, fleet: Fleet) -> Signs:
    """Return the signs that may have objects after the writes of this pass; `earlier` are those before it."""
    on, objects = SIGN in PUBLISH.of(fleet.settings), fleet.snapshot.for_settings.objects.get(SIGN)
    # What is no longer published is read until no object is left.
    known = SIGN in earlier and (on or objects is None)
    written = any(isinstance(write, MaintenanceWrite) for write in fleet.writes)
    return (SIGN.value,) if known or objects or written else ()


def changes(existing: Sequence[Maintenance], fleet: Fleet) -> ObjectChanges:
    """Return what to write, and when time alone changes an object.

    The maintenance of an object has ended when no source reports its event, unless one that reported it
    can't be read, or the node can't be judged.
    """
    now, prefix = fleet.now.replace(microsecond=0), fleet.settings.keys.prefix
    left = {
        maintenance.name: maintenance
        for maintenance in sorted(existing, key=lambda maintenance: maintenance.name)
    }
    by_uid: dict[str, dict[str, Maintenance]] = {}
    for maintenance in left.values():
        by_uid.setdefault(maintenance.uid, {})[maintenance.name] = maintenance
    naming = _Naming(prefix, dict(left))
    writes: list[MaintenanceWrite] = []
    unreadable: set[str] = set()
    for plan in sorted(fleet.plans, key=lambda plan: plan.node):
        node = fleet.nodes.get(plan.node)
        if node is None:
            continue
        if any(hold.code == INTERNAL.code for hold in plan.holds):
            # Its events were not judged, so nobody knows which of them are over.
            unreadable.add(node.uid)
            continue
        shown, problems = guarded(
            f"node {plan.node}: its NodeMaintenance objects are not changed",
            partial(_of_plan, plan, node, by_uid.get(node.uid, {}), naming, now),
            (),
        )
        if problems:
            # Nothing of this node is changed, so none of its objects ends.
            unreadable.add(node.uid)
        for have, wanted in shown:
            if have is not None:
                left.pop(have.name, None)
            if have is None or _comparable(have) != _comparable(wanted):
                writes.append(MaintenanceWrite(wanted.name, plan.node, prefix, wanted, have is not None))
    old = _expired(left.values(), fleet)
    plans = {fleet.nodes[plan.node].uid: plan for plan in fleet.plans if plan.node in fleet.nodes}
    there = fleet.uids
    for maintenance in left.values():
        last = plans.get(maintenance.uid)
        # Where a source that reported the event can't be read now, it may go on.
        silent = last is not None and not set(maintenance.event.sources).isdisjoint(last.silent)
        if maintenance.finished is None and maintenance.uid not in unreadable and not silent:
            ended = _ended(maintenance, last, now, gone=maintenance.uid not in there)
            writes.append(MaintenanceWrite(maintenance.name, maintenance.node, prefix, ended, exists=True))

    # When a window closes on a node that something else holds, only what is shown changes.
    closings = []
    for plan in fleet.plans:
        node = fleet.nodes.get(plan.node)
        if node is not None and any(event.may_start for event in plan.events):
            closes = fleet.settings.calendar.at(fleet.now, node.labels).changes_at
            closings += [closes] if closes is not None else []
    return ObjectChanges((*writes, *old.writes), (*old.moments, *closings))


def deletions(existing: Sequence[Maintenance], fleet: Fleet) -> ObjectChanges:
    """Return the deletions once they are no longer published, and when the next one is due.

    What nobody updates is deleted at once. Maintenance that is over stays for `history`, as always.
    """
    old = _expired(existing, fleet)
    going_on = (_deletion(one, fleet.settings.keys.prefix) for one in existing if one.finished is None)
    return ObjectChanges((*going_on, *old.writes), old.moments)


def everything(clients: Clients, prefix: str) -> tuple[MaintenanceWrite, ...]:
    """Return the deletions of all objects of an installation; raises ClusterError."""
    objects = MAINTENANCES.of(clients).read(prefix) or ()
    return tuple(_deletion(maintenance, prefix) for maintenance in objects)


def _expired(objects: Iterable[Maintenance], fleet: Fleet) -> ObjectChanges:
    """Return the deletions of objects that are over for `history`, and when the others will be."""
    history = HISTORY.of(fleet.settings)
    ends = [(one, shifted(one.finished, history)) for one in objects if one.finished is not None]
    writes = tuple(_deletion(one, fleet.settings.keys.prefix) for one, end in ends if end <= fleet.now)
    return ObjectChanges(writes, tuple(end for _, end in ends if end > fleet.now))


def _deletion(one: Maintenance, prefix: str) -> MaintenanceWrite:
    return MaintenanceWrite(one.name, one.node, prefix, None, exists=True)


def _of_plan(
    plan: NodePlan, node: Node, own: Mapping[str, Maintenance], naming: _Naming, now: datetime
) -> tuple[tuple[Maintenance | None, Maintenance], ...]:
    """Return what the objects of a node are to show, each with the object that exists.

    No two events share an object, and no event gets the name of an object of another one.
    """
    living = [_Live(known(judged.event), judged) for judged in plan.events]
    recorded = plan.record.events if plan.record is not None and plan.record.open else ()
    living += [
        _Live(event, None)
        for event in recorded
        if not any(event.matches(judged.event) for judged in plan.events)
    ]
    unfinished = [maintenance for maintenance in own.values() if maintenance.finished is None]
    # Each object goes with one event: first those that agree in most.
    pairs: dict[int, Maintenance] = {}
    left = {maintenance.name: maintenance for maintenance in unfinished}
    for agree in (_equal, _share_an_id, KnownEvent.matches):
        for position, live in enumerate(living):
            if position in pairs:
                continue
            have = next(
                (maintenance for maintenance in left.values() if agree(live.event, maintenance.event)), None
            )
            if have is not None:
                pairs[position] = left.pop(have.name)
    shown: list[tuple[Maintenance | None, Maintenance]] = []
    taken = {have.name for have in pairs.values()}
    for position, live in enumerate(living):
        have = pairs.get(position)
        name = have.name if have is not None else naming.free(node, live.event, taken)
        taken.add(name)
        # The same event exists again after it was gone: its object is used again.
        have = have if have is not None else naming.existing.get(name)
        shown.append((have, _shown(live, plan, node, have, name, now)))
    return tuple(shown)


def _equal(one: KnownEvent, two: KnownEvent) -> bool:
    return _key(one) == _key(two)


def _key(event: KnownEvent) -> tuple[str, datetime | None, frozenset[str]]:
    ids = frozenset(text.casefold() for text in event.ids)
    return (event.condition or event.kind.value, event.not_before, ids)


def _share_an_id(one: KnownEvent, two: KnownEvent) -> bool:
    ids, others = ({text.casefold() for text in each.ids} for each in (one, two))
    return not ids.isdisjoint(others) and one.matches(two)


class _Naming(Struct, frozen=True):
    """How new objects are named: by their event, and so that no name is used twice.

    `existing` are all objects of this installation by name. Objects of another prefix have other names.
    """

    prefix: str
    existing: Mapping[str, Maintenance]

    def free(self, node: Node, event: KnownEvent, taken: Collection[str]) -> str:
        """Return the name of the event's object, which no other event of the node has `taken`."""
        names = (self._name(node, event, number) for number in count())
        return next(name for name in names if name not in taken)

    def _name(self, node: Node, event: KnownEvent, number: int) -> str:
        when = to_text(event.not_before) if event.not_before else ""
        ids = ",".join(sorted(text.casefold() for text in event.ids))
        parts = [node.uid, event.condition or event.kind.value, ids or when]
        parts += [self.prefix] if self.prefix != DEFAULT_PREFIX else []
        parts += [str(number)] if number else []
        identity = "|".join(parts)
        return f"{node.name[:_LONGEST_NODE]}-{hashlib.sha256(identity.encode()).hexdigest()[:10]}"


def _shown(
    live: _Live, plan: NodePlan, node: Node, have: Maintenance | None, name: str, now: datetime
) -> Maintenance:
    judged, event = live.judged, live.event
    stage = _stage(live, plan)
    reason, message = _why(live, plan, stage)
    # Azure empties the date once it has started.
    date = event.not_before or (have.event.not_before if have else None)
    duration = have.duration if have else None
    if judged is not None:
        exact = judged.event.duration
        duration = timedelta(seconds=int(exact.total_seconds())) if exact is not None else None
    description = _plain(judged.event.cause.description) if judged else (have.description if have else "")
    due = None
    if judged is not None and stage in (Stage.WAITING, Stage.HELD, Stage.CORDONED, Stage.DRAINING):
        due = judged.deadline if judged.may_start or judged.until is None else judged.until
    started = judged is not None and judged.event.started
    truths = {
        PLANNED: judged is not None and not started,
        IN_PROGRESS: started or stage is Stage.STARTED,
        DRAINING: stage is Stage.DRAINING,
        DRAINED: stage in (Stage.DRAINED, Stage.STARTED, Stage.SETTLING) and _is_drained(plan),
    }
    outcome = _outcome(plan, event, ended=False)
    flag = {CaseResult.MISSED: MISSED, CaseResult.LATE: LATE}.get(outcome, "") if outcome is not None else ""
    return Maintenance(
        name=name,
        node=node.name,
        uid=node.uid,
        event=KnownEvent(event.kind, date, event.ids, event.sources, event.condition),
        state=stage,
        duration=duration,
        description=description,
        due=due.replace(microsecond=0) if due else None,
        reason=reason,
        message=_plain(message),
        conditions=_conditions(truths, flag, have, now),
    )


def _outcome(plan: NodePlan, event: KnownEvent, *, ended: bool) -> CaseResult | None:
    case = plan.ended or plan.record
    found = outcome_of_event(case, event, ended=ended) if case is not None else None
    return found.result if found is not None else None


def _plain(text: str) -> str:
    """Return the text as an API server returns it: half a surrogate pair would never compare equal."""
    return text.encode("utf-8", "replace").decode("utf-8")[:_LONGEST_TEXT]


def _is_drained(plan: NodePlan) -> bool:
    drain = plan.record.drain if plan.record is not None else None
    return drain is not None and drain.done is not None


def _stage(live: _Live, plan: NodePlan) -> Stage:
    judged, record = live.judged, plan.record
    in_case = record is not None and any(old.matches(live.event) for old in record.events)
    if record is None or not in_case:
        if record is not None and any(old.matches(live.event) for old in record.dismissed):
            return Stage.DISMISSED
        return Stage.HELD if judged is not None and judged.asks and judged.starts else Stage.LET_PASS
    if judged is None:
        return Stage.SETTLING if record.quiet_since else Stage.UNREADABLE
    waits = any(old.waits and old.matches(live.event) for old in record.events)
    if plan.after is not State.IN_MAINTENANCE or waits:
        return Stage.WAITING
    if _is_drained(plan):
        return Stage.STARTED if judged.event.started else Stage.DRAINED
    return Stage.DRAINING if plan.todo.drain is not None else Stage.CORDONED


def _why(live: _Live, plan: NodePlan, stage: Stage) -> tuple[str, str]:
    if stage in (Stage.WAITING, Stage.HELD, Stage.CORDONED, Stage.SETTLING, Stage.UNREADABLE):
        # What a running drain waits for changes whenever its pods are read.
        holds = [hold for hold in plan.holds if hold.code != DRAIN_BLOCKED.code]
        return ",".join(dict.fromkeys(hold.code for hold in holds)), "; ".join(hold.reason for hold in holds)
    judged = live.judged
    if stage is Stage.DISMISSED:
        reasons = (hold.reason for hold in plan.holds if hold.code == DISMISSED.code)
        return DISMISSED.code, next(reasons, "no drain begins for it until a new event")
    return "", judged.because if judged is not None else ""


def _conditions(
    truths: Mapping[str, bool], flag: str, have: Maintenance | None, now: datetime
) -> tuple[Condition, ...]:
    """Return the conditions, with the time of the last change of each. `flag` is one more that is True."""
    before = {one.type: one for one in have.conditions} if have else {}
    found = []
    for kind in (*LIFECYCLE, *([flag] if flag else ())):
        status = "True" if truths.get(kind, True) else "False"
        old = before.get(kind)
        since = old.transition if old is not None and old.status == status else now
        found.append(Condition(kind, status, transition=since))
    return tuple(found)


def _comparable(one: Maintenance) -> Maintenance:
    shown = tuple((condition.type, condition.status) for condition in one.conditions)
    conditions = tuple(Condition(kind, status) for kind, status in shown)
    return replace(one, message="", conditions=conditions)


_WORDS = {
    Stage.DONE: "maintenance is over",
    Stage.LATE: "maintenance is over; the node was drained after the date of the event",
    Stage.MISSED: "maintenance is over; the platform started while pods had to be evicted",
    Stage.CANCELLED: "cancelled: it did not start",
    Stage.GONE: "it went away before anything was done about it",
}


def _ended(one: Maintenance, plan: NodePlan | None, now: datetime, *, gone: bool) -> Maintenance:
    """Return the object of an event that is over; `gone` says that its node no longer exists."""
    result = _outcome(plan, one.event, ended=True) if plan is not None else None
    stage = _last_stage(one, result, now, gone=gone)
    ended = replace(one, state=stage, due=None, reason="", message=_WORDS[stage], finished=now)
    truths = dict.fromkeys(LIFECYCLE, False)
    flag = {Stage.MISSED: MISSED, Stage.LATE: LATE}.get(stage, "")
    return replace(ended, conditions=_conditions(truths, flag, one, now))


def _last_stage(one: Maintenance, result: CaseResult | None, now: datetime, *, gone: bool) -> Stage:
    flags = {condition.type for condition in one.conditions}
    if result is CaseResult.MISSED or MISSED in flags:
        return Stage.MISSED
    if result is CaseResult.LATE or LATE in flags:
        return Stage.LATE
    if gone and one.state in _NOT_DRAINED:
        # The node is gone because of its event if the date has passed, or if the event takes the VM away.
        date = one.event.not_before
        if date <= now if date is not None else one.event.kind in (Kind.PREEMPT, Kind.TERMINATE):
            return Stage.MISSED
    if one.state not in _DONE:
        return Stage.GONE
    return Stage.CANCELLED if result is CaseResult.CANCELLED else Stage.DONE
