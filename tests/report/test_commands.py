"""The commands in texts for people: each is found as a whole, and can be typed."""

from __future__ import annotations

import click
import pytest

from jobs.cli import commands
from reconciler.model.keys import keys_of
from reconciler.report.commands import Words, in_parts
from reconciler.report.explain import who_ends
from reconciler.report.kinds import hold_kinds


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("the platform", [Words("the platform")], id="none"),
        pytest.param(
            "whoever holds it: reconciler resume n1 ends the hold",
            [
                Words("whoever holds it: "),
                Words("reconciler resume n1", command=True),
                Words(" ends the hold"),
            ],
            id="in a sentence",
        ),
        pytest.param(
            "kubectl -n ops get pods,cronjobs -A; then ask",
            [Words("kubectl -n ops get pods,cronjobs -A", command=True), Words("; then ask")],
            id="with punctuation",
        ),
        pytest.param(
            "`mode: Enforce` does it, or `reconciler drain n1`",
            [
                Words("mode: Enforce", code=True),
                Words(" does it, or "),
                Words("reconciler drain n1", command=True),
            ],
            id="between backticks",
        ),
        pytest.param(
            "kubectl -n ops logs -l a=b --tail 9 shows them",
            [Words("kubectl -n ops logs -l a=b --tail 9", command=True), Words(" shows them")],
            id="with a noun like a verb",
        ),
        pytest.param(
            "the reconciler must list pods", [Words("the reconciler must list pods")], id="a sentence"
        ),
    ],
)
def test_commands_are_parts_of_a_text(text: str, parts: list[Words]) -> None:
    assert list(in_parts(text)) == parts


SAID = [
    who_ends(code, "n1", keys_of(prefix))
    for code in hold_kinds()
    for prefix in ("a.example", "node-maintenance.dev")
]
OWN = [part.text for text in SAID for part in in_parts(text) if part.command and part.text.startswith("rec")]


@pytest.mark.parametrize("command", sorted(set(OWN)))
def test_each_command_of_who_can_end_a_hold_can_be_typed(command: str) -> None:
    _, name, *arguments = (
        command.replace("KIND", "Reboot").replace(" --replace", " --replace --not-before 2h").split()
    )
    parser = commands.get_command(click.Context(commands), name)

    assert parser is not None
    assert parser.make_context(name, arguments).params
