"""What people have ended is kept for the history of a case."""

from __future__ import annotations

import pytest

from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.record import State
from reconciler.passes.instruct import resumed, resumed_with_many
from tests.passes.decide.test_history import NOTHING, history, imds, play
from tests.support import builders
from tests.support.builders import NOW, minutes, node, record

BEFORE = f"{builders.PREFIX}/said-before"


def test_a_case_is_kept_with_who_held_its_node_and_who_resumed_it() -> None:
    key = f"{builders.PREFIX}/hold"
    text = hold_text(PersonHold(Word("alice@laptop", NOW, reason="disk copy")))
    scene, kept = history(on=node("a", annotations={key: text}))
    play(scene, imds())
    done = resumed(scene.cluster.nodes["a"], builders.PREFIX, NOW + minutes(2), "bob@desk")
    assert done.write is not None
    for name, value in done.write.annotations.items():
        scene.cluster.annotate("a", name, value)
    play(scene, imds("Started"), NOTHING)

    held = "held by alice@laptop since 2026-11-21T12:00:00Z: disk copy"
    (person,) = kept.case.people
    assert person.words == f"{held}; resumed by bob@desk at 2026-11-21T12:02:00Z"
    assert (person.did, person.name, person.verified, person.reason) == (
        "held",
        "alice@laptop",
        True,
        "disk copy",
    )
    assert (person.ended_by, person.ended_at) == ("bob@desk", NOW + minutes(2))
    assert not [name for name in scene.cluster.nodes["a"].annotations if name.endswith("said-before")]


@pytest.mark.parametrize(("pool", "kept"), [("np", True), ("db", False)])
def test_a_hold_of_a_pool_that_ends_is_kept_on_its_nodes_with_a_case(pool: str, kept: bool) -> None:
    hold = PersonHold(Word("alice@laptop", NOW, reason="incident", scope="pool np"))
    found = builders.held_node(record(State.REQUIRED, since=NOW), pool=pool)
    done = resumed_with_many(found, builders.PREFIX, NOW, "bob@desk", "pool np", (hold,))

    said = done.write.annotations[f"{builders.PREFIX}/said-before"] if done.write is not None else ""
    assert ('"who": "alice@laptop"' in (said or "")) is kept
    assert done.idle is not kept


def test_a_hold_of_many_nodes_that_goes_on_is_not_kept_as_resumed() -> None:
    own = PersonHold(Word("alice@laptop", NOW))
    many = PersonHold(Word("carol@desk", NOW, scope="all"), stops=True)
    texts = {f"{builders.PREFIX}/hold": hold_text(own), f"{builders.PREFIX}/hold-of-many": hold_text(many)}
    found = builders.held_node(record(State.REQUIRED, since=NOW), annotations=texts)
    done = resumed(found, builders.PREFIX, NOW, "bob@desk")

    assert done.write is not None
    said = done.write.annotations[f"{builders.PREFIX}/said-before"] or ""
    assert "alice@laptop" in said
    assert "carol@desk" not in said


def test_what_is_resumed_without_a_case_leaves_who_did_it_until_the_next_pass() -> None:
    text = hold_text(PersonHold(Word("alice@laptop", NOW)))
    key = f"{builders.PREFIX}/hold"
    done = resumed(node("a", annotations={key: text}), builders.PREFIX, NOW, "bob@desk")
    assert done.write is not None
    assert dict(done.write.annotations).keys() == {key, BEFORE}

    scene, _ = history(on=node("a", annotations={BEFORE: done.write.annotations[BEFORE] or ""}))
    play(scene, NOTHING)
    assert BEFORE not in scene.cluster.nodes["a"].annotations
