"""The base of sources that query a service, such as the API of a cloud.

A pass queries the scopes that are due. Each answer is kept, in the snapshot and in the ledger, until its
scope is queried again. All polled sources share this logic. A source defines its scopes, how their facts
become signals, and how scopes are written as JSON.
"""

from __future__ import annotations

import dataclasses
import json
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from msgspec import Struct

from reconciler.model import limits
from reconciler.model.event import Answer, Reading, Signal, WaitForNotice
from reconciler.model.moments import from_text, to_text
from reconciler.model.node import Node
from reconciler.model.polling import Alone, Listing, Memory, S, ScopeAnswer
from reconciler.model.problems import guarded
from reconciler.model.record import Record
from reconciler.model.snapshot import LedgerPart
from reconciler.model.values import Code, decoded, encoded, replace
from reconciler.passes.plugin import Source, SourceContext
from reconciler.settings.schema import Settings

SPARE = timedelta(minutes=1)
"""How soon a scope is queried that was skipped because few calls were left. After a failure, no scope is
queried sooner: some services lock a user after a few wrong passwords."""

_LONGEST_WAIT = timedelta(hours=6)

Json = dict[str, Any]
Fact = TypeVar("Fact", bound=Struct)


class PolledSection(Protocol):
    """The section of the settings that every polled source has; `every` is the interval of its queries."""

    @property
    def enabled(self) -> bool: ...

    @property
    def every(self) -> timedelta: ...


class PolledSource(Source, Generic[S, Fact]):
    """A source that queries a service for scopes `S` and gets facts `Fact`."""

    name: str
    """Also the key of its part of the ledger."""

    client: ClassVar[str]
    """The module of its client, which is loaded only if the source is enabled; see `SourceClients`."""

    fact: type[Fact]
    """The type of its facts; no field is `of`."""

    retry: ClassVar[timedelta] = timedelta(minutes=5)
    """How soon a scope is queried again after a failure, unless the service asks for a longer pause."""

    complete: ClassVar[bool] = True
    """Whether an answer contains every VM.

    If so, a missing VM is unknown. If not, a missing VM has no event.
    """

    follow: ClassVar[timedelta] = timedelta(minutes=2)
    """How often a scope is queried that has a node which the source follows."""

    most: ClassVar[int] = 128
    """The largest number of scopes to query. Nodes name their scopes, and a node can name one that does not
    exist, so those with the most nodes come first."""

    # What each source defines.

    @abstractmethod
    def section(self, settings: Settings) -> PolledSection:
        """Return its section of the settings."""

    @abstractmethod
    def locate(self, node: Node) -> tuple[S, str] | None:
        """Return the scope that answers for the node, and its VM's name there; None: it has no VM there."""

    @abstractmethod
    def signals(self, name: str, facts: Sequence[Fact], now: datetime) -> tuple[Signal, ...]:
        """Return the signals of the facts about this VM at `now`; none if there is no event."""

    def write_scope(self, scope: S) -> Any:
        """Return the scope as JSON; a text is written as it is."""
        return scope

    def read_scope(self, document: Any) -> S:
        """Parse the result of `write_scope`. A broken document may raise any error of Python's parsing."""
        return cast("S", str(document))

    def describe(self, scope: S) -> str:
        """Return the scope in words for people."""
        return str(scope)

    def follows(self, record: Record) -> bool:
        """Whether a node with this record is the reason to query the service more often."""
        del record
        return False

    def moments(self, fact: Fact) -> Iterable[datetime | None]:
        """Yield the moments at which the meaning of a fact changes."""
        del fact
        return ()

    def limits(self, paused: S, scope: S) -> bool:
        """Whether the pause that the service asks for one scope is one of another scope, too."""
        return paused == scope

    def alone(self, scope: S, name: str) -> S:
        """Return the scope that answers for one VM of a scope alone. A source that lists `silent` has one."""
        raise NotImplementedError(f"{self.name} has no scope for {name} of {scope} alone")

    @cached_property
    def kept(self) -> LedgerPart[Memory[S, Fact]]:
        """Its last answers in the ledger. Equal memories give equal texts."""
        code = Code(self._memory_out, self._memory_in)
        return LedgerPart(self.name, code, Memory(), "its service is asked again")

    # A source.

    def enabled(self, settings: Settings) -> bool:
        """Whether the settings enable it."""
        return self.section(settings).enabled

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return what the valid answers report about a managed node."""
        if not context.settings.manages(node.labels):
            return ()
        found = self.reading(node, context.memories.get(self.name, Memory()), context.now)
        return () if found is None else (found,)

    # Polling.

    def due(
        self, nodes: Iterable[Node], memory: Memory[S, Fact], now: datetime, *, followed: Collection[str] = ()
    ) -> tuple[S, ...]:
        """Return the scopes to query now; `followed` are the names of nodes that it follows.

        Those with the most nodes come first. With more than `most` scopes, the rest is never queried. After
        them come the VMs that are queried alone, those that wait longest first.
        """
        nodes = tuple(nodes)
        soon = self.scopes(node for node in nodes if node.name in followed)
        # A pause that is longer than any we grant was written by a clock that was ahead.
        paused = [scope for scope, until in memory.paused if now < until <= now + _LONGEST_WAIT + SPARE]
        largest = {
            scope: names
            for scope, names in self._largest(nodes).items()
            if not any(self.limits(other, scope) for other in paused)
        }
        lists = (scope for scope in largest if self._is_due(memory.of(scope), now, scope in soon))
        waiting = [
            (one.again, self.alone(scope, one.name))
            for scope, names in largest.items()
            if (answer := memory.of(scope)) is not None and not answer.problem
            for one in answer.alone
            if one.name in names and self._alone_is_due(one, now, one.name in soon.get(scope, ()))
            if not any(self.limits(other, self.alone(scope, one.name)) for other in paused)
        ]
        return (*lists, *(scope for _, scope in sorted(waiting, key=lambda pair: pair[0])))

    def _alone_is_due(self, one: Alone, now: datetime, followed: bool) -> bool:
        if now >= one.again or (one.asked is not None and one.asked > now + SPARE):
            return True
        return followed and not one.problem and one.asked is not None and now >= one.asked + self.follow

    def _is_due(self, answer: ScopeAnswer[S, Fact] | None, now: datetime, followed: bool) -> bool:
        if answer is None or now >= answer.again:
            return True
        # The clock was ahead when this was written: the answer would otherwise be valid for too long.
        if answer.asked > now + SPARE:
            return True
        return followed and not answer.problem and now >= answer.asked + self.follow

    def remembered(
        self,
        memory: Memory[S, Fact],
        listings: Collection[Listing[S, Fact]],
        nodes: Iterable[Node],
        every: timedelta,
        now: datetime,
    ) -> Memory[S, Fact]:
        """Return the memory with these answers; without any, the same memory.

        `nodes` are those of the cluster, managed or not. Scopes without a node are removed, and so are VMs
        that are no nodes.
        """
        if not listings:
            return memory
        now = now.replace(microsecond=0)
        fresh = {one.scope: one for one in listings}
        answers = []
        found = self.scopes(nodes)
        # Those that were asked now, then those with the most nodes.
        order = sorted(found, key=lambda scope: (scope not in fresh, -len(found[scope])))
        for scope, names in sorted((scope, found[scope]) for scope in order[: self.most]):
            before, listing = memory.of(scope), fresh.get(scope)
            answer = before
            if listing is not None:
                answer = self._answer(listing, before, names, every, now)
            if answer is not None:
                answers.append(self._with_alone(answer, fresh, names, every, now))
        paused = {scope: until for scope, until in memory.paused if until > now}
        paused |= {one.scope: self._next_try(one, every, now) for one in listings if one.wait is not None}
        return Memory(tuple(answers), tuple(sorted(paused.items())))

    def _next_try(self, listing: Listing[S, Fact], every: timedelta, now: datetime) -> datetime:
        """Return when to query a scope again after a failure: not before the service allows it."""
        wish = timedelta(seconds=min(listing.wait or 0, _LONGEST_WAIT.total_seconds()))
        return now + max(wish, min(every, self.retry), SPARE)

    def _with_alone(
        self,
        answer: ScopeAnswer[S, Fact],
        fresh: Mapping[S, Listing[S, Fact]],
        names: Collection[str],
        every: timedelta,
        now: datetime,
    ) -> ScopeAnswer[S, Fact]:
        """Return the answer of a list with those about its silent VMs."""
        if not answer.alone:
            return answer
        alone: list[Alone] = []
        facts = dict(answer.facts)
        for one in answer.alone:
            if one.name not in names:
                facts.pop(one.name, None)
                continue
            listing = fresh.get(self.alone(answer.scope, one.name))
            if listing is None:
                alone.append(one)
            elif not listing.asked:
                pause = self._next_try(listing, every, now) if listing.problem else now
                alone.append(replace(one, again=max(now + SPARE, pause)))
            elif listing.problem or one.name not in listing.seen:
                facts.pop(one.name, None)
                problem = listing.problem or f"the answer of {self.describe(listing.scope)} can't be read"
                alone.append(Alone(one.name, self._next_try(listing, every, now), now, problem))
            else:
                facts[one.name] = tuple(fact for of, fact in listing.found if of == one.name)
                alone.append(Alone(one.name, now + every, now))
        found = self.in_order((name, fact) for name, of_it in facts.items() for fact in of_it)
        return replace(answer, found=found, alone=tuple(alone))

    def _answer(
        self,
        listing: Listing[S, Fact],
        before: ScopeAnswer[S, Fact] | None,
        names: Collection[str],
        every: timedelta,
        now: datetime,
    ) -> ScopeAnswer[S, Fact]:
        scope = listing.scope
        known = before.alone if before is not None else ()
        of_known = {one.name for one in known}
        said = tuple(pair for pair in (before.found if before is not None else ()) if pair[0] in of_known)
        if listing.problem:
            again = self._next_try(listing, every, now)
            # What VMs said alone counts again once the list can be read, if it is not too old by then.
            return ScopeAnswer(scope, now, again, said, problem=listing.problem, alone=known)
        if not listing.asked:
            if before is not None and not before.problem:
                return replace(before, again=now + SPARE)
            problem = "few calls are left: it is asked a minute later"
            return ScopeAnswer(scope, now, now + SPARE, said, problem=problem, alone=known)
        silent = set(names) & listing.silent
        alone = {**{name: Alone(name, now) for name in silent}, **{one.name: one for one in known}}
        said = tuple(pair for pair in said if pair[0] in silent)
        ours = self.in_order((*(pair for pair in listing.found if pair[0] in names), *said))
        unseen = tuple(sorted(set(names) - listing.seen - silent)) if self.complete else ()
        turns = tuple(alone[name] for name in sorted(silent))
        return ScopeAnswer(scope, now, now + every, ours, unseen, alone=turns)

    def scopes(self, nodes: Iterable[Node]) -> dict[S, set[str]]:
        """Return the scopes of these nodes, sorted, each with the names of their VMs."""
        found: dict[S, set[str]] = {}
        for node in nodes:
            known, _ = guarded(
                f"{self.name}: node {node.name} has no known scope", partial(self.locate, node), None
            )
            if known is not None:
                found.setdefault(known[0], set()).add(known[1])
        return {scope: found[scope] for scope in sorted(found)}

    def _largest(self, nodes: Iterable[Node]) -> dict[S, set[str]]:
        found = self.scopes(nodes)
        # Sorting is stable: scopes of one size stay in their order.
        order = sorted(found, key=lambda scope: -len(found[scope]))
        return {scope: found[scope] for scope in order[: self.most]}

    def reading(self, node: Node, memory: Memory[S, Fact], now: datetime) -> Reading | None:
        """Return what the memory contains about a node, None if the node has no VM at this service."""
        known = self.locate(node)
        if known is None:
            return None
        scope, name = known
        answer = memory.of(scope)
        if answer is None and len(memory.answers) >= self.most:
            reason = f"{self.describe(scope)} is not queried: only the {self.most} with the most nodes are"
            return self._unknown(reason)
        if answer is None:
            return self._unknown(f"{self.describe(scope)} has not been queried yet")
        if answer.problem:
            return self._unknown(answer.problem)
        if now >= answer.again:
            return self._unknown(
                f"the last answer for {self.describe(scope)} is from {to_text(answer.asked)}"
            )
        if answer.asked > now + SPARE:
            at = to_text(answer.asked)
            return self._unknown(f"the last answer for {self.describe(scope)} is from the future: {at}")
        if name in answer.unseen:
            return self._unknown(f"the list of {self.describe(scope)} does not contain {name}")
        alone = next((one for one in answer.alone if one.name == name), None)
        if alone is not None and (why := self._not_known(scope, alone, now)):
            return self._unknown(why)
        signals = self.signals(name, answer.facts.get(name, ()), now)
        return Reading(self.name, Answer.EVENT, signals) if signals else Reading(self.name, Answer.NO_EVENT)

    def _not_known(self, scope: S, alone: Alone, now: datetime) -> str:
        """Return why nothing is known about a VM that is queried alone, empty if it is."""
        if alone.problem:
            return alone.problem
        one = self.describe(self.alone(scope, alone.name))
        if alone.asked is None:
            return f"the list of {self.describe(scope)} does not say it; {one} has not been queried yet"
        # A VM whose turn comes a little later is still known.
        if now >= alone.again + self.retry:
            return f"the last answer for {one} is from {to_text(alone.asked)}"
        return ""

    def _unknown(self, because: str) -> Reading:
        return Reading(self.name, Answer.UNKNOWN, because=because)

    def changes(self, memory: Memory[S, Fact], now: datetime) -> Iterator[datetime]:
        """Yield the moments after `now` at which its readings may change by time alone."""
        for answer in memory.answers:
            for one in answer.alone:
                yield from (moment for moment in (one.again, one.again + self.retry) if moment > now)
            of_facts = (moment for _, fact in answer.found for moment in self.moments(fact))
            yield from (moment for moment in (answer.again, *of_facts) if moment is not None and moment > now)

    # The memory as JSON. VMs with the same fact share an entry: a maintenance often affects many VMs.

    def _memory_out(self, memory: Memory[S, Fact]) -> Json:
        document: Json = {"answers": [self._answer_out(one) for one in memory.answers]}
        if memory.paused:
            document["paused"] = [
                {"scope": self.write_scope(scope), "until": to_text(until)} for scope, until in memory.paused
            ]
        return document

    def _memory_in(self, document: Json) -> Memory[S, Fact]:
        answers = {one.scope: one for one in map(self._answer_in, document["answers"])}
        paused = [
            (self.read_scope(one["scope"]), from_text(one["until"])) for one in document.get("paused", ())
        ]
        return Memory(tuple(answers[scope] for scope in sorted(answers)), tuple(paused))

    def _answer_out(self, answer: ScopeAnswer[S, Fact]) -> Json:
        out: Json = {
            "scope": self.write_scope(answer.scope),
            "asked": to_text(answer.asked),
            "again": to_text(answer.again),
        }
        if answer.found:
            out["found"] = _together((name, encoded(fact)) for name, fact in answer.found)
        if answer.unseen:
            out["unseen"] = list(answer.unseen)
        if answer.problem:
            out["problem"] = answer.problem
        if answer.alone:
            turns = map(encoded, answer.alone)
            out["alone"] = _together((turn.pop("name"), turn) for turn in turns)
        return out

    def _answer_in(self, document: Json) -> ScopeAnswer[S, Fact]:
        return ScopeAnswer(
            self.read_scope(document["scope"]),
            asked=from_text(document["asked"]),
            again=from_text(document["again"]),
            found=self.in_order(
                (str(name), decoded(self.fact, one))
                for one in document.get("found", ())
                for name in one["of"]
            ),
            unseen=tuple(str(name) for name in document.get("unseen", ())),
            problem=limits.text(str(document.get("problem", ""))),
            alone=tuple(
                sorted(
                    (
                        decoded(Alone, {**turn, "name": name})
                        for turn in document.get("alone", ())
                        for name in turn["of"]
                    ),
                    key=lambda one: one.name,
                )
            ),
        )

    def in_order(self, found: Iterable[tuple[str, Fact]]) -> tuple[tuple[str, Fact], ...]:
        """Return the facts in the order of a memory: by VM, then as text."""
        return tuple(sorted(found, key=lambda pair: (pair[0], _text(encoded(pair[1])))))


def _together(documents: Iterable[tuple[str, Json]]) -> list[Json]:
    """Return each document once, with the names `of` those that have it."""
    found: dict[str, Json] = {}
    for name, document in documents:
        found.setdefault(_text(document), {**document, "of": []})["of"].append(name)
    return list(found.values())


def _text(document: Json) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def with_settings(
    reading: Reading,
    ahead: timedelta | None,
    *,
    accept: bool = False,
    waits: WaitForNotice = WaitForNotice.NEVER,
) -> Reading:
    """Return the reading with the settings of its source in each plan.

    `ahead` is how long before its date a plan may require a drain, `accept` whether its offers are used, and
    `waits` whether it waits for a notice.
    """
    signals = tuple(
        dataclasses.replace(one, plan=dataclasses.replace(one.plan, ahead=ahead, accept=accept, waits=waits))
        if one.plan
        else one
        for one in reading.signals
    )
    return dataclasses.replace(reading, signals=signals) if signals else reading
