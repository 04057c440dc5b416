"""A case comes back from its line as it was, and a line with a wrong value names the field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.runtime.log_line import LogEvent, log_line
from reconciler.model.case_outcome import ENDS, CaseResult
from reconciler.model.drains import MOST_HOLDING, HeldBy
from reconciler.model.ended_case import EVENT, CasePlace, CaseTimes, EndedCase, from_fields, to_fields
from reconciler.model.record import CasePerson
from reconciler.model.values import replace
from tests.support import strategies
from tests.support.builders import NOW
from tests.support.cases import ended, line

_names = st.text(max_size=253)
_moments = strategies.moments
_maybe = st.none() | _moments
_counts = st.none() | st.integers(0, 1_000_000)
_cases = st.builds(
    EndedCase,
    place=st.builds(CasePlace, _names, _names, _names, _names),
    times=st.builds(CaseTimes, _moments, _moments, _maybe, _maybe, _maybe, _maybe, _maybe, _maybe, _maybe),
    kind=_names,
    sources=st.lists(_names, max_size=5).map(tuple),
    outcome=st.sampled_from(ENDS),
    why=st.text(max_size=1024),
    pods_moved=_counts,
    pods_left=_counts,
    people=st.lists(st.builds(CasePerson, _names, _names, _names, st.booleans(), _maybe), max_size=3).map(
        tuple
    ),
    held_by=st.lists(st.builds(HeldBy, _names, st.integers(0, 10**8)), max_size=3).map(tuple),
)


@given(_cases)
def test_a_case_comes_back_from_the_line_of_a_log(case: EndedCase) -> None:
    assert from_fields(json.loads(log_line(LogEvent.CASE, **to_fields(case)))) == case


def test_the_event_of_the_line_is_that_of_the_log() -> None:
    assert EVENT == LogEvent.CASE


def test_what_is_not_known_is_null() -> None:
    bare = EndedCase(CasePlace("a", "uid-a"), CaseTimes(NOW, NOW), "", (), CaseResult.STOPPED, "")
    fields = to_fields(bare)
    moments = ("announced", "notBefore", "planned", "started", "drained", "gone", "uncordoned")

    assert {fields[key] for key in (*moments, "kind", "podsMoved", "podsLeft")} == {None}
    assert from_fields({key: value for key, value in fields.items() if value is not None}) == bare


def test_of_very_many_budgets_those_count_that_held_longest() -> None:
    many = [HeldBy(f"shop/b{number}", number) for number in range(500)]
    together = HeldBy.together(*many, HeldBy("shop/b1", 10_000))

    assert together[:2] == (HeldBy("shop/b1", 10_001), HeldBy("shop/b499", 499))
    assert len(together) == MOST_HOLDING


@pytest.mark.parametrize(
    ("key", "value", "because"),
    [
        ("node", None, "node is missing"),
        ("caseStart", "yesterday", "caseStart: not a moment: 'yesterday'"),
        ("caseStart", None, "caseStart is missing"),
        ("drained", "2026-11-21T12:00:00", "drained: a moment without a time zone"),
        ("drained", "9026-11-21T12:00:00Z", "drained: too far away to be meant"),
        ("sources", "imds", "sources: 'imds' is not a list"),
        ("sources", ["s"] * 101, "sources: 101 items are recorded"),
        ("sources", [1], "sources: 1 is not a text"),
        ("people", "alice", "people: 'alice' is not a list"),
        ("podsMoved", -1, "podsMoved: -1 is not a count"),
        ("podsLeft", True, "podsLeft: True is not a count"),
        ("outcome", "good", "outcome: 'good' is not one of running, drained, late"),
        ("outcome", "running", "outcome: 'running' is not one of drained, late"),
    ],
)
def test_a_wrong_value_is_named(key: str, value: Any, because: str) -> None:
    with pytest.raises(ValueError, match=because.split("(")[0]):
        from_fields(json.loads(line(ended(), **{key: value})))


def test_texts_are_cut_to_their_limits() -> None:
    case = from_fields(json.loads(line(ended(), node="n" * 10_000, why="w" * 10_000)))

    assert (len(case.place.node), len(case.why)) == (253, 1024)


def test_a_case_has_the_identity_of_its_nodes_uid_and_its_start() -> None:
    first = ended()
    later = replace(first, times=replace(first.times, ended=NOW, uncordoned=None), why="other")

    assert first.identity == later.identity
    assert ended("b").identity != first.identity
