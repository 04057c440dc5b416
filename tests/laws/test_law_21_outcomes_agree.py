"""Law 21: history, its JSON, metrics and page say the same about what became of a case."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from reconciler.model.case_outcome import ENDS, CaseResult, InTime
from reconciler.model.ended_case import EndedCase
from tests.support.builders import NOW
from tests.support.cases import ended, line
from tests.support.of_features import from_tests
from website.dashboard import dashboard

ROOT = Path(__file__).parents[2]
WORDS = {InTime.YES: "1 of 1 in time (100%)", InTime.NO: "0 of 1 in time (0%)", InTime.UNKNOWN: "not known"}
_SERIES = re.compile(r'node_maintenance_cases_total\{outcome=~?\\?"([a-z|]+)')


def history_of(
    case: EndedCase, folder: Path, capsys: pytest.CaptureFixture[str], **changed: Any
) -> tuple[str, dict[str, Any]]:
    """What `reconciler history` prints of the line of a case: as text, and as a document."""
    file = folder / "history.jsonl"
    file.write_text(line(case, **changed) + "\n", encoding="utf-8")
    printed = []
    for output in ("text", "json"):
        assert main(["history", str(file), "--output", output]) == 0
        printed.append(capsys.readouterr().out)
    return printed[0], json.loads(printed[1])


@pytest.mark.parametrize("outcome", ENDS)
@pytest.mark.parametrize("written", ["yes", "no", "unknown"], ids=lambda text: f"the line says {text}")
def test_history_metrics_and_page_agree_on_a_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], outcome: CaseResult, written: str
) -> None:
    case = ended("n1", at=NOW - timedelta(hours=1), outcome=outcome)
    assert json.loads(line(case))["inTime"] == outcome.in_time.value

    text, document = history_of(case, tmp_path, capsys, inTime=written)
    total, share = document["total"], {InTime.YES: 1.0, InTime.NO: 0.0}.get(outcome.in_time)
    assert total["outcomes"] == {one.value: int(one is outcome) for one in ENDS}
    assert total["inTime"] == {one.value: int(one is outcome.in_time) for one in InTime}
    assert (total["shareInTime"], WORDS[outcome.in_time] in text) == (share, True)
    struck = [(one["outcome"], one["inTime"]) for one in document["struck"]]
    assert struck == ([] if outcome.good else [(outcome.value, "no")])

    for names_outcome in from_tests("agreement", "names_outcome"):
        names_outcome(case, outcome)


@pytest.mark.parametrize("place", ["docs/metrics.md", "the dashboard"])
def test_each_query_about_outcomes_has_the_same_meaning_of_in_time(place: str) -> None:
    text = json.dumps(dashboard()) if place == "the dashboard" else (ROOT / place).read_text(encoding="utf-8")
    sets = {frozenset(one.split("|")) for one in _SERIES.findall(text)}
    of = {
        answer: frozenset(one.value for one in ENDS if one.in_time is answer)
        for answer in (InTime.YES, InTime.NO)
    }
    assert sets
    assert sets <= {of[InTime.YES], of[InTime.NO], of[InTime.YES] | of[InTime.NO]}
