"""`reconciler simulate`: what it plays, what it prints, and what it refuses."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from tests.support.builders import NOW, minutes
from tests.support.cases import ended, line

SMALL = ("--nodes", "20", "--days", "20", "--start", "2026-01-05")


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "new.yaml"
    path.write_text("timeZone: Europe/Berlin\n", encoding="utf-8")
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run the command; its document."""
    assert main(["simulate", *arguments, "--output", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run the command, which exits with 2 and prints nothing to stdout; its message."""
    assert main(["simulate", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_a_made_up_fleet_is_played_against_both_policies(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "old.yaml"
    other.write_text("events: {Reboot: {drain: false}}\n", encoding="utf-8")
    found = told(capsys, "--config", config, "--against", str(other), "--made-up", "7", *SMALL)
    new, old = found["policies"]

    # Midnight in the time zone of the first settings.
    assert (found["nodes"], found["from"], found["to"]) == (
        20,
        "2026-01-04T23:00:00Z",
        "2026-01-24T23:00:00Z",
    )
    assert found["events"] > 0
    assert (new["name"], old["name"]) == (config, str(other))
    assert new["requireDrain"] + new["ignored"] == old["requireDrain"] + old["ignored"] == found["events"]
    assert old["ignored"] > new["ignored"]


def test_the_same_command_prints_the_same(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--config", config, "--made-up", "7", *SMALL)

    assert told(capsys, *arguments) == told(capsys, *arguments)


def test_the_lines_of_a_history_are_played(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "history.jsonl"
    cases = [ended(name, announced=NOW, not_before=NOW + minutes(30)) for name in "ab"]
    other = '{"event": "node", "node": "a"}'
    history.write_text("\n".join([*map(line, cases), line(cases[0]), other]), encoding="utf-8")
    found = told(capsys, "--config", config, "--history", str(history), "--nodes", "5")

    assert (found["nodes"], found["events"]) == (5, 2)
    assert found["policies"][0]["requireDrain"] == 2


def test_a_broken_line_is_named_and_nothing_is_played(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text(f"{line(ended())}\n{line(ended(), notBefore='soon')}\n", encoding="utf-8")
    said = refused(capsys, "--config", config, "--history", str(history))

    assert f"{history}:2: notBefore: not a moment: 'soon'" in said


def test_a_history_of_years_is_played_in_parts(
    tmp_path: Path, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "history.jsonl"
    cases = [ended("a", at=NOW - timedelta(days=500)), ended("b")]
    history.write_text("\n".join(map(line, cases)), encoding="utf-8")
    arguments = ("--config", config, "--history", str(history), "--nodes", "5")

    assert "500 days are too many; 366 can be played. Use --days" in refused(capsys, *arguments)
    assert told(capsys, *arguments, "--days", "30")["events"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name what to play: --history FILE, or --made-up SEED"),
        (("--made-up", "1", "--history", "h"), "name what to play: --history FILE, or --made-up SEED"),
        (("--history", "h", "--start", "2026-01-05"), "--start is for --made-up"),
        (("--history", "/nowhere/h"), "/nowhere/h"),
        (("--history", "/dev/null"), "no case in it has a kind that can be played and a time"),
        (("--made-up", "1", "--start", "1999-01-01"), "write a day from the year 2001 to 2099"),
        (("--made-up", "1", "--nodes", "0"), "0 is not in the range 1<=x<=20000"),
        (("--made-up", "1", "--days", "367"), "367 is not in the range 1<=x<=366"),
    ],
)
def test_wrong_arguments_say_what_to_change(
    arguments: tuple[str, ...], said: str, config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, "--config", config, *arguments)
