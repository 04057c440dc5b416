"""What people say, as the last pass saw it, and the lines about what has changed since.

The state is kept with the lines, so the next process writes none of them again, and sees what has changed
while no process ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from reconciler.model import limits
from reconciler.model.content import short_hash
from reconciler.model.instructions import ALL, Ended, PersonHold, Word, hold_text
from reconciler.model.plan import Plan
from reconciler.model.sayings import EVERYTHING, Deed, NodeSayings, deed_of, mark_of
from reconciler.model.values import Name, Written, decoded, encoded, parsed, replace

MOST_OF_A_KIND, MOST = 10, 2000
"""Lines in an hour: of one deed on one node, and in all. Further ones are counted."""

_HOUR = timedelta(hours=1)

_LARGEST = 1 << 20
"""Characters of the state."""


class Look(Struct, frozen=True):
    """What a pass saw `at` a moment (UTC): what people say of nodes, the UIDs of all, and the holds of many.

    `holds` is None if they are not known. `ended` is who ended the last holds of many, or released all nodes.
    """

    at: datetime
    nodes: Mapping[str, NodeSayings | None]
    uids: frozenset[str] = frozenset()
    holds: tuple[PersonHold, ...] | None = ()
    ended: tuple[Ended, ...] = ()

    @staticmethod
    def of(plan: Plan) -> Look:
        """Return what the pass with this plan saw."""
        known = not any(hold.word.problem for hold in plan.holds)
        return Look(
            plan.now.replace(microsecond=0),
            plan.sayings,
            plan.uids,
            plan.holds if known else None,
            plan.ended,
        )

    def same(self, other: Look | None) -> bool:
        """Whether another look saw the same of what people say."""
        return other is not None and (self.nodes, self.holds, self.ended) == (
            other.nodes,
            other.holds,
            other.ended,
        )

    @property
    def releases(self) -> tuple[Ended, ...]:
        """Who released all nodes. Of an end of a hold it is known what was done before."""
        return tuple(end for end in self.ended if end.done and not end.did and end.word.scope == ALL)

    def released(self, given: datetime | None) -> bool:
        """Whether a release of all nodes came after what was given at this moment."""
        return given is not None and any(end.at is not None and given <= end.at for end in self.releases)


class Stood(Struct, frozen=True):
    """A word that stands: its mark, what its giver did and when, and how its end is said."""

    mark: Name
    did: Name
    over: Name = ""
    until: datetime | None = None
    with_case: bool = False
    given: datetime | None = None


class _Node(Struct, frozen=True):
    uid: Name
    case: datetime | None = None
    words: Annotated[Mapping[Name, Stood], Meta(max_length=limits.EVENTS)] = field(default_factory=dict)


class Remembered(Struct, frozen=True):
    """What people say of nodes and, by its scope, of many, as a pass saw it `at` a moment (UTC).

    `cut`: it is not all of it, because there are too many nodes. `more` counts the deeds since the last line
    that have none. `releases` are the marks of releases of all nodes.
    """

    at: datetime | None = None
    nodes: Annotated[Mapping[Name, _Node], Meta(max_length=limits.INSTANCES)] = field(default_factory=dict)
    many: Annotated[Mapping[Name, Stood], Meta(max_length=limits.EVENTS)] = field(default_factory=dict)
    cut: bool = False
    more: Written[Annotated[int, Meta(ge=0, le=limits.COUNT)]] = 0
    releases: tuple[Name, ...] = ()

    @staticmethod
    def read(text: str) -> Remembered:
        """Return what a text says, nothing for an empty one and for one that can't be read."""
        try:
            return decoded(Remembered, parsed(text, _LARGEST)) if text else Remembered()
        except ValueError:
            return Remembered()

    @property
    def text(self) -> str:
        """The state as JSON."""
        return msgspec.json.encode(encoded(self)).decode()

    def after(self, look: Look, known: Iterable[Deed] = ()) -> tuple[Remembered, tuple[Deed, ...]]:
        """Return the state after a look, and the lines that follow from it; `known` are those before."""
        recent = [deed for deed in known if deed.at > look.at - _HOUR]
        kinds, count, more = Counter(map(_kind, recent)), len(recent), self.more
        deeds: list[Deed] = []
        for deed in self._changed(look):
            kind = _kind(deed)
            if kinds[kind] >= MOST_OF_A_KIND or count >= MOST:
                more = min(more + 1, limits.COUNT)
                continue
            kinds[kind] += 1
            count += 1
            deeds.append(replace(deed, more=more))
            more = 0
        nodes = {name: node for name, node in self.nodes.items() if look.nodes.get(name, node) is None}
        nodes |= {
            place.node: _Node(
                place.uid,
                place.case,
                {
                    said.name: Stood(
                        said.mark, said.did, said.over, said.word.until, said.with_case, said.word.at
                    )
                    for said in place.said
                },
            )
            for place in look.nodes.values()
            if place is not None
        }
        many = self.many if look.holds is None else {hold.word.scope: _many(hold) for hold in look.holds}
        kept = dict(sorted(nodes.items())[: limits.INSTANCES])
        # A ledger that can't be read says nothing of them.
        releases = tuple(map(_mark, look.releases)) or self.releases
        state = Remembered(look.at, kept, dict(many), len(nodes) > len(kept), more, releases)
        same = replace(state, at=self.at) == self
        return (self if same else state), tuple(deeds)

    def _changed(self, look: Look) -> Iterator[Deed]:
        for name, place in look.nodes.items():
            if place is not None:
                before = self.nodes.get(name)
                yield from self._of_node(before if before and before.uid == place.uid else None, place, look)
        for name, before in self.nodes.items():
            if name not in look.nodes and before.uid in look.uids:
                yield from self._of_node(before, NodeSayings(name, before.uid), look)
        for release in look.releases:
            if _mark(release) not in self.releases:
                yield deed_of(replace(release.end, scope=release.word.scope), look.at, release.done)
        for hold in look.holds or ():
            stood = self.many.get(hold.word.scope)
            if stood is None or stood.mark != _many(hold).mark:
                yield deed_of(hold.word, look.at, "held")
        if look.holds is not None:
            now = {hold.word.scope for hold in look.holds}
            for scope, stood in self.many.items():
                if scope not in now and not _over(stood, look.at):
                    ends = (end for end in look.ended if end.did and end.word.scope == scope)
                    ended = next((end for end in ends if end.word.at == stood.given), None)
                    word, did = (ended.end, ended.done) if ended is not None else (Word(), stood.over)
                    yield deed_of(replace(word, scope=scope), look.at, did)

    def _of_node(self, before: _Node | None, place: NodeSayings, look: Look) -> Iterator[Deed]:
        words: Mapping[str, Stood] = before.words if before is not None else {}
        ended = set()
        for said in place.said:
            stood = words.get(said.name)
            if stood is not None and stood.mark == said.mark:
                continue
            if said.ends:
                ended.add(said.ends)
            given = said.word.at
            if not (self.cut and before is None and self.at and given is not None and given < self.at):
                yield deed_of(said.word, look.at, said.did, place)
        names = {said.name for said in place.said}
        for name, stood in words.items():
            if (
                name in names
                or not stood.over
                or _over(stood, look.at)
                or look.released(stood.given)
                or not ended.isdisjoint({stood.did, EVERYTHING})
            ):
                continue
            goes_on = before is not None and place.case is not None and place.case == before.case
            if goes_on or not stood.with_case:
                yield deed_of(Word(), look.at, stood.over, place)


def _over(stood: Stood, at: datetime) -> bool:
    """Whether its time was over, so that nobody has ended it."""
    return stood.until is not None and stood.until <= at


def _many(hold: PersonHold) -> Stood:
    mark = short_hash(hold_text(hold).encode("utf-8", "replace"))
    return Stood(mark, "held", "hold ended", hold.word.until, given=hold.word.at)


def _mark(release: Ended) -> str:
    return mark_of(str(release))


def _kind(deed: Deed) -> tuple[str, str, str]:
    return deed.node_uid, deed.scope, deed.did
