"""The record: the state of a node's cases, in an annotation of the node.

A node has one record. Each profile has its own state and data in it, and features have parts of these (see
`RecordPart`). The cordon and the drain belong to the node: each lists its claims, and is undone when the last
claim is removed.

Its text is JSON. A record with another UID is ignored. One that can't be read, or has a newer version, raises
RecordUnreadable and is never overwritten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Generic, TypeVar

from msgspec import Meta, Struct, field, structs

from reconciler.model import limits
from reconciler.model.clocks import OwnTimes
from reconciler.model.drains import HeldBy, KeptPods, Seen
from reconciler.model.errors import RecordUnreadable
from reconciler.model.event import Kind, MaintenanceEvent, Signal
from reconciler.model.keys import OwnKeys, keys_of
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.values import (
    Flat,
    Name,
    Written,
    code_of,
    decoded,
    encoded,
    key_of,
    parsed,
    register,
    replace,
)

# Two moments that differ by no more are the same one, because clocks and formats differ.
SAME_MOMENT = timedelta(minutes=1)


class State(StrEnum):
    """A node's state in one profile, with the names of maintenance-controller, worst last."""

    OPERATIONAL = "operational"
    REQUIRED = "maintenance-required"
    IN_MAINTENANCE = "in-maintenance"


_FROM_BEST = tuple(State)


def worst_of(*states: State) -> State:
    """Return the worst of these states, operational without any."""
    return max(states, key=_FROM_BEST.index, default=State.OPERATIONAL)


class Cordon(StrEnum):
    """Who owns the cordon: only our own and an adopted one are ever undone."""

    NONE = "none"
    OURS = "ours"
    FOREIGN = "foreign"
    ADOPTED_MECHANIC = "adopted:mechanic"
    ADOPTED = "adopted"
    """That of another tool, which a feature knows."""

    @property
    def may_be_undone(self) -> bool:
        """Whether law 2 allows us to uncordon."""
        return self is Cordon.OURS or self.adopted

    @property
    def adopted(self) -> bool:
        """Whether another tool set it, and it is ours now."""
        return self in (Cordon.ADOPTED_MECHANIC, Cordon.ADOPTED)


class Identity(Struct, frozen=True):
    """What distinguishes an event from the others of its node."""

    kind: Kind
    not_before: datetime | None
    ids: tuple[str, ...]
    sources: tuple[str, ...]
    condition: str = ""


class KnownEvent(Identity, frozen=True):
    """An event in the record: what identifies it, and the sources that reported it.

    `reports_start`: a source of it says when the maintenance has started. `waits` is set while the node's
    drain may not begin for it, so that no pod is evicted and no machine is deleted for it. That has no
    meaning before the first drain.
    """

    reports_start: bool = True
    waits: bool = False

    def matches(self, other: KnownEvent | MaintenanceEvent) -> bool:
        """Whether both are the same event, by the rule in docs/design.md, 'The life of a case'."""
        return same_event(self, other)


def identity(signal: Signal) -> Identity:
    """Return what distinguishes a signal from others."""
    ids = (signal.id,) if signal.id else ()
    return Identity(signal.kind, signal.not_before, ids, (signal.source,), signal.condition)


Identified = Identity | MaintenanceEvent
"""What has the fields of an identity."""


def same_event(one: Identified, two: Identified) -> bool:
    """Whether two identities of one node are the same event.

    They are if they share an ID, without regard to case (Azure writes GUIDs in either case). Two IDs of one
    source are two events, because that source distinguishes them. Other events are the same if kind (a
    Freeze may be a LiveMigration) and not_before (a minute either way, or missing on one side) agree.
    """
    if one.condition or two.condition:
        return one.condition == two.condition
    if one.ids and two.ids:
        if one.ids == two.ids or not {text.casefold() for text in one.ids}.isdisjoint(
            text.casefold() for text in two.ids
        ):
            return True
        if not set(one.sources).isdisjoint(two.sources):
            return False
    if one.kind != two.kind and not (one.kind.is_pause and two.kind.is_pause):
        return False
    if one.not_before is None or two.not_before is None:
        return True
    return abs(one.not_before - two.not_before) <= SAME_MOMENT


class ClaimKind(StrEnum):
    """Who can claim a node's cordon or drain. Features have kinds of their own, see `Feature.claims`."""

    PROFILE = "profile"
    """That of events of the platform."""

    PERSON = "person"


class Claim(Struct, frozen=True, order=True):
    """One claim on a node's cordon or drain, by a profile or by a person who drains the node by hand.

    `kind` is one of `ClaimKind`, or that of a feature for a profile of its own.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


_OF_THE_CORE = frozenset(kind.value for kind in ClaimKind)

Claims = Annotated[tuple[Claim, ...], "claims"]
"""Claims in their order, at least one. In the record each of them is one text."""


class DrainRecord(Struct, frozen=True):
    """The drain of a case: when this attempt began, which one it is, and when all pods had gone.

    `kept` are the pods that stayed. `seen` is what this attempt has seen so far, empty once it is done.
    """

    since: datetime
    attempt: Written[int] = 1
    done: datetime | None = None
    kept: KeptPods = KeptPods()
    seen: Seen = Seen()


class Asked(Struct, frozen=True):
    """What was asked of the platform by one offer of a plugin, so that maintenance begins or ends by us.

    `offer` is the name of the offer, `last` the moment of the last request (UTC), `attempts` how many there
    were. `events` are the IDs of the events that they were about, empty if they were about the whole case.
    `own` is what the offer has to know later, in its own form, such as the boot ID before the request. All of
    it is written before the request: the pass after a kill knows that the request may have been sent.
    """

    offer: str
    last: datetime
    attempts: Written[int] = 1
    events: tuple[str, ...] = ()
    own: str = ""


class PlatformStart(Struct, frozen=True):
    """The platform's start of one event, as a pass saw it first.

    `at` is UTC. `pods` is how many pods that the drain had to evict were on the node then, None if they could
    not be counted. `met` names the first of them, with their workloads and PodDisruptionBudgets; only the
    first start that met pods has it.
    """

    event: KnownEvent
    at: datetime
    pods: int | None = None
    met: str = ""


class Forecast(Struct, frozen=True):
    """The forecast that the node will not be drained in time. All moments are UTC.

    `cause` is what the miss comes from, `since` when a pass saw it first. From `warns` on people are warned
    of it. If it goes away and comes back, it is another forecast. `over` is when a pass saw first that a
    forecast of which people were warned no longer holds, None while it holds.
    """

    cause: str
    since: datetime
    warns: datetime
    over: datetime | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether it holds, and has held for long enough to warn people of it; `now` is aware."""
        return self.over is None and self.warns <= now


class CasePerson(Struct, frozen=True):
    """What a person did in a case, in `words` and apart. Moments are UTC, None where they are not known.

    `did` is such as `held`. `name` is empty if nobody knows who it was, and `verified` says whether it is a
    user of the API server. `ended_by` and `ended_at` say who has ended it, and when.
    """

    words: Written[str] = ""
    did: Name = ""
    name: Written[Name] = ""
    verified: Written[bool] = False
    at: datetime | None = None
    until: datetime | None = None
    reason: str = ""
    ended_by: Name = ""
    ended_at: datetime | None = None


class CaseFacts(Struct, frozen=True):
    """What happened in a case, apart from its drain.

    `starts` are the starts of its events. `deadline_passed` is when a pass saw first that the latest start
    was over and no drain had begun (UTC). `warned` are the reasons of the Warning Events that were sent about
    these facts: a fact is recorded first, then sent, then noted here, so each is sent at least once.
    `announced` is when a pass first saw the case, `planned` the start that was planned when its events last
    changed before the drain, `drain_began` when its first drain began (UTC). `moved` is how many pods its
    drains moved. Each of them is None if it is not known. `will_be_missed` is the forecast that holds now, or
    the last one of which people were warned. `begun` is the person who began the first drain, None if the
    plan did. `held_by` are the budgets that have refused evictions in attempts that have ended.
    """

    starts: tuple[PlatformStart, ...] = ()
    deadline_passed: datetime | None = None
    warned: tuple[str, ...] = ()
    announced: datetime | None = None
    planned: datetime | None = None
    drain_began: datetime | None = None
    moved: int | None = None
    will_be_missed: Forecast | None = None
    begun: CasePerson | None = None
    held_by: tuple[HeldBy, ...] = ()

    @property
    def any(self) -> bool:
        """Whether anything has happened; a warning of what will happen does not count."""
        return bool(self.starts) or self.deadline_passed is not None

    @property
    def announced_too_late(self) -> bool:
        """Whether the latest start was over when a pass saw the case first."""
        passed, announced = self.deadline_passed, self.announced
        return passed is not None and announced is not None and passed <= announced

    def believed(self, times: OwnTimes) -> CaseFacts:
        """Return the facts without a forecast that waits for a moment which a clock that was ahead wrote."""
        forecast = self.will_be_missed
        if forecast is None or forecast.since <= times.latest:
            return self
        return replace(self, will_be_missed=replace(forecast, warns=times.now))

    def start_of(self, event: KnownEvent | MaintenanceEvent) -> PlatformStart | None:
        """Return the start of an event, None if none was seen."""
        return next((start for start in self.starts if start.event.matches(event)), None)


class Uncordoned(Struct, frozen=True):
    """That somebody uncordoned a node in the middle of its case.

    `at` is when a pass saw it, `by` the field manager that set it, empty if the API server does not know it.
    `drained` is when the drain before it had ended, None if it had not. Moments are UTC.
    """

    at: datetime
    by: Written[str] = ""
    drained: datetime | None = None

    @property
    def words(self) -> str:
        """It as a sentence."""
        return f"{self.by or 'someone'} uncordoned the node at {to_text(self.at)}"


PartDocuments = Annotated[Mapping[str, Any], "parts"]
"""The parts of features as JSON, by name. In the record each of them is a key beside those of the core."""


class ProfileRecord(Struct, frozen=True):
    """The data of one profile about a node.

    `since` is when the profile entered its state, None while it is operational. `events` are the events of
    the case. `dismissed` are ignored because someone uncordoned the node, as `uncordoned` says, or because
    the platform did not follow our requests. The case of an uncordoned node goes on until these events are
    gone, though nothing is done for it. `quiet_since` is when the last of `events` was gone from every source
    that reported it. `asked` is what was asked of the platform, once for each offer. `facts` is what happened
    so far; a profile that is operational has some while an event that requires a drain can't start a case.
    `late` are events that the drain of the node did not help us to end: the node was given back, and its next
    drain starts late. `parts` are those of features, read through their `RecordPart`. All moments are UTC.
    """

    state: Written[State] = State.OPERATIONAL
    since: datetime | None = None
    events: tuple[KnownEvent, ...] = ()
    quiet_since: datetime | None = None
    dismissed: tuple[KnownEvent, ...] = ()
    asked: Annotated[tuple[Asked, ...], Meta(max_length=limits.INSTANCES)] = ()
    facts: CaseFacts = CaseFacts()
    late: tuple[KnownEvent, ...] = ()
    uncordoned: Uncordoned | None = None
    parts: PartDocuments = field(default_factory=dict)

    @property
    def open(self) -> bool:
        """Whether the profile does something for a case."""
        return self.state is not State.OPERATIONAL

    @property
    def goes_on(self) -> bool:
        """Whether there is a case that has not ended, also after somebody's uncordon."""
        return self.open or (self.uncordoned is not None and bool(self.events))

    def asked_by(self, offer: str) -> Asked | None:
        """Return what was asked by the offer of this name, None if nothing was."""
        return next((asked for asked in self.asked if asked.offer == offer), None)

    @property
    def has_data(self) -> bool:
        """Whether there is anything to keep."""
        return self.open or bool(self.dismissed or self.late) or self.facts != CaseFacts()

    def believed(self, times: OwnTimes) -> ProfileRecord:
        """Return the data without times in the future."""
        return replace(
            self,
            since=times.maybe(self.since),
            quiet_since=times.maybe(self.quiet_since),
            uncordoned=self.uncordoned and replace(self.uncordoned, at=times.of(self.uncordoned.at)),
            asked=tuple(replace(asked, last=times.of(asked.last)) for asked in self.asked),
            facts=self.facts.believed(times),
        )


class CaseRecord(ProfileRecord, frozen=True):
    """One profile's view of a node's record: its own data, and its claims on the node.

    `cordon` and `drain` are the node's if this profile claims them, else NONE and None. `node_cordon` is the
    owner of the node's cordon, with or without a claim of this profile. `also_claimed_by` are the other
    claims on the cordon. `elsewhere` names another profile for which the node is in maintenance, empty if
    there is none.
    """

    cordon: Cordon = Cordon.NONE
    drain: DrainRecord | None = None
    node_cordon: Cordon = Cordon.NONE
    also_claimed_by: tuple[Claim, ...] = ()
    elsewhere: str = ""

    @property
    def may_uncordon(self) -> bool:
        """Whether to uncordon when this profile's claim is removed:

        law 2 allows it, and there is no other claim.
        """
        return self.cordon.may_be_undone and not self.also_claimed_by

    def moved(self, state: State, now: datetime) -> CaseRecord:
        """Return the view with the profile in this state since `now`."""
        return replace(self, state=state, since=None if state is State.OPERATIONAL else now)

    def closed(
        self, dismissed: tuple[KnownEvent, ...] | None = None, late: tuple[KnownEvent, ...] = ()
    ) -> CaseRecord:
        """Return the view without its case and its claims;

        `dismissed` replaces the events that are ignored, and `late` are more events that start late.
        """
        return CaseRecord(
            self.state,
            self.since,
            late=tuple(dict.fromkeys((*self.late, *late))),
            dismissed=self.dismissed if dismissed is None else dismissed,
            uncordoned=self.uncordoned if dismissed is None else None,
            node_cordon=self.node_cordon,
            also_claimed_by=self.also_claimed_by,
            elsewhere=self.elsewhere,
        )


KEYS = frozenset(map(key_of, structs.fields(ProfileRecord))) - {"parts"}
"""The keys of the core in the data of a profile. Each other key is a part."""

Value = TypeVar("Value")
OfProfile = TypeVar("OfProfile", bound=ProfileRecord)


class RecordPart(Struct, Generic[Value], frozen=True, dict=True):
    """A feature's part of the data of a profile: one value of the feature's own type, while the case lasts.

    `name` is its key in the record. `type` is the type of the value, written and read as `values.py` says,
    and `empty` the value of a record without the part. The record keeps the document of a part, and a part is
    read where its feature needs it. So a part that no feature of this program knows stays as it is.
    """

    name: str
    type: Any
    empty: Value

    def of(self, record: ProfileRecord) -> Value:
        """Return the value in a record. Raises RecordUnreadable, with the name, if it can't be read."""
        document = record.parts.get(self.name)
        if document is None:
            return self.empty
        try:
            value: Value = code_of(self.type).read(document)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise RecordUnreadable(f"{self.name}: {limits.why_unreadable(error)}") from error
        return value

    def put(self, record: OfProfile, value: Value) -> OfProfile:
        """Return the record with this value. Raises RecordUnreadable where that would lose an unreadable one.

        A value that the record has already is not written in another form.
        """
        if value == self.of(record):
            return record
        others = {name: document for name, document in record.parts.items() if name != self.name}
        mine = {} if value == self.empty else {self.name: code_of(self.type).write(value)}
        return replace(record, parts={**others, **mine})


class ClaimedCordon(Struct, frozen=True):
    """A node's cordon: its owner, its start (UTC), and its claims."""

    whose: Cordon
    since: datetime
    claims: Claims


class ClaimedDrain(Struct, frozen=True):
    """A node's drain, and its claims."""

    drain: Flat[DrainRecord]
    claims: Claims


_OPERATIONAL = ProfileRecord()


class Record(Struct, frozen=True):
    """The record of one node: each profile's data, the cordon and the drain.

    `profiles` are sorted by name; one that is operational and has no data is left out. `lock` is the
    namespace of the lock of the reconciler that began the record, empty if that is not known.
    """

    uid: str
    profiles: tuple[tuple[str, ProfileRecord], ...] = ()
    cordon: ClaimedCordon | None = None
    drain: ClaimedDrain | None = None
    lock: str = ""

    def profile(self, name: str) -> ProfileRecord:
        """Return the data of a profile; a profile that is not in the record is operational."""
        return next((kept for one, kept in self.profiles if one == name), _OPERATIONAL)

    def case(self, profile: str) -> CaseRecord:
        """Return the record as one profile sees it."""
        mine, claim = self.profile(profile), Claim(ClaimKind.PROFILE, profile)
        cordon, drain = self.cordon, self.drain
        return CaseRecord(
            state=mine.state,
            since=mine.since,
            events=mine.events,
            quiet_since=mine.quiet_since,
            dismissed=mine.dismissed,
            asked=mine.asked,
            facts=mine.facts,
            late=mine.late,
            uncordoned=mine.uncordoned,
            parts=mine.parts,
            cordon=cordon.whose if cordon and claim in cordon.claims else Cordon.NONE,
            drain=drain.drain if drain and claim in drain.claims else None,
            node_cordon=cordon.whose if cordon else Cordon.NONE,
            also_claimed_by=_without(cordon.claims, claim) if cordon else (),
            elsewhere=next((name for name in self.in_maintenance if name != profile), ""),
        )

    def with_case(self, profile: str, case: CaseRecord, now: datetime) -> Record:
        """Return the record with one profile's data and claims as in `case`; all others keep theirs."""
        mine = ProfileRecord(
            state=case.state,
            since=case.since,
            events=case.events,
            quiet_since=case.quiet_since,
            dismissed=case.dismissed,
            asked=case.asked,
            facts=case.facts,
            late=case.late,
            uncordoned=case.uncordoned,
            parts=case.parts,
        )
        claim = Claim(ClaimKind.PROFILE, profile)
        kept = {name: data for name, data in self.profiles if name != profile}
        if mine.has_data:
            kept[profile] = mine
        record = replace(self, profiles=tuple(sorted(kept.items(), key=lambda pair: pair[0])))
        record = (
            record.uncordoned(claim)
            if case.cordon is Cordon.NONE
            else record.cordoned(case.cordon, claim, now)
        )
        return record.undrained(claim) if case.drain is None else record.drained(case.drain, claim)

    def cordoned(self, whose: Cordon, claim: Claim, now: datetime) -> Record:
        """Return the record with one more claim on the cordon; a new cordon is since `now`."""
        before = self.cordon
        since = before.since if before and before.whose is whose else now.replace(microsecond=0)
        return replace(
            self, cordon=ClaimedCordon(whose, since, _with(before.claims if before else (), claim))
        )

    def uncordoned(self, claim: Claim) -> Record:
        """Return the record without this claim on the cordon, and without the cordon if it was the last."""
        before = self.cordon
        left = _without(before.claims, claim) if before else ()
        return replace(self, cordon=replace(before, claims=left) if before and left else None)

    def drained(self, drain: DrainRecord, claim: Claim) -> Record:
        """Return the record with this drain and one more claim on it."""
        before = self.drain
        return replace(self, drain=ClaimedDrain(drain, _with(before.claims if before else (), claim)))

    def undrained(self, claim: Claim) -> Record:
        """Return the record without this claim on the drain, and without the drain if it was the last."""
        before = self.drain
        left = _without(before.claims, claim) if before else ()
        return replace(self, drain=replace(before, claims=left) if before and left else None)

    def in_force(self, *, cordoned: bool) -> Record:
        """Return the record as it applies to the node now; `cordoned` is whether the node is unschedulable.

        The claims of people end with the cordon: whoever uncordons a node that is drained by hand ends that
        drain. The claims of profiles stay, because a pass closes their cases.
        """
        if cordoned:
            return self
        people = {claim for claim in self._claims if claim.kind == ClaimKind.PERSON}
        record = self
        for claim in people:
            record = record.uncordoned(claim).undrained(claim)
        return record

    def believed(self, profile: str, times: OwnTimes) -> Record:
        """Return the record without times in the future, for this profile and for cordon and drain.

        The data of other profiles stays as it is: each is read like this when its own turn comes.
        """
        profiles = tuple(
            (name, kept.believed(times) if name == profile else kept) for name, kept in self.profiles
        )
        cordon, drain = self.cordon, self.drain
        if cordon is not None:
            cordon = replace(cordon, since=times.of(cordon.since))
        if drain is not None:
            known = drain.drain
            seen = known.seen.believed(times)
            known = replace(known, since=times.of(known.since), done=times.maybe(known.done), seen=seen)
            drain = replace(drain, drain=known)
        return replace(self, profiles=profiles, cordon=cordon, drain=drain)

    @property
    def in_maintenance(self) -> tuple[str, ...]:
        """The profiles for which the node is in maintenance."""
        return tuple(name for name, kept in self.profiles if kept.state is State.IN_MAINTENANCE)

    def has_asked(self, offer: str) -> bool:
        """Whether something was asked by this offer for a profile."""
        return any(kept.asked_by(offer) is not None for _, kept in self.profiles)

    @property
    def drain_under_way(self) -> ClaimedDrain | None:
        """The drain of the node, None if there is none or it is done."""
        return self.drain if self.drain is not None and self.drain.drain.done is None else None

    @property
    def being_drained(self) -> bool:
        """Whether a profile is draining the node and pods are left."""
        drain = self.drain_under_way
        return drain is not None and any(claim.kind != ClaimKind.PERSON for claim in drain.claims)

    @property
    def keeps_pods(self) -> bool:
        """Whether the drain of the node is done, and pods stayed."""
        drain = self.drain.drain if self.drain is not None else None
        return drain is not None and drain.done is not None and drain.kept.count > 0

    @property
    def claimed_by(self) -> str:
        """The person who drains the node by hand, empty if there is none."""
        if self.cordon is None and self.drain is None:
            return ""
        return ", ".join(sorted({claim.name for claim in self._claims if claim.kind == ClaimKind.PERSON}))

    @property
    def of_features(self) -> tuple[Claim, ...]:
        """The claims of features on the cordon and the drain, sorted, each once."""
        return tuple(sorted({claim for claim in self._claims if claim.kind not in _OF_THE_CORE}))

    @property
    def _claims(self) -> tuple[Claim, ...]:
        return (*(self.cordon.claims if self.cordon else ()), *(self.drain.claims if self.drain else ()))

    @property
    def worst(self) -> State:
        """The worst state of all profiles, for the label; a drain by hand counts as in maintenance."""
        if self.claimed_by:
            return State.IN_MAINTENANCE
        return worst_of(*(kept.state for _, kept in self.profiles))

    @property
    def empty(self) -> bool:
        """Whether the record can be removed, because it has no data."""
        return not self.profiles and self.cordon is None and self.drain is None


class Unreadable(Struct, frozen=True):
    """A record that can't be read or has a newer version, and why."""

    because: str


def _with(claims: tuple[Claim, ...], claim: Claim) -> tuple[Claim, ...]:
    return tuple(sorted({*claims, claim}))


def _without(claims: tuple[Claim, ...], claim: Claim) -> tuple[Claim, ...]:
    return tuple(one for one in claims if one != claim)


VERSION = 1

_LABEL = 63
"""Characters of a label's value."""


def shown_labels(record: Record, keys: OwnKeys) -> dict[str, str]:
    """Return the labels that show the record in a list of nodes; none while all profiles are operational.

    They follow from the record alone, so they change only with it and need no request of their own.
    """
    if record.worst is State.OPERATIONAL:
        return {}
    words = "by-hand"
    if record.in_maintenance or not record.claimed_by:
        name = max(record.profiles, key=lambda pair: _FROM_BEST.index(pair[1].state))[0]
        case = record.case(name)
        drained_for = [event for event in case.events if not event.waits] or case.events
        worst = max(drained_for, key=lambda event: event.kind.severity, default=None)
        what = name if worst is None else worst.condition or worst.kind.value
        words = f"{what}-{_progress(case)}"
    why = re.sub(r"[^A-Za-z0-9._-]+", "-", words)
    # The end says how far it is.
    return {keys.state: record.worst.value, keys.why: why[-_LABEL:].strip("-._")}


def _progress(case: CaseRecord) -> str:
    if case.quiet_since is not None:
        return "over"
    if case.state is not State.IN_MAINTENANCE:
        return "announced"
    if case.drain is None or case.drain.done is not None:
        return "drained"
    return "blocked" if case.drain.seen.blocked is not None else "draining"


def record_of(node: Node, prefix: str) -> Record | Unreadable | None:
    """Return a node's record, None if it has none or one with another UID."""
    text = node.annotations.get(keys_of(prefix).record)
    if text is None:
        return None
    try:
        read = _kept if len(text) <= _SHORT else from_annotation
        return read(text, node.uid)
    except RecordUnreadable as error:
        return Unreadable(str(error))


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def to_annotation(record: Record) -> str:
    """Return the record as the annotation's text: sorted and compact. Equal records give equal texts.

    Raises RecordUnreadable if it would be longer than `from_annotation` reads.
    """
    profiles: dict[str, Any] = {}
    for name, kept in record.profiles:
        profile = encoded(kept)
        parts: dict[str, Any] = profile.pop("parts", {})
        profiles[name] = profile | parts
    document: dict[str, Any] = {"version": VERSION, "uid": record.uid, "profiles": profiles}
    if record.cordon:
        document["cordon"] = encoded(record.cordon)
    if record.drain:
        document["drain"] = encoded(record.drain)
    if record.lock:
        document["lock"] = record.lock
    text = _ENCODER.encode(document)
    if len(text) > limits.ANNOTATION:
        raise RecordUnreadable(f"it would be longer than {limits.ANNOTATION} characters")
    return text


def from_annotation(text: str, uid: str) -> Record | None:
    """Parse the record of the node with this UID; None if it is of another node.

    Raises RecordUnreadable if the text is no record or has a newer version.
    """
    try:
        document = parsed(text)
        version = document["version"]
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise RecordUnreadable(f"its version is {limits.excerpt(version)}")
        if version > VERSION:
            raise RecordUnreadable(f"it has version {version}, but this program knows {VERSION}")
        if document["uid"] != uid:
            return None
        profiles = {str(name): _profile(kept) for name, kept in document["profiles"].items()}
        cordon, drain = document.get("cordon"), document.get("drain")
        return Record(
            document["uid"],
            tuple(sorted((pair for pair in profiles.items() if pair[1].has_data), key=lambda pair: pair[0])),
            decoded(ClaimedCordon, cordon) if cordon is not None else None,
            decoded(ClaimedDrain, drain) if drain is not None else None,
            limits.text(str(document.get("lock", "")), limits.NAME),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise RecordUnreadable(limits.text(f"it can't be read: {limits.why_unreadable(error)}")) from error


_SHORT = 2048
"""Characters of a record that is read once. The same text stays on a node for many passes."""

_kept = lru_cache(maxsize=1024)(from_annotation)


def _profile(document: Mapping[str, Any]) -> ProfileRecord:
    kept = decoded(ProfileRecord, document)
    if kept.open and kept.since is None:
        raise ValueError("a case has no start")
    parts = {name: document[name] for name in document.keys() - KEYS}
    return replace(kept, since=kept.since if kept.open else None, parts=parts)


def _forecast_out(forecast: Forecast) -> dict[str, Any]:
    document = encoded(forecast)
    if forecast.warns == forecast.since:
        del document["warns"]
    return document


def _forecast_in(document: Mapping[str, Any]) -> Forecast:
    return decoded(Forecast, {"warns": document["since"], **document})


def _claims_out(claims: tuple[Claim, ...]) -> list[str]:
    return [str(claim) for claim in claims]


def _claims_in(claims: list[str]) -> tuple[Claim, ...]:
    found = {
        Claim(limits.text(kind, limits.NAME), limits.text(name))
        for kind, _, name in (claim.partition(":") for claim in claims)
    }
    if any(not (claim.kind.isascii() and claim.kind.isalpha()) for claim in found):
        raise ValueError("a claim of its cordon or drain does not say of what kind it is")
    if not found:
        raise ValueError("its cordon or drain has no claims")
    return tuple(sorted(found))


register(Forecast, _forecast_out, _forecast_in)
register(Claims, _claims_out, _claims_in)
# Only the data of a profile as a whole says which of its keys are parts.
register(PartDocuments, dict, lambda _: {})
