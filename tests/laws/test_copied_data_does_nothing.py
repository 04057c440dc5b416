"""A node that gets all labels and annotations of another one does nothing that the other would have done.

AKS copies custom labels and annotations to new nodes in an image upgrade (Azure/AKS#2679).
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.keys import keys_of
from reconciler.model.record import State
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from tests.laws.histories import History, Step, agent_steps, hand_steps, platform_steps, small_world, waits
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import IMDS, NOW, PREFIX, RECORD, REQUEST, UID, minutes
from tests.support.searching import examples

KEYS = keys_of(PREFIX)
COPIED = Hits()


def copy_of(history: History, name: str) -> None:
    """Let a new node join with all labels and annotations of another one, on a VM of its own."""
    old = history.cluster.nodes[name]
    fresh = builders.on_vm(builders.node("copy", conditions=(builders.quiet(history.now),)), 77)
    history.cluster.put_node(replace(fresh, labels=old.labels, annotations=old.annotations))


@COPIED.at_least(25)
@settings(max_examples=examples(120))
@given(
    st.lists(st.tuples(platform_steps | agent_steps | hand_steps, waits), min_size=1, max_size=6),
    strategies.policies(),
    st.sampled_from(("n0", "n1", "n2")),
)
def test_a_copy_of_all_labels_and_annotations_does_nothing(
    steps: list[tuple[Step, timedelta]], policy: Settings, name: str
) -> None:
    history = History(small_world(), policy)
    for step, wait in steps:
        step(history)
        history.wait(wait)
        history.look()
    # What somebody wrote by hand belongs to the node on which a pass has seen it.
    history.until_still(most=20)
    copy_of(history, name)
    copied = set(history.cluster.nodes["copy"].annotations)
    COPIED.count(bool(copied & (KEYS.bound | {IMDS})))
    for _ in range(3):
        plan, _ = history.look()
        for node in plan.nodes:
            if node.node == "copy":
                assert node.after is State.OPERATIONAL
                assert not [judged for judged in node.events if judged.asks]
                assert not node.status.instructions.before
                assert node.status.instructions.permissions == ()
        history.wait(minutes(1))

    copy = history.cluster.nodes["copy"]
    assert not copy.unschedulable
    if policy.mode == "Enforce" and policy.manages(copy.labels):
        assert set(copy.annotations).isdisjoint(KEYS.bound | {IMDS})
        assert KEYS.state not in copy.labels


def enforced() -> History:
    """A small cluster in which the reconciler acts."""
    return History(small_world(), builders.settings())


def test_what_was_copied_is_said_by_its_keys_and_removed_in_one_patch() -> None:
    history = enforced()
    history.cluster.annotate("n0", REQUEST, builders.DRAIN_NOW)
    history.until_still()
    copy_of(history, "n0")
    plan, _ = history.look()

    said = [note for note in plan.notes if note.startswith("copy has data of another node")]
    assert len(said) == 1
    assert RECORD in said[0]
    assert REQUEST in said[0]
    assert not KEYS.bound.intersection(history.cluster.nodes["copy"].annotations)
    plan, _ = history.look()
    assert not [note for note in plan.notes if note.startswith("copy has")]


def test_what_a_person_writes_on_a_node_with_copied_data_counts_and_the_rest_goes() -> None:
    history = enforced()
    history.cluster.annotate("n0", REQUEST, builders.DRAIN_NOW)
    history.until_still()
    copy_of(history, "n0")
    history.cluster.annotate("copy", UID, None)
    history.cluster.annotate("copy", RECORD, None)

    # Nothing shows any more that the request was copied: it is as one that a person has written by hand.
    history.until_still()
    assert history.cluster.nodes["copy"].unschedulable
    assert history.cluster.nodes["copy"].annotations[UID] == history.cluster.nodes["copy"].uid


@pytest.mark.parametrize("mode", ["Enforce", "Finish"])
def test_a_hold_that_was_written_by_hand_is_bound_to_its_node(mode: str) -> None:
    history = History(small_world(), builders.settings(mode=mode))
    history.cluster.annotate("n0", KEYS.hold, hold_text(PersonHold(Word("alice", NOW))))
    history.until_still()
    assert history.cluster.nodes["n0"].annotations[UID] == history.cluster.nodes["n0"].uid


def test_the_last_annotation_of_ours_takes_the_uid_with_it() -> None:
    history = enforced()
    history.cluster.annotate("n0", REQUEST, builders.DRAIN_NOW)
    history.until_still()
    history.cluster.annotate("n0", REQUEST, None)
    for _ in range(4):
        history.wait(minutes(2))
        history.until_still()

    assert set(history.cluster.nodes["n0"].annotations).isdisjoint(KEYS.bound)


def test_a_uid_that_is_left_after_a_removal_by_hand_is_removed() -> None:
    history = enforced()
    history.cluster.annotate("n0", KEYS.hold, hold_text(PersonHold(Word("alice", NOW))))
    history.until_still()
    history.cluster.annotate("n0", KEYS.hold, None)
    history.until_still()

    assert UID not in history.cluster.nodes["n0"].annotations


def test_events_that_were_published_for_another_vm_are_unknown_and_removed() -> None:
    history = enforced()
    event = {"EventId": "E1", "EventType": "Preempt", "EventStatus": "Scheduled", "Resources": ["other_1"]}
    history.cluster.annotate("n1", IMDS, builders.published(event, vm="other_1"))
    plan, _ = history.look()

    node = builders.plan_of(plan, "n1")
    assert ["other_1" in because for source, because in node.status.unread if source == "imds"] == [True]
    assert not node.events
    assert IMDS not in history.cluster.nodes["n1"].annotations
    assert not history.cluster.nodes["n1"].unschedulable
