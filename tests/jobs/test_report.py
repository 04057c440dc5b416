"""`reconciler report`: without settings the defaults apply, and its file is written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.runtime.output_file import write_output
from reconciler.errors import OutputError
from tests.support.stub import Answer, Asked, Stub, json_answer, status

PERMITTED = {"/api/v1/nodes": "NodeList", "/api/v1/pods": "PodList"}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """A server with no nodes, at which we may list nodes and pods only."""

    def answer(asked: Asked) -> Answer:
        if asked.path in PERMITTED:
            listed = {"kind": PERMITTED[asked.path], "apiVersion": "v1", "items": []}
            return json_answer({**listed, "metadata": {"resourceVersion": "1"}})
        return status(403, "Forbidden", "no")

    stub = Stub(answer)
    yield stub.write_kubeconfig(tmp_path / "kubeconfig")
    stub.close()


def test_without_config_the_defaults_apply_and_the_report_says_so(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["report", "--kubeconfig", str(kubeconfig), "--format", "json"])

    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["mode"] == "Observe"
    assert document["settings"] is None
    assert "default settings, because --config is not given" in document["notes"][0]
    assert {one["needs"] for one in document["unseen"]} == {
        "get configmaps in node-maintenance",
        "get configmaps in kube-system",
        "get daemonsets.apps in node-maintenance-agent",
    }


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
    assert out.read_text(encoding="utf-8").startswith("# Node maintenance\n")
    assert capsys.readouterr().out == ""


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
