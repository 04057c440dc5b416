"""The look ahead for machines."""

from __future__ import annotations

import json
import re

from reconciler.features.planning.text import ahead_document
from reconciler.report.document import as_json
from tests.report.ahead_scene import MISS, POOL, everything


def test_a_miss_has_its_moments_in_utc_and_its_reason() -> None:
    document = ahead_document(everything("Asia/Kolkata"))
    found = next(one for one in document["cases"] if one["name"] == f"{POOL}000003")

    assert found == {
        "name": f"{POOL}000003",
        "zone": "1",
        "pool": "np",
        "status": "missed",
        "kinds": ["Reboot"],
        "notBefore": "2026-11-23T00:00:00Z",
        "schedule": {
            "plannedStart": "2026-11-23T01:00:00Z",
            "latestStart": "2026-11-22T23:00:00Z",
            "window": None,
            "missed": True,
            "because": MISS,
            "forecast": "will be missed",
            "forecastBecause": MISS,
            "obstacles": [],
            "started": False,
            "ends": None,
            "planFrom": None,
            "planUntil": None,
            "observed": False,
        },
    }
    assert document["timeZone"] == "Asia/Kolkata"


def test_each_case_is_in_one_calendar_with_its_windows_and_freezes() -> None:
    document = json.loads(as_json(ahead_document(everything())))
    nodes = [node for one in document["calendars"] for node in one["nodes"]]

    assert sorted(nodes) == sorted(one["name"] for one in document["cases"])
    assert document["calendars"][0]["openings"][0] == {
        "start": "2026-11-21T22:00:00Z",
        "end": "2026-11-22T05:00:00Z",
        "window": "nights",
    }
    assert document["calendars"][0]["freezes"] == [
        {
            "start": "2026-11-23T00:00:00Z",
            "end": "2026-11-24T06:00:00Z",
            "name": "sale",
            "reason": "black friday",
            "absolute": False,
        }
    ]
    assert [one["name"] for one in document["later"]] == ["far"]


def test_no_moment_has_another_offset_than_utc() -> None:
    text = as_json(ahead_document(everything("Asia/Kolkata")))

    assert re.search(r"\d\d:\d\d:\d\dZ", text)
    assert re.findall(r"\d\d:\d\d[+-]\d\d:\d\d", text) == []
