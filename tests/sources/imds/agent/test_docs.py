"""docs/agent.md says what is there: flags, variables, and what a line of the log has."""

from __future__ import annotations

import ast
import re
from itertools import chain

import pytest

from jobs.runtime.log_line import LogField
from reconciler.sources.imds.agent.program import AgentEvent, main
from tests.docs.pages import ROOT, headings, written

FOLDER = ROOT / "reconciler" / "sources" / "imds" / "agent"


def source(name: str) -> str:
    """The text of a file of the agent."""
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_flag_and_variable_has_its_heading(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    flags = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    texts = source("program.py") + source("own_node.py")
    variables = set(re.findall(r'environment\.get\("(\w+)"', texts))

    described = {title for title in headings("agent.md") if title.startswith("--") or title.isupper()}
    assert described == flags | variables


def test_every_event_and_field_of_the_log_is_described() -> None:
    logs = written("agent.md").partition("\n## Logs\n")[2]
    calls = [node for node in ast.walk(ast.parse(source("program.py"))) if isinstance(node, ast.Call)]
    named = [call.keywords for call in calls if isinstance(call.func, ast.Name) and call.func.id == "_log"]
    fields = {word.arg for word in chain.from_iterable(named)}

    assert len(named) > 5
    assert [event for event in AgentEvent if f"`{event}`" not in logs] == []
    assert [field for field in fields - {*LogField} if f"`{field}`" not in logs] == []
