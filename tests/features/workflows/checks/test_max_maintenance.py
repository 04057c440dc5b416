"""maxMaintenance: how many nodes are in maintenance."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.features.workflows.input import Member
from reconciler.model.plan import Verdict
from reconciler.model.record import State
from reconciler.model.structs import replace
from tests.features.workflows.checks.scene import ask, given, member
from tests.support.builders import NOW, node

BUSY = State.IN_MAINTENANCE


def ago(seconds: float) -> Member:
    """A node in maintenance since so many seconds."""
    return member(f"n{seconds}", BUSY, since=NOW - timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("limit", "verdict"), [(0, Verdict.FAILED), (2, Verdict.FAILED), (3, Verdict.PASSED)]
)
def test_fewer_nodes_than_the_limit_are_in_maintenance(limit: int, verdict: Verdict) -> None:
    scene = given(member("b", BUSY), member("c", BUSY, profile="other"), member("d", State.REQUIRED))

    answer = ask("maxMaintenance", scene, max=limit)

    assert answer.verdict is verdict
    assert answer.reason == f"nodes in maintenance: 2 (b, c), the limit is {limit}"


def test_a_node_with_the_profile_counts_whatever_it_is_in_maintenance_for() -> None:
    for_another = member("b", BUSY, profile="other")
    has_both = replace(for_another, profiles=("other", "os"))

    assert ask("maxMaintenance", given(for_another), max=1, profile="os").verdict is Verdict.PASSED
    assert ask("maxMaintenance", given(has_both), max=1, profile="os").verdict is Verdict.FAILED


def test_a_node_that_an_event_of_the_platform_has_taken_counts() -> None:
    taken = replace(member("b"), platform=BUSY)

    assert ask("maxMaintenance", given(taken), max=1).verdict is Verdict.FAILED


def test_a_node_whose_data_cannot_be_read_counts() -> None:
    broken = Member(node("b"), problem="it is no JSON")

    assert ask("maxMaintenance", given(broken), max=1).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("own", "other", "keys", "verdict"),
    [
        ({"rack": "1"}, {"rack": "1"}, {"groupBy": ["rack"]}, Verdict.FAILED),
        ({"rack": "1"}, {"rack": "2"}, {"groupBy": ["rack"]}, Verdict.PASSED),
        ({"rack": "1"}, {}, {"groupBy": ["rack"]}, Verdict.PASSED),
        ({"rack": ""}, {"rack": "2"}, {"groupBy": ["rack"]}, Verdict.FAILED),
        ({}, {"rack": "2"}, {"groupBy": ["rack"]}, Verdict.FAILED),
        (
            {"rack": "1", "zone": "x"},
            {"rack": "1", "zone": "y"},
            {"groupBy": ["rack", "zone"]},
            Verdict.PASSED,
        ),
        ({"rack": "1"}, {"rack": "2"}, {"groupLabel": "rack"}, Verdict.PASSED),
        ({"rack": "1"}, {"rack": "2"}, {"groupBy": "rack"}, Verdict.PASSED),
    ],
)
def test_only_nodes_of_the_same_group_count(
    own: dict[str, str], other: dict[str, str], keys: dict[str, object], verdict: Verdict
) -> None:
    scene = given(member("b", BUSY, labels=other), node=node("a", labels=own))

    assert ask("maxMaintenance", scene, max=1, **keys).verdict is verdict


@pytest.mark.parametrize(
    ("profile", "skip_after", "verdict"),
    [
        ("", "5s", Verdict.PASSED),
        ("", "50s", Verdict.FAILED),
        ("os", "20s", Verdict.PASSED),
        ("os", "21s", Verdict.FAILED),
    ],
)
def test_a_node_stops_counting_long_after_its_last_transition(
    profile: str, skip_after: str, verdict: Verdict
) -> None:
    answer = ask("maxMaintenance", given(ago(20)), max=1, profile=profile, skipAfter=skip_after)

    assert answer.verdict is verdict


def test_the_answer_changes_when_enough_nodes_stop_counting() -> None:
    scene = given(ago(10), ago(30), ago(20))

    def changes(limit: int) -> object:
        return ask("maxMaintenance", scene, max=limit, skipAfter="1m").until

    assert [changes(limit) for limit in (0, 1, 2, 3)] == [
        None,
        NOW + timedelta(seconds=50),
        NOW + timedelta(seconds=40),
        NOW + timedelta(seconds=30),
    ]
