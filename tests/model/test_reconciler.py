"""What the holder of the lock says of its passes, and what follows from that later."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.reconciler import PASSES, Passes, Reconciler, Running, beside, passes_of, passes_text
from tests.support.builders import NOW

MINUTE = timedelta(minutes=1)


def sweeps(*apart: timedelta) -> Passes:
    """What the last of several sweeps has said, with these times between their begins; it has just ended."""
    began = NOW - sum(apart, timedelta())
    said = Passes().of_sweep(began, "Enforce", "1").passed(began, "Enforce")
    for distance in apart:
        began += distance
        said = passes_of(passes_text(said)).of_sweep(began, "Enforce", "1").passed(began, "Enforce")
    return said


@pytest.mark.parametrize(
    ("said", "after", "running"),
    [
        (Passes(), timedelta(), Running.UNKNOWN),
        (Passes().of_serve(MINUTE / 2, "Enforce", "1"), timedelta(), Running.UNKNOWN),
        (Passes().of_serve(MINUTE / 2, "Enforce", "1").passed(NOW, "Enforce"), MINUTE * 1.5, Running.RUNNING),
        (Passes().of_serve(MINUTE / 2, "Enforce", "1").passed(NOW, "Enforce"), MINUTE * 1.6, Running.OVERDUE),
        # Other settings may come between two passes.
        (
            Passes().of_serve(MINUTE / 2, "Enforce", "1").passed(NOW, "Enforce", every=MINUTE),
            MINUTE * 3,
            Running.RUNNING,
        ),
        # What the lock says is up to two seconds old, and moments are whole seconds.
        (Passes().of_serve(MINUTE / 60, "Enforce", "1").passed(NOW, "Enforce"), MINUTE / 10, Running.RUNNING),
        (Passes().of_serve(MINUTE / 60, "Enforce", "1").passed(NOW, "Enforce"), MINUTE / 8, Running.OVERDUE),
        # One sweep says nothing about the next one.
        (sweeps(), timedelta(days=7), Running.UNKNOWN),
        (sweeps(MINUTE), MINUTE * 3, Running.RUNNING),
        (sweeps(MINUTE), MINUTE * 3.1, Running.OVERDUE),
        # A person ran a sweep between two of a CronJob.
        (sweeps(MINUTE, MINUTE / 6), MINUTE * 2, Running.RUNNING),
        (sweeps(MINUTE / 6, MINUTE * 5 / 6), MINUTE * 2, Running.RUNNING),
        # A clock of the holder was ahead.
        (Passes().of_serve(MINUTE, "Enforce", "1").passed(NOW + MINUTE, "Enforce"), -MINUTE, Running.UNKNOWN),
    ],
)
def test_passes_are_overdue_after_three_times_the_interval_that_they_had(
    said: Passes, after: timedelta, running: Running
) -> None:
    assert passes_of(passes_text(said)).state(NOW + after)[0] is running


def test_a_sweep_after_serve_counts_no_distance_to_it() -> None:
    served = Passes().of_serve(MINUTE / 2, "Enforce", "1").passed(NOW, "Enforce")

    assert served.of_sweep(NOW + MINUTE, "Enforce", "1").interval is None


@given(st.text() | st.sampled_from(['{"apart": [-1]}', '{"last": 5}', "[]", '{"apart": [1e9]}']))
def test_an_annotation_that_anybody_has_written_is_read_or_ignored(text: str) -> None:
    assert passes_of(text).state(NOW)[0] in Running


def acting(lock: str, made: float, running: Running = Running.RUNNING) -> Reconciler:
    """One whose lock in this namespace was made so many minutes ago."""
    return Reconciler(running, lock=lock, since=NOW - MINUTE * made)


@pytest.mark.parametrize(
    ("others", "names", "yields_to"),
    [
        ((), (), ""),
        ((acting("older", 20),), ("older",), "older"),
        ((acting("younger", 5),), ("younger",), ""),
        # Of two locks of the same second one goes on.
        ((acting("a", 10),), ("a",), "a"),
        ((acting("z", 10),), ("z",), ""),
        ((acting("old", 20), acting("oldest", 30)), ("old", "oldest"), "oldest"),
        # What was uninstalled, or can't be read, stops nobody.
        ((acting("gone", 20, Running.OVERDUE), acting("deleted", 20, Running.NEVER)), (), ""),
        ((acting("unread", 20, Running.UNKNOWN),), (), ""),
    ],
)
def test_of_two_reconcilers_the_one_with_the_younger_lock_starts_nothing(
    others: tuple[Reconciler, ...], names: tuple[str, ...], yields_to: str
) -> None:
    found = beside(acting("mine", 10), others)

    assert (found.others, found.yields_to) == (names, yields_to)


def test_the_key_is_the_same_for_every_prefix() -> None:
    assert PASSES == "node-maintenance.dev/passes"
