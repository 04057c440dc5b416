"""What people read is folded at the width of their terminal, and whole in a pipe."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jobs.cli import main
from reconciler.report.lines import folded

SETTINGS = """\
mode: Enforce
timeZone: Europe/Berlin
windows:
- {name: night, start: "22:00", end: "05:00"}
drain: {timeout: 30m}
events: {Redeploy: {approval: true, outsideWindow: AtDeadline}}
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    Path("maintenance.yaml").write_text(SETTINGS, encoding="utf-8")
    return "maintenance.yaml"


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_meaning_of_settings_and_its_warnings_fit_into_the_terminal(
    settings: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    assert main(["check-config", settings]) == 0
    whole = capsys.readouterr()
    monkeypatch.setenv("COLUMNS", str(columns))
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)

    assert main(["check-config", settings]) == 0
    read = capsys.readouterr()

    for text, in_a_pipe in ((read.out, whole.out), (read.err, whole.err)):
        assert text
        assert [line for line in text.splitlines() if len(line) > columns] == []
        assert text.split() == in_a_pipe.split()
    assert "\n\n" in read.out
    assert max(map(len, whole.err.splitlines())) > 80


def test_a_mistake_fits_into_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("maintenance.yaml").write_text("timeZone: Europe/Berlim\nmode: Enforced\n", encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    assert main(["check-config", "maintenance.yaml"]) == 2

    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2
    assert [line for line in lines if len(line) > 60] == []


@pytest.mark.parametrize(
    ("line", "indent", "lines"),
    [
        ("  " + "word " * 12 + "end", None, ["  " + " ".join(["word"] * 10), "    word word end"]),
        ("a " + "x" * 60 + " b", 0, ["a", "x" * 60, "b"]),
        ("short", None, ["short"]),
    ],
)
def test_a_line_goes_on_below_its_text_and_no_word_is_broken(
    line: str, indent: int | None, lines: list[str]
) -> None:
    assert folded(line, 52, indent) == lines
    assert folded(line, None, indent) == [line]
