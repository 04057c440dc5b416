"""The command line: names, help, usage errors, forms of output, and the page that describes them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import EntryPoint
from itertools import chain
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from jobs import options, reference
from jobs.__main__ import main as entry
from jobs.cli import commands, main
from jobs.commands import COMMANDS, PLUGIN, SMALL, SYNONYMS, called, in_own_words
from jobs.runtime.output import echo, echo_for_programs, for_programs, machine_text, width
from reconciler.model.selector import parse_selector_text
from reconciler.plugins import commands_of, faces

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_commands_line_in_the_list_is_the_first_of_its_own_help(name: str) -> None:
    command = commands.get_command(click.Context(commands), name)

    assert command is not None
    assert command.name == name
    assert " ".join((command.help or "").split("\n\n")[0].split()) == COMMANDS[name].text


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"agent"}))
def test_a_commands_help_ends_with_an_example_that_can_be_typed(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    example = COMMANDS[name].example
    assert " ".join(capsys.readouterr().out.split()).endswith(f"Example: `{called()} {example}`")

    typed, *arguments = example.split()
    command = commands.get_command(click.Context(commands), typed)
    assert typed == name
    assert command is not None
    assert command.make_context(name, arguments).info_name == name


def test_the_help_answers_a_question_in_each_of_its_four_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    _, see, plan, act, set_up = re.split(r"^(?=See |Plan|Act |Set up)", capsys.readouterr().out, flags=re.M)

    assert "Why is a node not drained? `reconciler explain NODE`" in see
    assert "Which drain starts when? `reconciler plan --until 2d`" in plan
    assert "Stop all drains now: `reconciler hold --all --now`" in act
    assert "What do these settings do? `reconciler check-config FILE`" in set_up
    lines = re.findall(r"^  ([a-z-]+)  +[A-Z]", see + plan + act + set_up, flags=re.M)
    assert sorted(lines) == sorted(COMMANDS)


def test_on_80_columns_each_command_is_one_line_and_the_last_lines_say_where_to_begin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0

    out = capsys.readouterr().out
    assert re.findall(r"^   {7,}\S.*", out, flags=re.M) == []
    assert "Begin with `reconciler plan` for all nodes, and `reconciler explain NODE` for one." in out[
        -200:
    ].replace("\n ", "")


def test_every_file_is_a_command_of_the_list() -> None:
    files = {path.stem for path in (ROOT / "jobs" / "commands").glob("*.py")} - {"__init__", "small"}
    of_plugins = {
        path.parent.name
        for path in (ROOT / "reconciler").glob("*/*/*.py")
        if "@click.command(" in path.read_text(encoding="utf-8")
    }
    named = {face.__name__.rpartition(".")[2]: face.COMMANDS for face in faces() if hasattr(face, "COMMANDS")}

    for face in faces():
        names = getattr(face, "COMMANDS", {})
        if names or face.__name__.rpartition(".")[2] in of_plugins:
            made = vars(commands_of(face.__name__)).values()
            written = {command.name for command in made if isinstance(command, click.Command)}
            assert written == {*names}, f"COMMANDS of {face.__name__} has other names"
    of_core = {name.replace("-", "_") for name in COMMANDS} - {*chain(*named.values()), *SMALL}
    assert files == of_core, "the list in jobs/commands/__init__.py has other names"


def test_a_command_that_is_not_in_the_list_is_a_usage_error_even_where_there_is_such_a_module() -> None:
    found = CliRunner().invoke(commands, ["__init__"])

    assert found.exit_code == 2
    assert "There is no command '__init__'" in found.output


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("reprot", "report"),
        ("reprot --only held worker-7", "report --only held worker-7"),
        ("hlod worker-7 --reason 'disk copy'", "hold worker-7 --reason 'disk copy'"),
        ("stop", "hold --all --now"),
        ("pause --all", "hold --all --now"),
        ("stop worker-7 worker-8", "hold worker-7 worker-8 --now"),
        ("plans", "plan"),
        ("why", "explain NODE"),
        ("why worker-7 -o wide", "explain worker-7"),
        ("validate", "check-config FILE"),
        ("help hold", "hold --help"),
        ("help", "--help"),
    ],
)
def test_a_command_that_does_not_exist_is_answered_with_the_one_that_is_meant(typed: str, meant: str) -> None:
    found = CliRunner().invoke(commands, shlex.split(typed))

    assert found.exit_code == 2
    assert f"did you mean `{called()} {meant}`?" in found.output


def test_a_name_that_is_like_no_command_is_answered_with_the_list() -> None:
    result = CliRunner().invoke(commands, ["rejoice"])

    assert "There is no command 'rejoice'; `reconciler --help` lists all." in result.output


@pytest.mark.parametrize("typed", SYNONYMS)
def test_each_synonym_is_answered_with_a_command_that_can_be_typed(typed: str) -> None:
    """Names stand for NODE and FILE, and the rest is what the command takes."""
    words = [
        "worker-7" if word == "NODE" else __file__ if word == "FILE" else word
        for word in SYNONYMS[typed].split()
    ]
    if words == ["--version"]:
        return
    command = commands.get_command(click.Context(commands), words[0])
    assert command is not None
    assert command.make_context(words[0], words[1:]).params


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("report --namespce shop", "--namespace"),
        ("plan --pols gpu", "--pool"),
        ("plan --agentpool gpu", "--pool"),
        ("hold a --for 4h", "--until"),
        ("hold a --untill 4h", "--until"),
        ("request a --kind Reboot --at 4h", "--not-before"),
        ("report --follow", "--watch"),
        ("hold a -n ops", "--reconciler-namespace"),
        ("hold a --namespace ops", "--reconciler-namespace"),
    ],
)
def test_an_option_that_does_not_exist_is_answered_with_the_one_that_is_meant(
    capsys: pytest.CaptureFixture[str], typed: str, meant: str
) -> None:
    assert main(shlex.split(typed)) == 2
    assert f"; did you mean `{meant}`?" in capsys.readouterr().err


def test_an_option_is_not_answered_with_one_of_another_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--for", "4h"]) == 2
    assert capsys.readouterr().err.endswith("Error: There is no option '--for'\n")


def _options(name: str) -> dict[str, click.Parameter]:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    return {option: one for one in command.params for option in one.opts}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_an_option_is_called_as_in_kubectl(name: str) -> None:
    found = _options(name)

    if name in ("serve", "sweep"):
        # What is the reconciler chooses no workloads.
        assert found.pop("--namespace") is found["--reconciler-namespace"]
    for short, long in (("-o", "--output"), ("-n", "--namespace"), ("-l", "--selector")):
        assert found.get(short) is found.get(long)
    # -n names workloads only, so what reads the reconciler's own objects has another option for these.
    assert "-n" not in found or "--reconciler-namespace" in found
    if "-o" in found:
        output = found["-o"].type
        assert isinstance(output, click.Choice)
        assert [*output.choices][:4] == ["text", "wide", "json", "yaml"]


def test_commands_with_a_document_have_the_option_for_it() -> None:
    with_output = {name for name in COMMANDS if "-o" in _options(name)}

    assert with_output == {
        *("approve", "defer", "hold", "resume"),
        *(
            "drain",
            "explain",
            "history",
            "plan",
            "pods",
            "readiness",
            "replay",
            "report",
            "settings",
            "simulate",
            "start",
            "sweep",
            "windows",
        ),
    }


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
    expected = ["jobs.commands.small"] if arguments == ["schema"] else []
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
        pytest.param(options.ADDRESS, ":8080", ("", 8080), id="a port of all addresses"),
        pytest.param(options.ADDRESS, "8080", ("127.0.0.1", 8080), id="a port"),
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


HOSTILE = "\x1b[2J", "\u202enode", "\u2028", "\x85", "\udc00", "line\nline", "\U000e0001", "tab\t", "\r"
LOOKS_LIKE_ANOTHER_VALUE = "no", "y", "1e3", "12e45", "0o7", "2026-11-21T12:00:00Z", "", "null", "- a", "a: b"


@pytest.mark.parametrize("text", [*HOSTILE, *LOOKS_LIKE_ANOTHER_VALUE, "Zürich 🚀", "word " * 100])
def test_each_text_is_the_same_in_yaml(text: str) -> None:
    document = {"list": [text, {text: text}], "nested": {"first": {"a": text}}}

    written = machine_text(json.dumps(document), "yaml")

    assert yaml.safe_load(written) == document
    assert all(line.isprintable() for line in written.splitlines())


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"z": 1, "a": None, "m": [True, 1.5, 30.0, {}, []]}, id="an object"),
        pytest.param([], id="an empty list"),
    ],
)
def test_each_value_and_the_order_of_keys_stay(value: Any) -> None:
    written = machine_text(json.dumps(value), "yaml")

    assert json.dumps(yaml.safe_load(written)) == json.dumps(value)
    assert written.endswith("\n")


@pytest.mark.parametrize("text", ["1e3", "12e45", "0o7", "y", "N"])
def test_a_text_that_other_readers_of_yaml_take_for_a_value_has_quotes(text: str) -> None:
    assert machine_text(json.dumps({"hash": text}), "yaml") == f"hash: '{text}'\n"


def test_a_text_is_one_line_so_that_grep_finds_it() -> None:
    assert machine_text(json.dumps(["word " * 100 + "end"]), "yaml").count("\n") == 1


def test_json_stays_as_it_is_and_ends_with_one_line_feed() -> None:
    assert machine_text('{\n  "a": "ü"\n}', "json") == machine_text('{\n  "a": "ü"\n}\n', "json")
    assert machine_text('{"b": 1,  "a": 2}', "json") == '{"b": 1,  "a": 2}\n'


def test_programs_read_json_and_yaml_only() -> None:
    assert [one for one in ("text", "wide", "json", "yaml", "markdown") if for_programs(one)] == [
        "json",
        "yaml",
    ]


def test_wide_has_no_width_on_a_terminal_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")

    assert width("text") == 60
    assert width("wide") is None


PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    """The text below a heading of the page, up to the next one."""
    return PAGE.partition(f"\n{heading}\n")[2].partition("\n##")[0]


def test_the_page_is_what_the_commands_generate() -> None:
    assert reference.update(PAGE) == PAGE, "run `nox -s docs`"


def test_only_what_follows_the_marker_is_generated() -> None:
    page = reference.update(f"by hand\n{reference.MARKER}\nold\n")

    assert page.startswith(f"by hand\n{reference.MARKER}\n\n## Each command\n\n### `reconciler agent`\n")
    with pytest.raises(ValueError, match="no line"):
        reference.update("by hand\n")


def test_an_option_of_one_command_has_its_default() -> None:
    assert "- `--for DURATION`: How long drains may continue" in section("### `reconciler sweep`")
    assert "[default: 50s]" in section("### `reconciler sweep`")


def test_a_shared_option_is_described_once() -> None:
    assert PAGE.count("- `--pool TEXT`:") == 1
    assert "- `--pool TEXT`:" in section("## Shared options")


def test_options_in_sentences_are_code() -> None:
    assert "With `--watch`:" in section("## Shared options")


def test_a_full_disk_is_no_traceback() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "jobs", "schema"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (2, "stdout can't be written: No space left on device\n")


def test_an_empty_name_of_the_output_is_a_usage_error() -> None:
    found = CliRunner().invoke(commands, ["report", "--out", ""])
    assert found.exit_code == 2
    assert "--out" in found.output
    assert "it is empty or a folder" in found.output


@pytest.mark.parametrize("address", ["256.1.1.1:8080", "no-such-host.invalid:8080"])
def test_serve_says_in_a_line_that_it_cannot_listen(tmp_path: Path, address: str) -> None:
    (tmp_path / "maintenance.yaml").touch()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    given = ["serve", "--config", str(tmp_path / "maintenance.yaml"), "--listen", address]
    command = [sys.executable, "-m", "jobs", *given, "--kubeconfig", str(tmp_path / "config")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"--listen {address}: ")
    assert "Traceback" not in done.stderr
