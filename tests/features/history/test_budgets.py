"""Which budgets held drains for how long, as a table of the worst."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from jobs.cli import main
from reconciler.features.history.budgets import as_csv, as_text, budget_times
from reconciler.model.case_outcome import CaseResult
from reconciler.model.drains import HeldBy
from reconciler.model.values import replace
from tests.support.builders import NOW, minutes
from tests.support.cases import ended, line
from tests.support.golden import assert_as_in

LEDGER, WEB = "shop/ledger", "shop/web-with-a-rather-long-name-0123456789"
CASES = (
    replace(ended("a"), held_by=(HeldBy(LEDGER, 106), HeldBy(WEB, 30))),
    replace(ended("b", at=NOW + minutes(9), outcome=CaseResult.MISSED), held_by=(HeldBy(LEDGER, 7200),)),
    ended("c"),
)


def test_the_time_of_each_budget_is_added_up_and_the_worst_comes_first() -> None:
    ledger, web = budget_times(CASES)

    assert (ledger.budget, ledger.seconds, ledger.cases, ledger.missed) == (LEDGER, 7306, 2, 1)
    assert (ledger.worst, ledger.node, ledger.last) == (7200, "b", NOW + minutes(9))
    assert (web.seconds, web.cases, web.missed) == (30, 1, 0)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_worst_budgets_read_well_in_each_width(width: int) -> None:
    text = as_text(budget_times(CASES), width)

    assert max(map(len, text.splitlines())) <= width
    assert_as_in(Path(__file__).parent / "golden" / f"budgets-{width}.txt", text)


def test_a_file_says_which_budgets_held_drains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("".join(f"{line(case)}\n" for case in CASES), encoding="utf-8")

    assert main(["history", str(path), "--budgets", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["budget"], row["heldSeconds"]) for row in found["budgets"]] == [(LEDGER, 7306), (WEB, 30)]
    assert main(["history", str(path), "--budgets", "--node", "a", "-o", "csv"]) == 0
    assert next(csv.DictReader(io.StringIO(capsys.readouterr().out)))["heldSeconds"] == "106"
    assert main(["history", str(path), "--cases"]) == 0
    assert f"{LEDGER} held 1m46s; {WEB} held 30s" in capsys.readouterr().out
    assert main(["history", str(path), "--cases", "-o", "csv"]) == 0
    assert f"{LEDGER} held 1m46s; {WEB} held 30s" in capsys.readouterr().out


def test_no_name_of_a_budget_is_a_formula_or_commands_a_terminal() -> None:
    evil = replace(ended("=a"), held_by=(HeldBy("=cmd\x1b[2J\n/x", 5),))
    times = budget_times([evil])

    assert all(each.isprintable() for each in as_text(times, 60).splitlines())
    (row,) = csv.DictReader(io.StringIO(as_csv(times)))
    assert not [cell for cell in row.values() if cell.startswith(("=", "+", "-", "@"))]
    assert as_text(()) == "no budget held a drain, as far as the history says\n"
