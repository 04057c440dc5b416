"""`reconciler report`: without settings the defaults apply, and its file is written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.runtime.output import write_output
from reconciler.model.errors import OutputError
from tests.jobs.few_rights import Answers, server
from tests.support.stub import Answer, Stub, status


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Answers]:
    with server(tmp_path) as made:
        yield made


@pytest.fixture
def kubeconfig(answers: Answers) -> Path:
    return answers.kubeconfig


def test_without_config_the_defaults_apply_and_the_report_says_so(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["report", "--kubeconfig", str(kubeconfig), "--output", "json"])

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
    code = main(["report", "--kubeconfig", str(kubeconfig), "--output", "markdown", "--out", str(out)])

    assert code == 0
    assert out.read_text(encoding="utf-8").splitlines()[2] == "# Node maintenance"
    assert capsys.readouterr().out == ""


@pytest.fixture
def receiver() -> Iterator[Stub]:
    """An address that takes reports below /taken, and no others."""
    made = Stub(lambda asked: Answer() if asked.path == "/taken" else status(503))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("form", "content_type"),
    [
        ("text", "text/plain; charset=utf-8"),
        ("json", "application/json"),
        ("html", "text/html; charset=utf-8"),
    ],
)
def test_an_address_gets_what_is_printed(
    kubeconfig: Path, receiver: Stub, capsys: pytest.CaptureFixture[str], form: str, content_type: str
) -> None:
    arguments = ["report", "--kubeconfig", str(kubeconfig), "-o", form]
    code = main([*arguments, "--out", "-", "--out", f"{receiver.url}/taken"])

    assert code == 0
    (asked,) = receiver.asked
    assert (asked.method, asked.headers["Content-Type"]) == ("POST", content_type)
    assert asked.body.decode() == capsys.readouterr().out


def test_what_can_not_be_delivered_keeps_nothing_from_the_others_and_shows_no_secret(
    kubeconfig: Path, receiver: Stub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, places = (
        tmp_path / "report.txt",
        [f"{receiver.url}/SECRET", "configmap/ours/report", "http://127.0.0.1:1/"],
    )
    named = [argument for place in (*places, str(file)) for argument in ("--out", place)]
    code = main(["report", "--kubeconfig", str(kubeconfig), *named])

    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert "reconciler:" in file.read_text(encoding="utf-8")
    last = printed.err.splitlines()[-1]
    assert "http://127.0.0.1: answered 503, so the report was not taken" in last
    assert "configmap/ours/report: it may not be written; that needs patch configmaps in ours" in last
    assert "no answer" in last
    assert "SECRET" not in printed.err


def test_a_report_that_is_too_large_for_a_config_map_is_named(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("jobs.runtime.destinations.LARGEST", 10)
    code = main(["report", "--kubeconfig", str(kubeconfig), "--out", "configmap/ours/report"])

    assert code == 2
    assert "and a ConfigMap 10 at most; print only some rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("https://169.254.1.1/SECRET", "the address is a link-local address"),
        ("https://", "the address is not a URL"),
        ("configmap/a/b/c", "is not configmap/NAMESPACE/NAME"),
    ],
)
def test_a_place_that_can_not_be_meant_is_a_usage_error(
    place: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--out", place]) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert "SECRET" not in printed


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
