"""What people did, as rows for people and for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.runtime.log_line import log_line
from reconciler.features.history.tables import deeds_as_csv, deeds_as_text
from reconciler.model.sayings import DEED, Deed, to_fields
from tests.support.builders import NOW, minutes
from tests.support.cases import ended, line
from tests.support.golden import assert_as_in

DAY = timedelta(days=1)
DEEDS = (
    Deed(
        NOW - DAY, "held", "alice@example.com", True, "aks-np-12345678-vmss000007", why="disk is being copied"
    ),
    Deed(
        NOW,
        "approved",
        "system:serviceaccount:change:bot (unverified)",
        node="worker-8",
        until=NOW + DAY,
        more=3,
    ),
    Deed(NOW, "hold ended", scope="all", given=NOW - minutes(90), why="incident 311 " * 20),
    Deed(NOW, "settings changed", "helm", why="budget.maxUnavailable changed; 500 → 0 nodes managed"),
)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_what_people_did_reads_well_in_each_width(width: int) -> None:
    text = deeds_as_text(DEEDS, width)

    assert max(map(len, text.splitlines())) <= width
    assert_as_in(Path(__file__).parent / "golden" / f"audit-{width}.txt", text)


def test_nothing_that_somebody_chose_is_a_formula_breaks_a_row_or_commands_a_terminal() -> None:
    evil = Deed(NOW, "held", '=cmd|" /C calc"!A0', node="\u202e@n\r\n-1", scope="\t+1", why="\x1b[2J\n-2+3")
    rows = list(csv.DictReader(io.StringIO(deeds_as_csv([evil]))))
    text = deeds_as_text([evil], 60)

    assert len(rows) == 1
    assert not [cell for cell in rows[0].values() if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert all(each.isprintable() for each in text.splitlines())
    assert max(map(len, text.splitlines())) <= 60


def test_a_file_or_a_log_says_what_people_did_each_thing_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "history.jsonl"
    lines = [line(ended("a")), *(log_line(DEED, **to_fields(deed)) for deed in (*DEEDS, DEEDS[0]))]
    path.write_text("".join(f"{each}\n" for each in lines), encoding="utf-8")

    assert main(["history", str(path), "--audit", "-o", "json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["audit"] == [to_fields(deed) for deed in DEEDS]
    assert (whole["lines"]["cases"], whole["lines"]["other"], whole["source"]) == (1, 0, "the file")
    assert main(["history", str(path), "--audit", "--node", "000007", "-o", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["did"], row["by"], row["verified"]) == ("held", "alice@example.com", "True")
    assert main(["history", str(path), "--audit", "--node", "x"]) == 0
    assert "nothing that a person did on node x" in capsys.readouterr().err


def test_two_tables_at_once_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "x", "--audit", "--cases"]) == 2
    assert "leave all but one out" in capsys.readouterr().err
