"""The work of a schedule grows little faster than the number of its cases. It is counted, not timed."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import pytest

from reconciler.calendar.windows import Calendar
from reconciler.model.event import Kind
from reconciler.model.schedule import Exemption, StartTimes
from reconciler.starts import budget
from reconciler.starts.schedule import Case, Limits, Outage, Scheduler
from tests.support.builders import NOW, minutes


def work(monkeypatch: pytest.MonkeyPatch, number: int) -> int:
    """Return how often a limit is asked how many nodes hold a place, for so many cases within a day."""
    counted = 0
    held = budget.PlacesAhead.held

    def count(limit: budget.PlacesAhead, at: datetime) -> int:
        nonlocal counted
        counted += 1
        return held(limit, at)

    monkeypatch.setattr(budget.PlacesAhead, "held", count)
    random, outlook = Random(1), Calendar().outlook(NOW, {})
    cases = []
    for each in range(number):
        date = NOW + timedelta(seconds=random.randrange(3600, 86400))
        deadline = date - minutes(15)
        cases.append(
            Case(
                f"n{each}",
                "",
                "",
                Kind.REBOOT,
                StartTimes(deadline - minutes(60), deadline, deadline),
                outlook,
                lasts=minutes(32),
                lead=minutes(15),
                exempt=Exemption(windows=deadline),
                outage=Outage(date=date, taken_down=date, back=date + minutes(12)),
            )
        )
    # A third of what would serve all of them at the busiest moment.
    fleet = budget.PlacesAhead("maxUnavailable", max(number // 60, 1))
    placed = Scheduler(Limits(fleet), NOW).run(cases)
    monkeypatch.setattr(budget.PlacesAhead, "held", held)
    assert any(one.missed for one in placed.values())
    assert not all(one.missed for one in placed.values())
    return counted


def test_four_times_the_cases_are_little_more_than_four_times_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert work(monkeypatch, 1200) < 6 * work(monkeypatch, 300)
