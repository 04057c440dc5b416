"""The commands of the runbooks and of the alerts can be typed, by a person who is woken up by one."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import click
import pytest

from jobs.cli import commands
from tests.docs.test_commands import TYPED, Typed, split
from tests.monitoring.rules import RUNBOOKS, rules

PAGES = {page.name for page in RUNBOOKS.glob("*.md")}
NESTED = {"rollout", "auth"}
"""Commands of kubectl whose flags are those of the command below them."""


def suggested() -> list[Typed]:
    """The command at the end of an alert's description."""
    found: list[Typed] = []
    for rule in rules():
        _, _, last = rule["annotations"]["description"].rpartition(": ")
        found += split(rule["alert"], re.sub(r"\{\{[^}]*\}\}", "NODE", last))
    return found


SUGGESTED = suggested()
OF_KUBECTL = [
    one for one in TYPED if one.page in PAGES and one.program == "kubectl" and one.words[1] != "maintenance"
]


def test_every_alert_ends_with_a_command() -> None:
    assert [one.page for one in SUGGESTED] == [rule["alert"] for rule in rules()]
    assert {one.program for one in SUGGESTED} == {"kubectl", "reconciler"}


@pytest.mark.parametrize("command", [one for one in SUGGESTED if one.program == "reconciler"], ids=str)
def test_the_program_takes_the_command_of_an_alert(command: Typed) -> None:
    name, *arguments = command.words[1:]
    found = commands.get_command(click.Context(commands), name)

    assert found is not None
    found.make_context(name, arguments)


def test_every_page_has_a_command() -> None:
    assert {one.page for one in TYPED} >= PAGES


@pytest.mark.heavy
@pytest.mark.parametrize(
    "command", [*OF_KUBECTL, *(one for one in SUGGESTED if one.program == "kubectl")], ids=str
)
def test_kubectl_has_the_command_and_its_flags(command: Typed) -> None:
    words = list(command.words[1:])
    if words[0] == "-n":
        words = words[2:]
    verb = words[:2] if words[0] in NESTED else words[:1]
    flags = {word.partition("=")[0] for word in words if word.startswith("-") and len(word) > 2}

    known = help_of(*verb)
    assert f"kubectl {' '.join(verb)}" in known
    assert {flag for flag in flags if f"{flag}=" not in known} - {"--as"} == set()


@cache
def help_of(*verb: str) -> str:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl on the path to ask for its flags")
    done = subprocess.run(
        [kubectl, *verb, "--help"], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    return done.stdout
