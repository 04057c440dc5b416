"""`reconciler replay`: what it prints, its exit code, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.cli import main
from tests.features.recordings.test_cases import CASES

SPOT = next(file for file in CASES if "spot" in file.name)


def test_the_replay_says_what_explain_says_and_that_nothing_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["replay", str(SPOT)]) == 0

    out = capsys.readouterr().out
    assert out.startswith("recorded at Sat 2026-11-21 13:00 CET (Europe/Berlin) by version ")
    assert "the decision is the recorded one\n" in out
    assert "\n  event     Preempt scheduled, not before " in out
    assert "a drain now would evict 1" in out


def test_the_document_has_both_decisions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(SPOT), "-o", "json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["decision"] == document["recorded"]["decision"]
    assert document["recorded"]["at"] == "2026-11-21T12:00:00Z"
    assert document["node"]["actions"] == ["cordon", "drain"]
    assert (document["differs"], document["incomplete"]) == ([], [])


def test_another_decision_is_named_with_both_values_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SPOT.read_text(encoding="utf-8")
    other = tmp_path / "other.yaml"
    other.write_text(text.replace('"EventType":"Preempt"', '"EventType":"Freeze"'), encoding="utf-8")

    assert main(["replay", str(other)]) == 1

    assert "differs: actions was cordon, drain, is none\n" in capsys.readouterr().out
    assert main(["replay", str(other), "-o", "json"]) == 1
    keys = json.loads(capsys.readouterr().out)["differs"]
    # What the file has too little for is not compared.
    lacks = f"incomplete: [{', '.join(keys)}]\n"
    other.write_text(other.read_text(encoding="utf-8") + lacks, encoding="utf-8")
    assert main(["replay", str(other)]) == 0


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("", "it has no `kind: RecordedCase`"),
        ("[1, 2]", "it has no `kind: RecordedCase`"),
        ("kind: MaintenancePolicy\n", "`reconciler record NODE` writes such a file"),
        ("kind: RecordedCase\nversion: 2\n", "it has version 2, and this program reads 1"),
        ("kind: RecordedCase\nversion: 1\n", "case: at is missing"),
        ("kind: RecordedCase\nversion: 1\ncase: []\nanswers: [x]\n", "answers: is no mapping"),
        ("kind: &a [*a, *a]\n", "line 1: anchors (&) and aliases (*) are not supported"),
        ("a: {" * 50 + "}" * 50, "line 1: is nested deeper than 40 levels"),
        ("kind: [\n", "not YAML"),
        ("x" * 1_000_001, "it has more than 1000000 bytes"),
        ("kind: RecordedCase\nversion: 1\ncase: {at: soon, node: {}}\n", "case: at: "),
    ],
)
def test_what_is_no_recording_is_refused_with_the_reason(
    tmp_path: Path, text: str, because: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "case.yaml"
    file.write_text(text, encoding="utf-8")

    assert main(["replay", str(file)]) == 2

    printed = capsys.readouterr()
    assert because in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "case.yaml")]) == 2

    assert "case.yaml: can't be read: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after", "because"),
    [
        ("  mode: Enforce", "  mode: Hurry", "settings:1:1: mode: "),
        ("answers: {}", "answers: {moon: {}}", "answers.moon: there is no such source"),
        ("answers: {}", "answers: {arm: {answers: 3}}", "the last answer of arm can't be read"),
        ("    unschedulable: true", "    unschedulable: maybe", "case: others: unschedulable: "),
    ],
)
def test_a_part_that_cannot_be_read_is_named(
    tmp_path: Path, before: str, after: str, because: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SPOT.read_text(encoding="utf-8")
    assert before in text
    file = tmp_path / "case.yaml"
    file.write_text(text.replace(before, after), encoding="utf-8")

    assert main(["replay", str(file)]) == 2

    assert because in capsys.readouterr().err
