"""Instructions: what a person says about the maintenance of a node.

Each is an annotation of the node, in JSON, with who gave it and when:

    <prefix>/hold   {"by": "alice@example.com", "at": "2026-11-21T22:00:00Z", "reason": "…", "now": true}
    <prefix>/defer  {"by": "alice@example.com", "at": "…", "until": "2026-11-22T06:00:00Z"}
    <prefix>/NAME   {"by": "alice@example.com", "at": "…", "case": "…", "events": [{"kind": "Reboot", …}]}

The last one is a permission. Each kind is that of a feature (`PermissionKind`), and goes with the case.

A hold of all nodes, or of a pool, is in the ledger, so that it also holds nodes that join later.

`until` ends each of them. A hold that can't be read is in force, and a permission that can't be read permits
nothing: what a person wants is unknown then, and nothing starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from reconciler.model import limits
from reconciler.model.event import MaintenanceEvent
from reconciler.model.keys import keys_of
from reconciler.model.limits import count_of
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import Node
from reconciler.model.permission_kinds import PermissionKind
from reconciler.model.record import CasePerson, KnownEvent
from reconciler.model.values import decoded, encoded, replace

ALL = "all"
"""The scope of an instruction to all nodes."""

_POOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_BEFORE = 5
"""Ended words of people that a node keeps."""

_SENTENCE = 400
"""Characters of a sentence about one of them."""

_SHOWN = 240
"""Characters of a reason in a sentence; the annotation may have more."""


_UNVERIFIED = " (unverified)"


def unverified(who: str) -> str:
    """Return the name of a person who says it himself, marked; `k8s/base` lets nobody give another name."""
    return limits.text(who, limits.NAME - len(_UNVERIFIED)) + _UNVERIFIED


class Word(Struct, frozen=True):
    """Who gave an instruction, when, until when it applies, and why. Moments are UTC.

    `at` is None if it is not known. `until` is None for an instruction without an end. `scope` is `all` or
    `pool NAME` for one that was given to so many nodes at once, empty for one to a node. `problem` says what
    can't be read, empty if all can.
    """

    by: str = ""
    at: datetime | None = None
    until: datetime | None = None
    reason: str = ""
    scope: str = ""
    problem: str = ""

    def __post_init__(self) -> None:
        """Check the limits that a reader applies; ValueError says what to change."""
        for name, text, most in (
            ("name", self.by, limits.NAME),
            ("scope", self.scope, limits.NAME),
            ("reason", self.reason, limits.TEXT),
        ):
            if len(text) > most:
                raise ValueError(f"the {name} has {len(text)} characters; write at most {most}")

    @property
    def verified(self) -> bool:
        """Whether `by` is a user of the API server, and not what a person says of himself."""
        return bool(self.by) and not self.by.endswith(_UNVERIFIED)

    def ended(self, now: datetime) -> bool:
        """Whether it no longer applies at `now`."""
        return self.until is not None and self.until <= now

    def __str__(self) -> str:
        """Return it in words: `by alice@example.com since 2026-11-21T22:00:00Z: disk swap`."""
        return self._words("since")

    @property
    def once(self) -> str:
        """It in words, of what is done once and does not last, such as a permission: `by alice at …`."""
        return self._words("at")

    def _words(self, when: str) -> str:
        parts = [f"by {self.by}" if self.by else "by a person"]
        parts += [f"{when} {to_text(self.at)}"] if self.at is not None else []
        parts += [f"until {to_text(self.until)}"] if self.until is not None else []
        reason = "; ".join(text for text in (limits.text(self.reason, _SHOWN), self.problem) if text)
        return f"{' '.join(parts)}: {reason}" if reason else " ".join(parts)


def case_person(did: str, words: str, word: Word) -> CasePerson:
    """Return what the giver of a word did in a case, with a sentence about it."""
    reason = limits.text(word.reason, _SHOWN)
    return CasePerson(words, did, word.by, word.verified, word.at, word.until, reason)


class PersonHold(Struct, frozen=True):
    """No drain begins. `stops`: a drain that runs evicts no more pods, either.

    `prefix` is that of its key if it is the one of another installation, else empty.
    """

    word: Word
    stops: bool = False
    prefix: str = ""

    def words(self, node: str) -> str:
        """Return in words who holds the node, and how that ends."""
        who = {"": "it is", ALL: "all nodes are"}.get(self.word.scope, f"{self.word.scope} is")
        there = f", with the settings of keys.prefix {self.prefix}," if self.prefix else ""
        return f"{who} held {self.word}; {resume_command(self.word.scope, node)}{there} ends that"

    def applies(self, pool: str, now: datetime) -> bool:
        """Whether a hold of the ledger is about a node of this pool, and in force at `now` (aware)."""
        return self.word.scope in (ALL, pool_scope(pool)) and not self.word.ended(now)


class Deferral(Struct, frozen=True):
    """No drain begins before `word.until`, unless the deadline of an event comes first."""

    word: Word

    def words(self, node: str) -> str:
        """Return in words who deferred the drain, and how that ends."""
        return f"its drain is deferred {self.word}; {resume_command(self.word.scope, node)} ends that"


class ForEvents(Struct, frozen=True):
    """An instruction for these events, in the case that a pass announced at `case` (UTC).

    `case` is None if the node had no case yet.
    """

    word: Word
    case: datetime | None = None
    events: tuple[KnownEvent, ...] = ()

    def covers(self, event: MaintenanceEvent, case: datetime | None) -> bool:
        """Whether the event was there when the instruction was given.

        An event has to share an ID or its date with one of its events. Without these, it has to belong to the
        same case. An event of a more disruptive kind needs an instruction of its own.
        """
        return any(
            known.kind.severity >= event.kind.severity
            and known.matches(event)
            and (_names(known, event) or (self.case is not None and self.case == case))
            for known in self.events
        )


class Permission(ForEvents, frozen=True, kw_only=True):
    """A drain may begin for these events. `for_profiles`: it is also for the profiles of the node."""

    kind: PermissionKind
    for_profiles: bool = False


class Waiver(Struct, frozen=True):
    """What the drain for an event does not wait for, because a person began it.

    It waits for no planned start, and for no other word of a person but a hold. With `now`, it also waits for
    no window, freeze, place or spacing. `name` is that of the instruction in documents, `done` what the
    person did, such as `started`.
    """

    name: str
    done: str
    word: Word
    now: bool = False

    @property
    def person(self) -> CasePerson:
        """What that person did in the case."""
        return case_person(self.done, self.words, self.word)

    @property
    def words(self) -> str:
        """Who did what, when and why: `started by alice@host at …: disk swap`."""
        return f"{self.done} {self.word.once}"


class Ended(Struct, frozen=True):
    """What a person has ended on a node, and with which words: `done`, such as `resumed`, `by` whom and when.

    `did` is what the giver of `word` had done, such as `held`, empty for a release, which ends all there is.
    """

    done: str = ""
    by: str = ""
    at: datetime | None = None
    did: str = ""
    word: Word = Word()

    @property
    def end(self) -> Word:
        """Who ended it, and when."""
        return Word(self.by, self.at)

    @property
    def person(self) -> CasePerson:
        """What its giver did in a case, and who ended it."""
        if not self.did:
            return case_person(self.done, str(self), self.end)
        return replace(case_person(self.did, str(self), self.word), ended_by=self.by, ended_at=self.at)

    def __str__(self) -> str:
        """Return it in words: `held by alice@host since …: disk swap; resumed by bob@host at …`."""
        before = [limits.text(f"{self.did} {self.word}", _SENTENCE // 2)] if self.did else []
        return limits.text("; ".join((*before, f"{self.done} {self.end.once}")), _SENTENCE)


Waives = Callable[[MaintenanceEvent], Waiver | None]
"""Returns what the drain of one node for an event does not wait for, None if no person began it."""


class Instructions(Struct, frozen=True):
    """The instructions that apply to a node now; each is None if there is none.

    `permissions` has at most one of each kind, in the order of the features. `before` is what people have
    ended, the newest last.
    """

    hold: PersonHold | None = None
    deferral: Deferral | None = None
    permissions: tuple[Permission, ...] = ()
    before: tuple[Ended, ...] = ()

    def permission(self, name: str) -> Permission | None:
        """Return the permission whose kind has this name, None if there is none."""
        return next((given for given in self.permissions if given.kind.name == name), None)


_NOTHING_SAID = Instructions()


class Wait(Struct, frozen=True):
    """What a drain waits for, and when that ends by itself (UTC), None if it does not."""

    because: str
    until: datetime | None = None


class Kept(Struct, frozen=True):
    """What a drain for one event waits for: instructions, a missing permission, or the work of other tools.

    `of_features` are the waits of features by the names of their checks. `common` is that its condition
    is on most nodes, `other` that an older reconciler acts on the nodes.
    """

    hold: Wait | None = None
    deferral: Wait | None = None
    of_features: Mapping[str, Wait] = field(default_factory=dict)
    tools: Wait | None = None
    common: Wait | None = None
    other: Wait | None = None

    @property
    def waits(self) -> tuple[Wait, ...]:
        """Each of them that applies."""
        each = (self.hold, self.deferral, *self.of_features.values(), self.tools, self.common, self.other)
        return tuple(wait for wait in each if wait is not None)

    def of(self, check: str) -> Wait | None:
        """Return the wait of the feature's check with this name, None if it does not wait."""
        return self.of_features.get(check)


def pool_scope(pool: str) -> str:
    """Return the scope of an instruction to a pool; that of no pool if the node has none."""
    return f"pool {pool}" if pool else ""


def is_scope(text: str) -> bool:
    """Whether a text is the scope of an instruction to many nodes."""
    return text == ALL or (text.startswith("pool ") and _POOL.fullmatch(text[5:]) is not None)


def resume_command(scope: str, node: str = "") -> str:
    """Return the command that ends an instruction of this scope."""
    option = "--all" if scope == ALL else f"--{scope}" if scope else node
    return f"reconciler resume {option}"


def instructions_of(node: Node, prefix: str, now: datetime, fleet: Iterable[PersonHold] = ()) -> Instructions:
    """Return the instructions that apply to a node at `now` (aware). It raises nothing for any text.

    `fleet` are the holds of the ledger. Of several holds, the one that stops most and lasts longest applies.
    """
    keys, found = keys_of(prefix), node.annotations
    if not fleet and found.keys().isdisjoint(keys.instructions):
        return _NOTHING_SAID
    own = [hold_of(found[key], now) for key in (keys.hold, keys.hold_of_many) if key in found]
    holds = [one for one in own if one is not None]
    holds += [one for one in fleet if one.applies(node.pool, now)]
    return Instructions(
        max(holds, key=lambda hold: (hold.stops, hold.word.until or limits.UNREADABLE), default=None),
        _deferral(found[keys.defer], now) if keys.defer in found else None,
        tuple(
            given
            for key, kind in keys.permissions.items()
            if key in found and (given := permission_of(kind, found[key], now)) is not None
        ),
        said_before(found[keys.said_before]) if keys.said_before in found else (),
    )


def said_before(text: str) -> tuple[Ended, ...]:
    """Return what people have ended, the newest last; nothing if the text can't be read."""
    try:
        found = limits.loads(text)
    except ValueError:
        return ()
    each = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return tuple(map(_ended, each[-_BEFORE:]))


def _ended(found: dict[str, Any]) -> Ended:
    given = found.get("word")
    end = _word(found)
    return Ended(
        limits.text(_string(found.get("done")), limits.NAME),
        end.by,
        end.at,
        limits.text(_string(found.get("did")), limits.NAME),
        _word({**given, "by": given.get("who")}) if isinstance(given, dict) else Word(),
    )


def before_text(before: Iterable[Ended]) -> str:
    """Return the text of the annotation, with the newest of them.

    In each, `by` is the last key, and there is no other one of this name: `k8s/base` looks for it.
    """
    texts = []
    for one in tuple(before)[-_BEFORE:]:
        word = one.word
        given = {
            "who": limits.whole(word.by),
            "at": to_text(word.at) if word.at is not None else None,
            "until": to_text(word.until) if word.until is not None else None,
            "reason": limits.text(limits.whole(word.reason), _SENTENCE),
            "scope": word.scope,
        }
        found = {
            "done": one.done,
            "did": one.did,
            "word": {key: value for key, value in given.items() if value},
            "at": to_text(one.at) if one.at is not None else None,
            "by": limits.whole(one.by),
        }
        texts.append(json.dumps({key: value for key, value in found.items() if value}, ensure_ascii=False))
    return f"[{', '.join(texts)}]"


def stopping_hold(node: Node, prefix: str, now: datetime) -> str:
    """Return in words which hold stops a drain of the node that runs, empty if none does."""
    hold = instructions_of(node, prefix, now).hold
    return hold.words(node.name) if hold is not None and hold.stops else ""


def hold_text(hold: PersonHold) -> str:
    """Return the text of the annotation."""
    return _text(hold.word, {"now": hold.stops})


def fleet_text(holds: Iterable[PersonHold]) -> str:
    """Return the holds of the ledger as its text, empty for none; ValueError for more than a reader takes."""
    found = [json.loads(hold_text(hold)) for hold in holds]
    if len(found) > limits.EVENTS:
        raise ValueError(
            f"{count_of(len(found), 'pool', 'are')} held, and {limits.EVENTS} are read; hold all nodes "
            f"instead"
        )
    return json.dumps(found, ensure_ascii=False) if found else ""


def fleet_holds(text: str) -> tuple[PersonHold, ...]:
    """Return the holds of the ledger. A text that can't be read holds all nodes, and says so."""
    if not text:
        return ()
    try:
        found = limits.loads(text)
        if not isinstance(found, list) or len(found) > limits.EVENTS:
            raise ValueError(f"it is no list of at most {limits.EVENTS} holds")
        return tuple(PersonHold(_word(one), one.get("now") is True) for one in found)
    except (ValueError, TypeError, AttributeError) as error:
        why = limits.why_unreadable(error)
        problem = limits.text(f"`holds` of the ledger can't be read: {why}", _SHOWN)
        return (PersonHold(Word(scope=ALL, problem=problem)),)


def deferral_text(deferral: Deferral) -> str:
    """Return the text of the annotation."""
    return _text(deferral.word, {})


def permission_text(given: Permission) -> str:
    """Return the text of the annotation; ValueError if it would be longer than a reader takes."""
    more = {given.kind.for_profiles: True} if given.for_profiles and given.kind.for_profiles else {}
    return for_events_text(given, given.kind.noun, more)


def for_events_text(said: ForEvents, name: str, more: Mapping[str, object]) -> str:
    """Return the text of the annotation, with the keys of `more` whose value counts as true.

    Raises ValueError, with the name of the instruction, if it would be longer than a reader takes.
    """
    case = to_text(said.case) if said.case is not None else None
    text = _text(said.word, {"case": case, "events": [encoded(event) for event in said.events], **more})
    if len(text) > limits.ANNOTATION:
        raise ValueError(f"the {name} has {len(text)} characters, and {limits.ANNOTATION} are read")
    return text


def _text(word: Word, more: Mapping[str, object]) -> str:
    found = {
        "by": limits.whole(word.by),
        "at": to_text(word.at) if word.at is not None else None,
        "until": to_text(word.until) if word.until is not None else None,
        "reason": limits.whole(word.reason),
        "scope": limits.whole(word.scope),
        **more,
    }
    return json.dumps({key: value for key, value in found.items() if value}, ensure_ascii=False)


def hold_of(text: str, now: datetime) -> PersonHold | None:
    """Return the hold in an annotation's text, None for one that says no or has ended at `now`."""
    if text.strip().casefold() in ("", "false"):
        return None
    document, problem = _document(text)
    if problem:
        # A text that a person wrote with kubectl is a hold, too.
        return PersonHold(Word(reason=limits.text(text)))
    hold = PersonHold(_word(document), document.get("now") is True)
    return None if hold.word.ended(now) else hold


def _deferral(text: str, now: datetime) -> Deferral | None:
    document, problem = _document(text)
    if problem:
        return Deferral(Word(problem=problem))
    word = _word(document)
    if word.until is None and not word.problem:
        word = replace(word, problem="it has no `until`, so it lasts until the deadline")
    return None if word.ended(now) else Deferral(word)


def permission_of(kind: PermissionKind, text: str, now: datetime) -> Permission | None:
    """Return the permission in an annotation's text, None for one that has ended at `now` (aware).

    A text that can't be read permits nothing, and says why. Raises nothing for any text.
    """
    said, document = for_events(text, kind.noun, f"reconciler {kind.command}", may_be_empty=kind.for_profiles)
    if said.word.ended(now):
        return None
    for_profiles = document.get(kind.for_profiles) is True and not said.word.problem
    return Permission(said.word, said.case, said.events, kind=kind, for_profiles=for_profiles)


def for_events(
    text: str, name: str, command: str, *, may_be_empty: str = ""
) -> tuple[ForEvents, Mapping[str, Any]]:
    """Return the instruction in an annotation's text, and the JSON object with its other keys.

    One that can't be read is for no events, and `problem` of its word names it and the command that writes
    it. It needs no events if the key `may_be_empty` is true.
    """
    document, problem = _document(text)
    if problem:
        return ForEvents(Word(problem=problem)), {}
    word = _word(document)
    if word.problem:
        return ForEvents(word), document
    try:
        case = from_text(str(document["case"])) if "case" in document else None
        found = document.get("events", [] if may_be_empty and document.get(may_be_empty) is True else None)
        if not isinstance(found, list) or len(found) > limits.EVENTS:
            raise ValueError(f"`events` has to be a list of at most {limits.EVENTS} events")
        events = tuple(decoded(KnownEvent, event) for event in found)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        why = limits.why_unreadable(error)
        problem = limits.text(f"the {name} can't be read: {why}; {command} writes it", _SHOWN)
        return ForEvents(replace(word, problem=problem)), document
    return ForEvents(word, case, events), document


def _document(text: str) -> tuple[dict[str, Any], str]:
    """Return the JSON object, or what is wrong with the text."""
    try:
        document = limits.loads(text)
    except ValueError as error:
        return {}, limits.text(f"it is not JSON ({error})", _SHOWN)
    if not isinstance(document, dict):
        return {}, "it is not a JSON object"
    return document, ""


def _word(document: Mapping[str, Any]) -> Word:
    problems = []
    moments: dict[str, datetime | None] = {}
    for key in ("at", "until"):
        given = document.get(key)
        try:
            moments[key] = (
                from_text(given if isinstance(given, str) else limits.excerpt(given)) if given else None
            )
        except ValueError as error:
            moments[key] = None
            if key == "until":
                problems.append(limits.text(f"its `until` can't be read ({error})", _SHOWN))
    scope = document.get("scope")
    return Word(
        limits.text(_string(document.get("by")), limits.NAME),
        moments["at"],
        moments["until"],
        limits.text(_string(document.get("reason"))),
        # A command is shown with it, which people type.
        scope if isinstance(scope, str) and is_scope(scope) else "",
        "; ".join(problems),
    )


def _string(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else limits.excerpt(value)


def _names(known: KnownEvent, event: MaintenanceEvent) -> bool:
    """Whether both have what distinguishes an event from the next one of its kind: an ID, or a date."""
    ids = {text.casefold() for text in known.ids} & {text.casefold() for text in event.ids}
    dated = known.not_before is not None and event.not_before is not None
    return bool(ids) or dated
