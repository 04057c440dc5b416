"""The end of a history that a process reads at its start: bounded, and never a reason to fail."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from jobs.runtime.process import Past
from reconciler.features.history import file as history_tail
from reconciler.features.history.file import recent_cases
from tests.support.builders import NOW, minutes
from tests.support.cases import ended, line

SINCE = NOW - minutes(24 * 60)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def past(file: Path) -> Past:
    found = recent_cases(file, SINCE, NOW)
    assert found is not None
    return found


def names(found: Past) -> list[str]:
    return [one.place.node for one in found.cases]


def at(hours: float) -> datetime:
    """So many hours ago."""
    return NOW - minutes(hours * 60)


def test_the_cases_of_the_last_day_are_read_in_their_order_and_each_once(file: Path) -> None:
    again = line(ended("twice", at=at(3)), ended="2026-11-21T11:00:00Z")
    said = (
        line(ended("old", at=at(25))),
        line(ended("twice", at=at(3))),
        line(ended("first", at=at(20))),
        "{broken",
        '{"event": "node", "node": "other"}',
        again,
        line(ended("from-tomorrow", at=at(-24))),
    )
    file.write_text("\n".join(said), encoding="utf-8")

    found = past(file)
    assert names(found) == ["first", "twice"]
    assert found.cases[1].times.ended == at(1)
    assert found.since == SINCE


def test_no_more_than_the_end_of_a_large_file_is_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line(ended(f"n{number}", at=at(9 - number))) for number in range(6)]
    file.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    # Half of the third line from the end, and all of the last two.
    monkeypatch.setattr(history_tail, "MOST_BYTES", int(2.5 * (len(lines[0]) + 1)))

    found = past(file)
    assert names(found) == ["n4", "n5"]
    assert found.since == at(5)


def test_the_end_of_a_large_file_that_goes_back_far_enough_is_the_whole_day(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line(ended(name, at=at(hours))) for name, hours in (("a", 90), ("b", 30), ("c", 1))]
    file.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    monkeypatch.setattr(history_tail, "MOST_BYTES", int(2.5 * (len(lines[0]) + 1)))

    assert past(file) == Past(SINCE, (ended("c", at=at(1)),))


def test_lines_about_pods_are_no_cases(file: Path) -> None:
    pods = '{"event": "evicted", "pod": "shop/web-1", "case": "2026-11-21T11:00:00Z"}'
    file.write_text("\n".join((pods, line(ended("a", at=at(1))), pods)), encoding="utf-8")

    assert names(past(file)) == ["a"]


@pytest.mark.parametrize("kind", ["missing", "empty", "pipe", "folder"])
def test_what_is_no_file_with_lines_is_not_read(file: Path, kind: str) -> None:
    if kind == "empty":
        file.touch()
    elif kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()

    assert recent_cases(file, SINCE, NOW) is None
