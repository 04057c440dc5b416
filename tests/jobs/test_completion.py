"""Completion: names come from the cluster within a second, and nothing that goes wrong is seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from jobs.cli import commands, main
from jobs.commands import COMMANDS
from jobs.completion import cluster_names
from jobs.completion.protocol import answer_shell, completions
from reconciler.kubernetes.connection import Connection
from tests.support.fakes.threads import Once, refused
from tests.support.stub import Answer, Asked, Stub, json_answer, status
from tests.support.terminal import completes

ROOT = Path(__file__).parents[2]

NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
LABELLED = [
    {"kubernetes.azure.com/agentpool": "system"},
    {"karpenter.sh/nodepool": "spot", "agentpool": "other"},
    {"kubernetes.azure.com/agentpool": "system"},
    {},
]


def table(*names: str, position: str = "") -> Answer:
    rows = [{"cells": [name, "Ready"], "object": None} for name in names]
    return json_answer({"kind": "Table", "metadata": {"continue": position}, "rows": rows})


def answer(asked: Asked) -> Answer:
    match asked.path:
        case "/api/v1/nodes" if "as=PartialObjectMetadataList" in asked.headers["Accept"]:
            items = [{"metadata": {"labels": labels}} for labels in LABELLED]
            return json_answer({"metadata": {}, "items": items})
        case "/api/v1/nodes" if not asked.query.get("continue"):
            return table("aks-a-000000", "aks-a-000001", position="next")
        case "/api/v1/nodes":
            return table("aks-b-000000")
        case "/api/v1/namespaces":
            return table("default", "shop")
        case "/api/v1/namespaces/shop/pods":
            return table("web-0", "web-1", "cache-0")
    return status(404, "NotFound", "no")


Serve = Callable[[Callable[[Asked], Answer]], Path]
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are waited for as long as a busy machine may need."""
    assert cluster_names.LIMIT == 1
    monkeypatch.setattr(cluster_names, "LIMIT", PATIENCE)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server with these answers; returns its kubeconfig."""
    stubs: list[Stub] = []

    def start(answers: Callable[[Asked], Answer]) -> Path:
        stubs.append(Stub(answers))
        return stubs[-1].write_kubeconfig(tmp_path / "kubeconfig")

    yield start
    for stub in stubs:
        stub.close()


@pytest.fixture
def kubeconfig(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = serve(answer)
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def asked(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], str]:
    """What kubectl would offer, and the directive for the shell."""
    assert main(["__complete", *words]) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    *lines, directive = shown.out.splitlines()
    return [line.partition("\t")[0] for line in lines], directive


@pytest.mark.parametrize(
    ("words", "offered", "directive"),
    [
        pytest.param(
            ["re"],
            ["readiness", "record", "release", "replay", "report", "request", "resume"],
            ":4",
            id="commands",
        ),
        pytest.param([""], sorted(COMMANDS), ":4", id="all commands"),
        pytest.param([], sorted(COMMANDS), ":4", id="no word at all"),
        pytest.param(["report", "--nam"], ["--namespace"], ":4", id="options"),
        pytest.param(["report", "-o", "j"], ["json"], ":4", id="values of an option"),
        pytest.param(["report", "--output=m"], ["markdown"], ":4", id="after an equals sign"),
        pytest.param(["report", "--config", ""], [], ":0", id="files"),
        pytest.param(["report", "--kubeconfig", "a"], [], ":0", id="files by name"),
        pytest.param(["no-such-command", "--a", "x"], [], ":4", id="an unknown command"),
    ],
)
def test_commands_options_and_values_are_offered(
    words: list[str], offered: list[str], directive: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert asked(capfd, *words) == (offered, directive)


def test_what_is_offered_has_a_description_in_the_words_of_the_plugin(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/kubectl_complete-maintenance", "report", "--confi"])

    assert main() == 0

    line, directive = capfd.readouterr().out.splitlines()
    assert line.startswith("--config\tThe settings: a file, or")
    assert directive == ":4"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["report", "aks-"], ["aks-a-000000", "aks-a-000001", "aks-b-000000"]),
        (["drain", "aks-a-000001", "aks-a"], ["aks-a-000000"]),
        (["hold", "--until", "+2h", "aks-b"], ["aks-b-000000"]),
        (["release", "aks-b"], ["aks-b-000000"]),
        (["request", "aks-b"], ["aks-b-000000"]),
        (["explain", "aks-b"], ["aks-b-000000"]),
        (["explain", "shop/w"], ["shop/web-0", "shop/web-1"]),
        (["explain", "../w"], []),
        (["hold", "--pool", ""], ["spot", "system"]),
        (["report", "-n", ""], ["default", "shop"]),
        (["plan", "--namespace=s"], ["shop"]),
        (["explain", "-n", "shop", "w"], ["web-0", "web-1"]),
        (["hold", "--reconciler-namespace", "s"], ["shop"]),
    ],
)
@pytest.mark.usefixtures("kubeconfig")
def test_names_come_from_the_cluster(
    words: list[str], offered: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert asked(capfd, *words)[0] == offered


def test_the_cluster_is_the_one_that_the_options_name(
    serve: Serve, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = serve(answer)
    monkeypatch.setenv("KUBECONFIG", "/no/such/file")

    assert asked(capfd, "report", "--kubeconfig", str(path), "aks-b")[0] == ["aks-b-000000"]
    assert asked(capfd, "report", "aks-b")[0] == []


@pytest.mark.parametrize("name", ["$(reboot)", "a b", "a\nb", "*", "-rf", "\x1b[2J", "", "a;b", "`a`"])
def test_a_name_that_a_shell_would_expand_is_not_offered(
    name: str, serve: Serve, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(serve(lambda _: table("first", name, "last"))))

    assert asked(capfd, "report", "")[0] == ["first", "last"]


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(lambda _: status(403, "Forbidden", "no"), id="a refusal"),
        pytest.param(
            lambda _: json_answer({"rows": [{"cells": []}], "metadata": {}}), id="a row without cells"
        ),
        pytest.param(lambda _: json_answer([1]), id="another document"),
        pytest.param(lambda _: Answer(b"{", cut=True), id="a cut answer"),
    ],
)
def test_what_goes_wrong_is_not_seen(
    answers: Callable[[Asked], Answer],
    serve: Serve,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(serve(answers)))

    assert asked(capfd, "report", "") == ([], ":4")
    assert asked(capfd, "hold", "--pool", "") == ([], ":4")


def test_where_no_thread_can_start_no_names_are_offered(
    serve: Serve, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(serve(lambda _: table("a"))))
    with refused(Once("names")):
        assert asked(capfd, "report", "") == ([], ":4")


def test_a_cluster_that_does_not_answer_is_waited_for_no_longer_than_the_limit(
    serve: Serve, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = threading.Event()
    limits: list[float | None] = []
    join = threading.Thread.join

    def slow(one: Asked) -> Answer:
        if not one.query.get("continue"):
            return table("first", position="next")
        hangs.set()
        return Answer(hang=True)

    def waits(thread: threading.Thread, timeout: float | None = None) -> None:
        """The time is over when the second page hangs."""
        if thread.name != "names":
            return join(thread, timeout)
        limits.append(timeout)
        assert hangs.wait(PATIENCE)
        return None

    monkeypatch.setattr(threading.Thread, "join", waits)
    monkeypatch.setenv("KUBECONFIG", str(serve(slow)))

    # The stub would hold it until the test ends; what came in time is offered.
    assert asked(capfd, "report", "")[0] == ["first"]
    assert limits == [PATIENCE]


def test_credentials_are_waited_for_no_longer_either(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    class Slow(Connection):
        def __init__(self, kubeconfig: str | None = None, context: str | None = None) -> None:
            over.wait()

    monkeypatch.setattr(cluster_names, "LIMIT", 0.01)
    monkeypatch.setattr(cluster_names, "Connection", Slow)
    try:
        assert asked(capfd, "report", "")[0] == []
    finally:
        over.set()


def test_a_program_that_gives_credentials_does_not_reach_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    seen: list[bytes] = []

    def value(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        os.write(2, b"To sign in, open a browser")
        seen.append(os.read(0, 100))
        return []

    root = click.Group("root", commands=[click.Command("a", params=[_argument(value)])])

    with _typed(b"what the person types next"):
        assert completions(root, ["a"], "") == []
        seen.append(os.read(0, 100))
    os.write(2, b"afterwards")
    assert seen == [b"", b"what the person types next"]
    assert capfd.readouterr().err == "afterwards"


@contextmanager
def _typed(keys: bytes) -> Iterator[None]:
    """Make these keys the standard input."""
    before, (reading, writing) = os.dup(0), os.pipe()
    os.write(writing, keys)
    os.close(writing)
    os.dup2(reading, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        for one in (before, reading):
            os.close(one)


def test_an_error_of_our_own_is_not_seen_either(capfd: pytest.CaptureFixture[str]) -> None:
    def value(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        raise RuntimeError("broken")

    root = click.Group("root", commands=[click.Command("a", params=[_argument(value)])])

    assert completions(root, ["a"], "") == []
    assert capfd.readouterr().err == ""


def _argument(value: Callable[[click.Context, click.Parameter, str], list[Any]]) -> click.Argument:
    return click.Argument(["name"], shell_complete=value)


def test_contexts_are_those_of_each_kubeconfig_that_can_be_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, broken, last = tmp_path / "first", tmp_path / "broken", tmp_path / "last"
    first.write_text("contexts: [{name: prod}, {name: 'a b'}]\n", encoding="utf-8")
    broken.write_text("contexts: [{name", encoding="utf-8")
    last.write_text("contexts: [{name: admin@test/eu}]\n", encoding="utf-8")
    paths = os.pathsep.join(map(str, (first, broken, tmp_path / "missing", last)))
    monkeypatch.setenv("KUBECONFIG", paths)

    assert asked(capfd, "report", "--context", "")[0] == ["admin@test/eu", "prod"]
    assert asked(capfd, "report", "--kubeconfig", str(first), "--context", "")[0] == ["prod"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("words", "imported"), [(["re"], []), (["--h"], []), (["schema", ""], ["jobs.commands.small"])]
)
def test_completion_imports_no_other_command(words: list[str], imported: list[str]) -> None:
    code = (
        "import sys; from jobs.cli import main; main(sys.argv[1:]);"
        "print(sorted(name for name in sys.modules if name.startswith('jobs.commands.')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "__complete", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.splitlines()[-1] == str(imported)


def test_bash_takes_an_equals_sign_for_a_word_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "reconciler\nreport\n--output\n=\nm")
    monkeypatch.setenv("COMP_CWORD", "4")

    assert answer_shell(commands, "bash_complete") == "plain,markdown\n"


@pytest.mark.parametrize("instruction", ["bash_source", "tcsh_complete", ""])
def test_an_unknown_instruction_of_a_shell_has_no_answer(instruction: str) -> None:
    assert answer_shell(commands, instruction) == ""


@pytest.mark.heavy
def test_the_script_works_in_bash(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash on the path")

    completes([bash, "--norc", "--noprofile", "-i"], "source <(reconciler completion bash)", tmp_path)


def test_the_file_for_kubectl_asks_the_plugin(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/kubectl-maintenance"])

    assert main(["completion", "kubectl"]) == 0
    assert capsys.readouterr().out == '#!/bin/sh\nexec kubectl maintenance __complete "$@"\n'
    assert main(["completion", "bash"]) == 2
    assert "kubectl completes its plugins itself" in capsys.readouterr().err
