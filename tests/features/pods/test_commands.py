"""`reconciler pods` over files: which pods were moved, for people and for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

from jobs.cli import main
from jobs.runtime.log_line import log_line
from reconciler.features.pods import EVICTED
from reconciler.features.pods.lines import MOST, PodLines
from reconciler.features.pods.moved import MovedPod, to_fields
from reconciler.features.pods.report import PodsReport, as_text
from reconciler.model.drains import Refused
from tests.support.builders import NOW, minutes


def moved(name: str, at: datetime, namespace: str = "shop", **more: object) -> MovedPod:
    return MovedPod(at, f"{namespace}/{name}", f"uid-{name}", "worker-7", "uid-7", **more)  # type: ignore[arg-type]


def write(path: Path, *pods: MovedPod) -> None:
    path.write_text("".join(f"{log_line(EVICTED, **to_fields(pod))}\n" for pod in pods), encoding="utf-8")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["pods", *arguments]) == 0
    return capsys.readouterr().out


def test_a_file_says_which_pods_of_a_namespace_were_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, now = tmp_path / "history.jsonl", datetime.now(UTC).replace(microsecond=0)
    web = moved("web", now - minutes(60), refused=(Refused("PDB shop/web", 2),))
    write(
        path,
        moved("old", now - timedelta(days=2)),
        web,
        moved("db", now - minutes(30), "data", why="shop/web"),
    )

    read = json.loads(printed(capsys, "-n", "shop", "--history", str(path), "-o", "json"))
    everywhere = json.loads(printed(capsys, "-A", "--since", "3d", "--history", str(path), "-o", "json"))

    assert read["pods"] == [to_fields(web)]
    assert read["namespace"] == "shop"
    assert [each["pod"] for each in everywhere["pods"]] == ["shop/old", "shop/web", "data/db"]
    assert "no pod of other was moved since" in printed(capsys, "-n", "other", "--history", str(path))


@pytest.mark.parametrize(
    "line",
    ['{"event": "evicted", "pod": 7}', '{"event": "evicted", "pod": %s' % ("[" * 60_000)],
    ids=["another type", "without an end"],
)
def test_a_line_that_cannot_be_read_is_counted_and_the_others_count(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "history.jsonl"
    write(path, moved("web", datetime.now(UTC)))
    path.write_text(f"{path.read_text()}{line}\n", encoding="utf-8")

    assert main(["pods", "--history", str(path)]) == 1
    said = capsys.readouterr()
    assert "1 line about pods can't be read" in said.err
    assert "shop/web" in said.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-A", "-n", "shop"], "leave one of them out"),
        (["-n", "Shop!"], "is no name of a namespace"),
        (["--history", "/missing/file"], "No such file"),
        (["--since", "soon"], "--since"),
        (["--tonight", "--since", "2d"], "--since looks back"),
        (["--tonight", "--history", "file"], "--history looks back"),
    ],
    ids=["two", "name", "file", "since", "both ways", "ahead in a file"],
)
def test_a_mistake_is_named(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pods", *arguments]) != 0
    assert says in capsys.readouterr().err


def report(*pods: MovedPod) -> PodsReport:
    return PodsReport("shop", NOW - minutes(1440), NOW, "the ConfigMap a/b", pods, NOW - minutes(90))


def test_a_text_says_who_when_why_and_what_had_refused_it() -> None:
    at = NOW - minutes(60)
    web = moved("web-1", at, why="Reboot", owner="ReplicaSet/web", refused=(Refused("PDB shop/web", 3),))
    text = as_text(report(web, moved("db-0", at, deleted=True)), ZoneInfo("UTC"))

    assert text.splitlines() == [
        "2 pods of shop were moved since Fri 20 12:00 UTC",
        "the ConfigMap a/b is complete from 10:30 on; the log has what was before",
        "",
        "11:00 db-0 deleted from worker-7",
        "11:00 web-1 (ReplicaSet/web) evicted from worker-7: Reboot; PDB shop/web had refused it 3 times",
    ]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_text_is_folded_and_obeys_no_name(width: int) -> None:
    evil = moved("\x1b[2J\nweb", NOW, why="because " * 30, owner="=HYPERLINK\r")
    text = as_text(report(evil), ZoneInfo("UTC"), width)

    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert "\r" not in text


EVIL = "=\x1b[2J\n\u202e\u2028-@\ud800"
"""A formula, a terminal that is cleared, lines, a change of the direction, and half of a character."""


@pytest.mark.parametrize("output", ["text", "wide", "json", "yaml"])
def test_what_tenants_write_into_a_line_breaks_no_output(
    output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "history.jsonl"
    evil = moved(f"web{EVIL}", datetime.now(UTC), owner=EVIL, why=EVIL, refused=(Refused(EVIL, 2),))
    write(path, evil)

    said = printed(capsys, "-n", "shop", "--history", str(path), "-o", output)

    assert all(character == "\n" or character.isprintable() for character in said)
    if output in ("text", "wide"):
        assert len(said.splitlines()) == 3
    else:
        (pod,) = yaml.safe_load(said)["pods"]
        assert pod["pod"].startswith("shop/web=\x1b[2J\n")


def test_of_very_many_pods_the_newest_count(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write(path, *(moved(f"web-{number}", NOW + timedelta(seconds=number)) for number in range(2 * MOST + 5)))
    lines = PodLines(NOW, None)
    lines.read(path)

    assert len(lines.pods) == MOST
    assert lines.pods[-1].pod == f"shop/web-{2 * MOST + 4}"
    assert lines.left_out == MOST + 5
