"""Rows from maintenance-controller's own tests, run by their meaning."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.plan import Verdict
from reconciler.model.record import State
from reconciler.settings.loose import parse_go_duration
from tests.features.workflows.scene import ask, given, member
from tests.support.builders import NOW, node

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "cases" / "sapcc.json").read_text(encoding="utf-8")
)["cases"]


def rows(*kinds: str) -> list[dict[str, Any]]:
    """The rows of these types of checks."""
    found = [row for row in ROWS if row.get("plugin") in kinds]
    assert found
    return found


def case_id(row: dict[str, Any]) -> str:
    """A row's words as its test's name."""
    return " ".join(str(value) for value in row.values())


def moment(row: dict[str, Any], key: str) -> datetime:
    """A moment of a row; one that begins with a minus is that long ago."""
    text = row.get(key, "")
    if text.startswith("-"):
        return NOW - parse_go_duration(text[1:])
    return datetime.fromisoformat(text) if text else NOW


@pytest.mark.parametrize("row", rows("timeWindow", "wait", "waitExclude"), ids=case_id)
def test_checks_of_time(row: dict[str, Any]) -> None:
    now = moment(row, "now")
    since = moment(row, "last_transition") if "last_transition" in row else now
    if "error" in row:
        # A window past midnight is a window here.
        assert "overnight refused" in row["error"]
        now = datetime.fromisoformat("2026-11-24T17:29Z")
    answer = ask(row["plugin"], given(now=now, since=since), **row["config"])

    assert (answer.verdict is Verdict.PASSED) is row.get("passed", True)


@pytest.mark.parametrize("row", rows("clusterSemver"), ids=case_id)
def test_versions(row: dict[str, Any]) -> None:
    others = [member(f"n{at}", labels={"v": one} if one else {}) for at, one in enumerate(row["cluster"])]
    scene = given(*others, node=node("a", labels={"v": row["self"]}))

    answer = ask("clusterSemver", scene, key="v", profileScoped=row["profileScoped"])

    meant = {True: Verdict.PASSED, False: Verdict.FAILED, "error": Verdict.UNKNOWN}
    assert answer.verdict is meant[row["result"]]


@pytest.mark.parametrize("row", rows("anyLabel"), ids=case_id)
def test_labels(row: dict[str, Any]) -> None:
    first, second = row["nodes"]
    scene = given(member("b", labels=second), node=node("a", labels=first))

    assert (ask("anyLabel", scene, **row["config"]).verdict is Verdict.PASSED) is row["passed"]


BUSY = State.IN_MAINTENANCE
GROUP = "group"
SCENES = {
    "1 node in maintenance, max 2": given(member("b", BUSY)),
    "profile filter: one of two nodes labelled, max 1": given(
        member("b", BUSY, profile="profile"), member("c", BUSY, profile="other")
    ),
    "skipAfter 50s, transition 20s ago": given(member("b", BUSY, since=NOW - timedelta(seconds=20))),
    "skipAfter 50s + profile": given(member("b", BUSY, profile="profile", since=NOW - timedelta(seconds=20))),
    "groupBy, other node without label": given(member("b", BUSY), node=node("a", labels={GROUP: "a"})),
    "groupBy, self label value empty => whole cluster": given(
        member("b", BUSY, labels={GROUP: "d"}), node=node("a", labels={GROUP: ""})
    ),
}


@pytest.mark.parametrize("row", rows("maxMaintenance"), ids=case_id)
def test_limits(row: dict[str, Any]) -> None:
    answer = ask("maxMaintenance", SCENES[row["name"]], **row["config"])

    assert (answer.verdict is Verdict.PASSED) is row["passed"]
