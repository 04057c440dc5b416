"""The command line: its list of commands, what a command imports, and options that become one value."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from jobs import options
from jobs.cli import commands
from jobs.commands import COMMANDS
from reconciler.model.selector import parse_selector_text
from reconciler.plugins import faces

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_commands_line_in_the_list_is_the_first_of_its_own_help(name: str) -> None:
    command = commands.get_command(click.Context(commands), name)

    assert command is not None
    assert command.name == name
    assert " ".join((command.help or "").split("\n\n")[0].split()) == COMMANDS[name]


def test_every_file_is_a_command_of_the_list() -> None:
    files = {path.stem for path in (ROOT / "jobs" / "commands").glob("*.py")} - {"__init__"}
    of_plugins = {path.parent.name for path in (ROOT / "reconciler").glob("*/*/commands.py")}
    named = {face.__name__.rpartition(".")[2]: face.COMMANDS for face in faces() if hasattr(face, "COMMANDS")}

    assert named.keys() == of_plugins
    assert files == {name.replace("-", "_") for name in COMMANDS} - {*chain(*named.values())}


def test_a_command_that_is_not_in_the_list_is_a_usage_error_even_where_there_is_such_a_module() -> None:
    found = CliRunner().invoke(commands, ["__init__"])

    assert found.exit_code == 2
    assert "No such command" in found.output


def _options(name: str) -> dict[str, click.Parameter]:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    return {option: one for one in command.params for option in one.opts}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_an_option_is_called_as_in_kubectl(name: str) -> None:
    found = _options(name)

    for short, long in (("-o", "--output"), ("-n", "--namespace"), ("-l", "--selector")):
        assert found.get(short) is found.get(long)
    if "-o" in found:
        output = found["-o"].type
        assert isinstance(output, click.Choice)
        assert [*output.choices][:4] == ["text", "wide", "json", "yaml"]


def test_commands_with_a_document_have_the_option_for_it() -> None:
    with_output = {name for name in COMMANDS if "-o" in _options(name)}

    assert with_output == {
        *("approve", "defer", "hold", "resume"),
        *("drain", "explain", "history", "plan", "readiness", "report", "simulate", "sweep", "windows"),
    }


def test_the_old_name_of_the_reports_option_works_and_is_not_in_the_help() -> None:
    report = commands.get_command(click.Context(commands), "report")
    assert report is not None

    chosen = [
        report.make_context("report", [*arguments]).params["output"]
        for arguments in (["--format", "json"], ["--format=markdown"], ["--format", "json", "-o", "yaml"], [])
    ]

    assert chosen == ["json", "markdown", "yaml", "text"]
    assert "--format" not in report.get_help(click.Context(report))
    assert "-o, --output" in report.get_help(click.Context(report))


@pytest.mark.heavy
@pytest.mark.parametrize("arguments", [["--help"], ["schema"], ["no-such-command"]])
def test_a_command_imports_no_other(arguments: list[str]) -> None:
    code = (
        "import sys; from jobs.cli import main; main(sys.argv[1:]);"
        "print(sorted(name for name in sys.modules if name.startswith('jobs.commands.')"
        " or name.endswith('.commands') and name != 'jobs.commands'), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    expected = ["jobs.commands.schema"] if arguments == ["schema"] else []
    assert ran.stderr.splitlines()[-1] == str(expected)


@dataclass(frozen=True, slots=True)
class Colour:
    red: bool
    depth: int


def test_options_reach_the_command_as_one_value_also_where_groups_are_nested() -> None:
    seen: list[object] = []
    colour = options.as_one(
        "colour", Colour, click.option("--red", is_flag=True), click.option("--depth", type=int)
    )

    @click.command()
    @options.as_one("both", lambda colour, name: (colour, name), colour, click.argument("name"))
    @click.option("--other", type=options.DURATION, default="1m")
    def paint(both: object, other: timedelta) -> int:
        seen.extend((both, other))
        return 0

    CliRunner().invoke(paint, ["--red", "wall", "--depth", "3"], catch_exceptions=False)

    assert seen == [(Colour(True, 3), "wall"), timedelta(minutes=1)]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        pytest.param(options.DURATION, "1h30m", timedelta(hours=1.5), id="a duration"),
        pytest.param(options.SELECTOR, "a=b", parse_selector_text("a=b"), id="a selector"),
        pytest.param(options.SELECTOR, "", None, id="no selector"),
        pytest.param(options.ADDRESS, ":8080", ("", 8080), id="a port"),
        pytest.param(options.ADDRESS, "[::1]:8080", ("::1", 8080), id="a host and a port"),
    ],
)
def test_an_argument_is_converted_once(kind: click.ParamType[object], text: str, expected: object) -> None:
    value = kind.convert(text, None, None)

    assert value == expected
    if value is not None:
        assert kind.convert(value, None, None) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sweep", "--config", "x", "--for", "5"], "Invalid value for --for: "),
        (["serve", "--config", "x", "--every", "soon"], "Invalid value for --every: "),
        (["serve", "--config", "x", "--listen", "host"], "Invalid value for --listen: 'host' has no port"),
        (["serve", "--config", "configmap/a/b"], "watches a file for changes; mount the ConfigMap"),
        (["drain", "-l", "a in"], "Invalid value for --selector: "),
        (["drain", "a", "--pod-selector", "="], "Invalid value for --pod-selector: "),
        (["drain", "a", "--timeout", "-1s"], "Invalid value for --timeout: "),
        (["plan", "--config", "x", "--until", "soon"], "Invalid value for --until: 'soon' is not a duration"),
        (["plan", "--config", "x", "--until", "30m"], "30m can't be shown; write 1h to 90d, such as 7d"),
        (["plan", "--config", "x", "--until", "90d1s"], "90d1s can't be shown; write 1h to 90d"),
        (["drain"], "name the nodes, or give --selector"),
        (["drain", "a", "-l", "b=c"], "name the nodes, or give --selector"),
        (["release"], "name the nodes, or give --selector or --all"),
        (["release", "a", "-l", "b=c"], "name the nodes, or give --selector or --all"),
        (["request", "--cancel"], "name the nodes, or give --selector"),
        (["request", "a", "-l", "b=c", "--cancel"], "name the nodes, or give --selector"),
        (["report", "a", "-l", "b=c"], "name the nodes, or give --selector"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error_that_names_the_option(arguments: list[str], said: str) -> None:
    found = CliRunner().invoke(commands, arguments)

    assert found.exit_code == 2
    assert said in " ".join(found.output.split())
