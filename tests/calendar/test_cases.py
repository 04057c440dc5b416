"""Rows from other projects' tests, run by their meaning; the files in tests/cases/ name their sources."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from reconciler.calendar.values import parse_days, parse_limit
from reconciler.model.errors import SettingsError
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings

CASES = Path(__file__).parent.parent / "cases"


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    found: list[dict[str, Any]] = json.loads((CASES / name).read_text(encoding="utf-8"))["cases"]
    return found


def policy(**keys: object) -> Settings:
    """Read settings as from a file; JSON is YAML."""
    return parse_settings(json.dumps(keys), "f")


def case_id(row: dict[str, Any]) -> str:
    """Return a row's words as its test's name."""
    return " ".join(str(value) for value in row.values())


@pytest.mark.parametrize("row", rows("kured_timewindow.json"), ids=case_id)
def test_kureds_windows(row: dict[str, Any]) -> None:
    window = {key: row[key] for key in ("days", "start", "end")}
    settings = policy(timeZone=row["tz"], windows=[window])
    zone = ZoneInfo(row.get("at_tz", row["tz"]))
    now = datetime.strptime(row["at"], "%Y/%m/%d %H:%M").replace(tzinfo=zone)

    assert settings.calendar.at(now, {}).open is row.get("ours", row["inside"])


@pytest.mark.parametrize("row", rows("kured_weekdays.json"), ids=case_id)
def test_kureds_days(row: dict[str, Any]) -> None:
    if row.get("error") or not row["days"]:
        # A window that names no day would never open, and so is refused.
        with pytest.raises(SettingsError):
            policy(windows=[{"days": row["input"].split(",")}])
        return

    window = policy(windows=[{"days": row["input"].split(",")}]).windows[0]

    assert window.days == parse_days(row["days"])


def _downscaler_window(spec: str) -> dict[str, object]:
    """Turn kube-downscaler's `Mon-Fri 08:00-18:00 UTC`, or two moments with a dash, into a window of ours."""
    weekly = re.fullmatch(r"(\S+) ([0-9:]+)-([0-9:]+) (\S+)", spec)
    if weekly:
        days, start, end, zone = weekly.groups()
        return {"days": [days], "start": start, "end": end, "timeZone": zone}
    moment = r"[0-9-]{10}T[0-9:]+[+-][0-9]{2}:[0-9]{2}"
    start, end = re.fullmatch(f"({moment})-({moment})", spec).groups()  # type: ignore[union-attr]  # or it fails
    return {"start": start, "end": end}


@pytest.mark.parametrize("row", rows("kube_downscaler_time.json"), ids=case_id)
def test_kube_downscalers_times(row: dict[str, Any]) -> None:
    if row.get("error"):
        with pytest.raises(SettingsError):
            policy(windows=[{"days": row["spec"]}])
        return
    window = _downscaler_window(row["spec"])
    if window.get("start") == window.get("end"):
        # It never matches: a mistake that says how to write the whole day.
        assert row["match"] is False
        with pytest.raises(SettingsError, match="never apply"):
            policy(windows=[window])
        return

    now = datetime.fromisoformat(row["at"])
    assert policy(windows=[window]).calendar.at(now, {}).open is row["match"]


def _karpenter_moment(text: str) -> datetime:
    go = re.search(r"= (\S+)$", text)  # a row that explains Go's overflowing dates ends with the moment
    return datetime.fromisoformat(go[1] if go else text)


@pytest.mark.parametrize(
    "row", [row for row in rows("karpenter_budgets.json") if "active" in row], ids=case_id
)
def test_karpenters_schedules(row: dict[str, Any]) -> None:
    window = {key: row[key] for key in ("schedule", "duration")}
    now = _karpenter_moment(row["now"]) if "now" in row else datetime(2026, 11, 23, tzinfo=UTC)

    assert policy(windows=[window]).calendar.at(now, {}).open is row["active"]


@pytest.mark.parametrize(
    "row", [row for row in rows("karpenter_budgets.json") if "nodes" in row], ids=case_id
)
def test_karpenters_limits(row: dict[str, Any]) -> None:
    assert parse_limit(row["nodes"]).of(row["total"]) == row["allowed"]
    assert (
        policy(budget={"maxUnavailable": row["nodes"]}).budget.max_unavailable.of(row["total"])
        == (row["allowed"])
    )


TIME_WINDOWS = [row for row in rows("sapcc.json") if row.get("plugin") == "timeWindow"]


@pytest.mark.parametrize("row", [row for row in TIME_WINDOWS if "now" in row], ids=case_id)
def test_maintenance_controllers_windows(row: dict[str, Any]) -> None:
    config = row["config"]
    window = {"days": config["weekdays"], "start": config["start"], "end": config["end"]}
    # `Feb 2` is a day of every year: a freeze by cron.
    freezes = [
        {"name": day, "schedule": f"0 0 {day.split()[1]} {day.split()[0]} *", "duration": "24h"}
        for day in config.get("exclude", [])
    ]
    settings = policy(windows=[window], notAllowed=freezes)

    assert settings.calendar.at(datetime.fromisoformat(row["now"]), {}).open is row["passed"]


@pytest.mark.parametrize("row", [row for row in TIME_WINDOWS if "error" in row], ids=case_id)
def test_what_maintenance_controller_refuses_is_a_window_over_midnight(row: dict[str, Any]) -> None:
    config = row["config"]
    assert "overnight refused" in row["error"]

    settings = policy(windows=[{"days": config["weekdays"], "start": config["start"], "end": config["end"]}])

    assert settings.calendar.at(datetime(2026, 11, 24, 17, 29, tzinfo=UTC), {}).open
    assert not settings.calendar.at(datetime(2026, 11, 24, 17, 30, tzinfo=UTC), {}).open
