"""The program is called by the name by which it was started, also where it names its own commands."""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from jobs.__main__ import main as entry
from jobs.cli import main
from jobs.commands import COMMANDS
from jobs.program import PLUGIN, called, in_own_words
from jobs.runtime.output import echo, echo_for_programs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def as_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/home/a/.krew/bin/kubectl-maintenance", "report"])


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/usr/bin/kubectl-maintenance", "kubectl maintenance"),
        ("kubectl-maintenance", "kubectl maintenance"),
        (r"C:\krew\bin\kubectl-maintenance.exe", "kubectl maintenance"),
        ("/usr/bin/reconciler", "reconciler"),
        ("/src/jobs/__main__.py", "reconciler"),
        ("", "reconciler"),
    ],
)
def test_the_file_that_was_started_gives_the_name(
    monkeypatch: pytest.MonkeyPatch, file: str, name: str
) -> None:
    monkeypatch.setattr(sys, "argv", [file, "kubectl-maintenance"])

    assert called() == name


def test_both_names_are_installed_and_start_the_same_program() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]

    assert {"reconciler", PLUGIN} <= scripts.keys()
    for name in ("reconciler", PLUGIN):
        assert EntryPoint(name, scripts[name], "console_scripts").load() is entry


@pytest.mark.usefixtures("as_plugin")
@pytest.mark.parametrize("name", [None, *sorted(set(COMMANDS) - {"agent"})])
def test_the_help_of_the_plugin_names_no_other_program(
    name: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*([name] if name else []), "--help"]) == 0

    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith(f"Usage: kubectl maintenance {name or '[OPTIONS]'} ")
    assert "`reconciler " not in text


@pytest.mark.usefixtures("as_plugin")
def test_a_mistake_and_the_version_name_the_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--no-such-option"]) == 2
    assert "Try 'kubectl maintenance report --help' for help." in capsys.readouterr().err

    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kubectl maintenance, version ")


@pytest.mark.usefixtures("as_plugin")
@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            "n: cordoned; reconciler release n undoes it",
            "n: cordoned; kubectl maintenance release n undoes it",
        ),
        ("`reconciler check-config F`", "`kubectl maintenance check-config F`"),
        ("ended by: reconciler\n            resume n", "ended by: kubectl maintenance\n            resume n"),
        ("the reconciler drains it", "the reconciler drains it"),
        ("what the reconciler report says", "what the reconciler report says"),
        ("on my-reconciler hold it", "on my-reconciler hold it"),
    ],
)
def test_a_text_for_people_has_commands_that_they_can_type(
    text: str, read: str, capsys: pytest.CaptureFixture[str]
) -> None:
    echo(text)

    assert capsys.readouterr().out == f"{read}\n"


@pytest.mark.usefixtures("as_plugin")
def test_a_document_for_programs_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    echo_for_programs('{"who": "reconciler resume n ends it"}', "json")

    assert capsys.readouterr().out == '{"who": "reconciler resume n ends it"}\n'


def test_under_its_own_name_a_text_stays_as_it_is() -> None:
    assert in_own_words("reconciler release n undoes it") == "reconciler release n undoes it"
