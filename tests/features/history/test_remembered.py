"""The lines about what people do: each once, whatever comes between, and never without end."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.features.history.remembered import MOST_OF_A_KIND, Look, Remembered
from reconciler.model.instructions import (
    Deferral,
    Ended,
    PersonHold,
    Word,
    before_text,
    deferral_text,
    hold_text,
)
from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.model.record import CaseRecord
from reconciler.model.sayings import Deed, NodeSayings, Saying
from reconciler.model.snapshot import Ledger
from reconciler.passes.instruct import resumed
from reconciler.passes.release import release
from tests.support import builders
from tests.support.builders import NOW, held_node, minutes, node, planned, record, snapshot

KEYS = keys_of(builders.PREFIX)
ALICE, BOB = "alice@example.com", "bob@example.com"

EMPTY = Ledger()


def hold(at: datetime = NOW, by: str = ALICE, until: datetime | None = None) -> dict[str, str]:
    return {KEYS.hold: hold_text(PersonHold(Word(by, at, until, "disk copy")))}


def look(*nodes: Node, at: datetime = NOW, ledger: Ledger = EMPTY) -> Look:
    """What a pass sees of these nodes and of the ledger."""
    return Look.of(planned(snapshot(*nodes, ledger=ledger), now=at))


class Watched:
    """What follows from one look after the other; each time, another process may go on from the text."""

    def __init__(self) -> None:
        self.text = ""
        self.deeds: list[Deed] = []

    def see(self, *nodes: Node, at: datetime = NOW, ledger: Ledger = EMPTY) -> tuple[Deed, ...]:
        state, deeds = Remembered.read(self.text).after(look(*nodes, at=at, ledger=ledger), self.deeds)
        self.text = state.text
        self.deeds += deeds
        return deeds


def test_what_a_person_says_has_one_line_whichever_process_sees_it() -> None:
    watched = Watched()
    (deed,) = watched.see(node("a", annotations=hold()))

    assert (deed.did, deed.by, deed.verified, deed.node, deed.why) == ("held", ALICE, True, "a", "disk copy")
    assert (deed.at, deed.given, deed.node_uid) == (NOW, NOW, "uid-a")
    assert watched.see(node("a", annotations=hold())) == ()
    (again,) = watched.see(node("a", annotations=hold(by=BOB)), at=NOW + minutes(1))
    assert (again.did, again.by) == ("held", BOB)


def test_the_end_names_who_ended_it_where_a_command_did() -> None:
    watched, on = Watched(), node("a", annotations=hold())
    watched.see(on)
    done = resumed(on, builders.PREFIX, NOW + minutes(1), BOB)
    assert done.write is not None
    left = {key: text for key, text in done.write.annotations.items() if text is not None}
    (deed,) = watched.see(node("a", annotations=left), at=NOW + minutes(2))

    assert (deed.did, deed.by, deed.given) == ("resumed", BOB, NOW + minutes(1))
    assert watched.see(node("a"), at=NOW + minutes(3)) == ()


def test_of_what_somebody_removes_with_kubectl_nobody_is_named() -> None:
    watched = Watched()
    watched.see(node("a", annotations=hold()))
    (deed,) = watched.see(node("a"))

    assert (deed.did, deed.by, deed.verified) == ("hold ended", "", False)


def test_what_ends_by_its_time_or_with_its_node_is_no_deed() -> None:
    watched, end = Watched(), NOW + minutes(5)
    watched.see(node("a", annotations=hold(until=end)), node("b", annotations=hold()))

    assert watched.see(node("a"), at=end) == ()


def test_of_a_node_that_is_not_ours_to_know_nothing_is_said_and_nothing_forgotten() -> None:
    watched = Watched()
    watched.see(node("a", annotations=hold()))
    state, deeds = Remembered.read(watched.text).after(Look(NOW, {"a": None}, frozenset({"uid-a"})))

    assert deeds == ()
    assert state.text == watched.text


def test_a_release_and_the_drain_that_it_ends_are_one_deed() -> None:
    watched = Watched()
    by_hand = held_node(CaseRecord(), claimed_by=ALICE)
    (began,) = watched.see(by_hand)
    write = release(by_hand, builders.PREFIX, reset=False, by=Ended("released", BOB, NOW + minutes(3)))
    assert write is not None
    left = {key: text for key, text in write.annotations.items() if text is not None}
    (over,) = watched.see(node("a", annotations=left), at=NOW + minutes(4))

    assert (began.did, began.by) == ("drained by hand", ALICE)
    assert (over.did, over.by) == ("released", BOB)


def test_a_hold_of_all_nodes_is_a_line_of_the_cluster() -> None:
    watched, many = Watched(), PersonHold(Word(ALICE, NOW, reason="incident", scope="all"))
    before = Ended("resumed", ALICE, NOW - minutes(2), "held", Word(ALICE, NOW - minutes(3), scope="all"))
    (began,) = watched.see(node("a"), ledger=Ledger(holds=(many,), ended=(before,)))
    ended = Ended("resumed", BOB, NOW + minutes(8), "held", many.word)
    (over,) = watched.see(node("a"), at=NOW + minutes(9), ledger=Ledger(ended=(before, ended)))
    watched.see(node("a"), ledger=Ledger(holds=(many,)))
    (edited,) = watched.see(node("a"), ledger=Ledger(ended=(before,)))

    assert (began.did, began.scope, began.by, began.node) == ("held", "all", ALICE, "")
    assert (over.did, over.scope, over.by, over.given) == ("resumed", "all", BOB, NOW + minutes(8))
    assert (edited.did, edited.scope, edited.by) == ("hold ended", "all", "")


def test_a_release_of_all_nodes_is_one_line_and_what_it_ends_has_none() -> None:
    watched = Watched()
    watched.see(node("a", annotations=hold()), node("b", annotations=hold(NOW + minutes(6))))
    release = Ended("released", BOB, NOW + minutes(5), word=Word(scope="all"))
    known = Ledger(ended=(release,))
    (over,) = watched.see(
        node("a", annotations=hold()),
        node("b", annotations=hold(NOW + minutes(6))),
        at=NOW + minutes(6),
        ledger=known,
    )
    (later,) = watched.see(node("a"), node("b"), at=NOW + minutes(7), ledger=known)

    assert (over.did, over.scope, over.by, over.given, over.node) == ("released", "all", BOB, release.at, "")
    # What was said after the release ends by somebody else.
    assert (later.did, later.node, later.by) == ("hold ended", "b", "")
    # A ledger that was not readable for a moment brings no second line.
    assert watched.see(node("a"), node("b"), ledger=Ledger()) == ()
    assert watched.see(node("a"), node("b"), ledger=known) == ()


def test_a_pass_that_sees_only_the_release_is_a_new_look() -> None:
    before = look(node("a"))
    release = Ended("released", BOB, NOW, word=Word(scope="all"))

    assert not look(node("a"), ledger=Ledger(ended=(release,))).same(before)


def test_a_name_that_is_put_before_the_last_end_is_not_verified() -> None:
    said = (
        Ended("resumed", ALICE, NOW, "held", Word(BOB)),
        Ended("resumed", BOB, NOW, "deferred", Word(BOB)),
    )
    forged, own = Watched().see(node("a", annotations={KEYS.said_before: before_text(said)}))

    assert (forged.by, forged.verified) == (f"{ALICE} (unverified)", False)
    assert (own.by, own.verified) == (BOB, True)


def test_an_annotation_that_flaps_gets_ten_lines_in_an_hour_and_the_next_counts_the_rest() -> None:
    watched = Watched()
    for second in range(200):
        on = node("a", annotations=hold(NOW + timedelta(seconds=second)))
        watched.see(on, at=NOW + timedelta(seconds=second))
    assert len(watched.deeds) == MOST_OF_A_KIND

    (late,) = watched.see(node("a", annotations=hold(by=BOB)), at=NOW + minutes(90))
    assert late.more == 200 - MOST_OF_A_KIND


def test_hostile_texts_harm_no_line() -> None:
    texts = {
        KEYS.hold: '{"by": "\\u001b[2J\\ud800", "at": "9999-99-99", "reason": "' + "x" * 5000 + '"}',
        KEYS.defer: "[" * 3000,
        KEYS.said_before: '[{"done": "'
        + "y" * 2000
        + '", "by": {}, "at": 7, "did": 3, "word": {"who": []}}]',
    }
    deeds = Watched().see(node("a", annotations=texts))

    assert {"held", "deferred"} <= {deed.did for deed in deeds}
    assert max(len(deed.why) for deed in deeds) <= 400
    assert Remembered.read("{").text == Remembered.read("").text


@pytest.mark.parametrize(("case", "did"), [(NOW, ["permission ended"]), (None, []), (NOW + minutes(1), [])])
def test_what_goes_with_its_case_is_no_deed_and_what_goes_before_is(
    case: datetime | None, did: list[str]
) -> None:
    said = Saying("may", "permitted", Word(ALICE, NOW), "mark", "permission ended", with_case=True)
    before, _ = Remembered().after(Look(NOW, {"a": NodeSayings("a", "uid-a", (said,), NOW)}))
    held = Saying("hold", "held", Word(BOB, NOW), "mark")
    _, deeds = before.after(Look(NOW, {"a": NodeSayings("a", "uid-a", (held,), case)}))

    assert [deed.did for deed in deeds] == ["held", *did]


def test_the_line_names_the_case_of_the_node() -> None:
    deferred = {KEYS.defer: deferral_text(Deferral(Word(ALICE, NOW, NOW + minutes(60))))}
    (deed,) = Watched().see(held_node(record(), annotations=deferred))

    assert (deed.did, deed.case) == ("deferred", NOW - minutes(10))
