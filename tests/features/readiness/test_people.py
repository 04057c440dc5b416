"""Which nodes people keep from a drain: holds, deferrals and approvals that are missing."""

from __future__ import annotations

from datetime import datetime

import pytest

from reconciler.features.readiness.findings import KeptByPeople, PeopleCode
from reconciler.features.readiness.judging import ClusterState, judge_nodes, summed_up
from reconciler.model.event import Kind
from reconciler.model.instructions import Deferral, PersonHold, Word, deferral_text, hold_text
from reconciler.model.node import Node
from reconciler.model.values import replace
from tests.features.readiness.scene import node
from tests.support import builders
from tests.support.builders import NOW, PREFIX, approval_text, minutes

APPROVAL = "events: {Reboot: {approval: true}}"


def word(until: datetime | None = None, scope: str = "") -> Word:
    return Word("alice@laptop", NOW, until, "disk copy", scope)


def noted(found: Node, key: str, text: str) -> Node:
    return replace(found, annotations={f"{PREFIX}/{key}": text})


def people(*nodes: Node, settings: str = "", holds: tuple[PersonHold, ...] = ()) -> tuple[KeptByPeople, ...]:
    chosen = builders.settings(settings)
    seen = ClusterState(nodes, holds=holds)
    return summed_up(seen, judge_nodes(seen, chosen, NOW), chosen, NOW).people


def test_nodes_that_are_held_together_are_one_entry_with_who_since_when_and_why() -> None:
    text = hold_text(PersonHold(word(NOW + minutes(60))))
    found = people(noted(node("b"), "hold", text), node("c"), noted(node("a"), "hold", text))

    because = "held by alice@laptop since 2026-11-21T12:00:00Z until 2026-11-21T13:00:00Z: disk copy"
    remedy = "reconciler resume NODE ends it."
    assert found == (KeptByPeople(PeopleCode.HOLD, because, remedy, NOW + minutes(60), ("a", "b")),)


def test_a_hold_of_a_pool_in_the_ledger_is_about_its_nodes() -> None:
    nodes = (node("a", agentpool="np"), node("b"))
    (found,) = people(*nodes, holds=(PersonHold(word(scope="pool np")),))

    assert (found.nodes, found.remedy) == (("a",), "reconciler resume --pool np ends it.")


def test_a_hold_that_has_ended_is_not_listed() -> None:
    assert people(noted(node("a"), "hold", hold_text(PersonHold(word(NOW))))) == ()


def test_a_deferral_is_listed_after_the_holds() -> None:
    deferred = noted(node("a"), "defer", deferral_text(Deferral(word(NOW + minutes(5)))))
    both = people(deferred, noted(node("b"), "hold", "true"))

    assert [(one.code, one.nodes) for one in both] == [("hold", ("b",)), ("deferral", ("a",))]
    assert both[1].because.startswith("deferred by alice@laptop since")


@pytest.mark.parametrize(
    ("kind", "listed"),
    [(None, True), (Kind.LIVE_MIGRATION, True), (Kind.REBOOT, False), (Kind.REDEPLOY, False)],
)
def test_a_node_without_an_approval_for_such_an_event_waits_for_one(kind: Kind | None, listed: bool) -> None:
    one = node("a")
    if kind is not None:
        one = noted(one, "approved", approval_text(word(), builders.known(kind)))

    assert [found.code for found in people(one, settings=APPROVAL)] == ["approval"] * listed
    assert people(one) == ()


def test_an_approval_that_is_missing_at_the_deadline_says_what_happens_then() -> None:
    (found,) = people(node("a"), settings="events: {Reboot: {approval: true, approvalMissing: Proceed}}")
    assert found.because == "a drain for a Reboot waits for a person to approve it, until its deadline"
