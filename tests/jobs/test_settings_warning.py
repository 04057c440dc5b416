"""The Event about rejected settings: once for each mistake, again after an hour, and never a flood."""

from __future__ import annotations

import pytest

from jobs.runtime.settings_source import APART, REPEAT, SettingsWarning
from reconciler.model.plan import Notice, NoticeType


class Events:
    """Takes notices, or fails to write them; and the clock."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.works = True
        self.now = 0.0

    def notify(self, notice: Notice) -> bool:
        assert (notice.reason, notice.type) == ("SettingsRejected", NoticeType.WARNING)
        self.tried.append(notice.message)
        return self.works

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def warning(events: Events) -> SettingsWarning:
    return SettingsWarning(events.notify, events.monotonic)


def test_a_mistake_is_written_once_and_again_after_an_hour(events: Events, warning: SettingsWarning) -> None:
    for _ in range(int(REPEAT / 30)):
        warning.report("mode is wrong")
        events.now += 30
    assert events.tried == ["mode is wrong"]
    warning.report("mode is wrong")
    assert len(events.tried) == 2


def test_an_event_that_could_not_be_written_is_tried_again(events: Events, warning: SettingsWarning) -> None:
    events.works = False
    warning.report("mode is wrong")
    warning.report("mode is wrong")
    assert len(events.tried) == 1
    events.works, events.now = True, APART
    warning.report("mode is wrong")
    warning.report("mode is wrong")
    assert len(events.tried) == 2


def test_a_file_that_keeps_breaking_costs_one_event_a_minute(
    events: Events, warning: SettingsWarning
) -> None:
    for second in range(600):
        events.now = second
        warning.report(f"mistake {second}")
    assert len(events.tried) == 10


def test_a_repaired_file_ends_it_and_the_same_mistake_later_is_news(
    events: Events, warning: SettingsWarning
) -> None:
    warning.report("mode is wrong")
    warning.report("")
    events.now = APART
    warning.report("mode is wrong")
    assert len(events.tried) == 2
