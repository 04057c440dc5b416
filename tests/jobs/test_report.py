"""`reconciler report`: without settings the defaults apply, and its file is written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.runtime.output import write_output
from reconciler.features.notices.deliveries import failed
from reconciler.features.notices.memory import KEY, NAME, Memory, to_text
from reconciler.model.errors import OutputError
from tests.features.page.reading import parsed, section
from tests.support.builders import NOW
from tests.support.stub import Answer, Asked, Stub, json_answer, status

PERMITTED = {"/api/v1/nodes": "NodeList", "/api/v1/pods": "PodList"}


@dataclass
class Answers:
    """A server, and what it returns besides lists without items, by path."""

    kubeconfig: Path
    extra: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Answers]:
    """A server with no nodes, at which we may list nodes and pods only."""

    def answer(asked: Asked) -> Answer:
        if asked.path in PERMITTED:
            listed = {"kind": PERMITTED[asked.path], "apiVersion": "v1", "items": []}
            return json_answer({**listed, "metadata": {"resourceVersion": "1"}})
        if asked.path in made.extra:
            return json_answer(made.extra[asked.path])
        return status(403, "Forbidden", "no")

    stub = Stub(answer)
    made = Answers(stub.write_kubeconfig(tmp_path / "kubeconfig"))
    yield made
    stub.close()


@pytest.fixture
def kubeconfig(answers: Answers) -> Path:
    return answers.kubeconfig


def test_without_config_the_defaults_apply_and_the_report_says_so(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["report", "--kubeconfig", str(kubeconfig), "--format", "json"])

    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert code == 0
    assert document["mode"] == "Observe"
    assert document["settings"] is None
    assert printed.err.splitlines()[0] == document["defaultSettings"]
    assert document["defaultSettings"].startswith("default settings: the ConfigMap node-maintenance/")
    assert {one["needs"] for one in document["unseen"]} == {
        "get configmaps in node-maintenance",
        "get configmaps in kube-system",
        "get daemonsets.apps in node-maintenance-agent",
    }


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (
            to_text(failed(Memory(), "ops", "no connection", NOW)),
            "notices to ops fail since 2026-11-21T12:00:00Z: no connection; 0 messages wait",
        ),
        ("{", "notices: whether they can be sent is not known: "),
        (None, "notices: whether they can be sent is not known: needs get configmaps in node-maintenance"),
    ],
)
def test_the_report_says_which_notices_can_not_be_sent(
    answers: Answers, tmp_path: Path, capsys: pytest.CaptureFixture[str], data: str | None, note: str
) -> None:
    config = tmp_path / "maintenance.yaml"
    config.write_text("notify: [{name: ops, webhook: {url: 'http://127.0.0.1:1/'}}]\n", encoding="utf-8")
    if data is not None:
        found = {"kind": "ConfigMap", "metadata": {"name": NAME, "uid": "u"}, "data": {KEY: data}}
        answers.extra[f"/api/v1/namespaces/node-maintenance/configmaps/{NAME}"] = found
    arguments = ["report", "--kubeconfig", str(answers.kubeconfig), "--config", str(config)]
    code = main([*arguments, "--format", "json"])

    assert code == 0
    assert [one for one in json.loads(capsys.readouterr().out)["notes"] if one.startswith(note)]


def test_a_missing_folder_is_a_message_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "reports" / "today"
    code = main(["report", "--out", str(folder / "a.txt"), "--kubeconfig", "/no/such/file"])

    assert code == 2
    assert f"does not exist; create it with: mkdir -p {folder}" in capsys.readouterr().err


def test_the_file_has_the_report(
    kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.md"
    code = main(["report", "--kubeconfig", str(kubeconfig), "--format", "markdown", "--out", str(out)])

    assert code == 0
    assert out.read_text(encoding="utf-8").splitlines()[2] == "# Node maintenance"
    assert capsys.readouterr().out == ""


def test_the_page_is_written_as_one_file_with_the_readiness_and_without_the_document(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To make the document would raise a TypeError.
    monkeypatch.setattr("jobs.commands.report.to_report", None)
    out = tmp_path / "page.html"
    code = main(["report", "--kubeconfig", str(kubeconfig), "-o", "html", "--out", str(out)])
    page = parsed(out.read_text(encoding="utf-8"))

    assert code == 0
    assert "There are no nodes." in section(page, "fleet").text
    assert "no node was judged" in section(page, "readiness").text
    assert "Only reconciler serve shows the cases that have ended." in section(page, "timeline").text


def test_a_page_of_some_rows_is_refused(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["report", "a", "--kubeconfig", str(kubeconfig), "-o", "html"])

    assert code == 2
    assert "a page shows the whole fleet" in capsys.readouterr().err


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "report.txt"
    out.write_text("before", encoding="utf-8")

    def full(self: Path, *_: object, **__: object) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OutputError, match="No space left on device"):
        write_output(out, "after")

    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("report.txt", b"before")]


def test_what_was_there_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before", encoding="utf-8")
    target.chmod(0o640)
    link.symlink_to(target)
    write_output(link, "after")

    assert link.is_symlink()
    assert target.read_text(encoding="utf-8") == "after"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_output(pipe, "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
