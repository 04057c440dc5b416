"""Planned-maintenance configurations of AKS, in both of their forms."""

import json
import re
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from reconciler.features.calendars.aks_maintenance import is_aks, parse_aks


def window(schedule: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Return a configuration as `az aks maintenanceconfiguration show` prints it, with nulls."""
    kinds = dict.fromkeys(("absoluteMonthly", "daily", "relativeMonthly", "weekly"))
    given = {"durationHours": 4, "startTime": "22:00", "utcOffset": None, "startDate": "2026-01-01"}
    return {
        "id": "/subscriptions/x",
        "name": "aksManagedNodeOSUpgradeSchedule",
        "maintenanceWindow": {**given, "notAllowedDates": None, "schedule": {**kinds, **schedule}, **keys},
        "notAllowedTime": None,
        "timeInWeek": None,
    }


def runs(document: object, since: str = "2026-01-01", count: int = 3) -> str:
    """Return the first runs of a configuration after a moment, in UTC and without the year 2026."""
    moment = datetime.fromisoformat(since).replace(tzinfo=UTC)
    found = islice(parse_aks(document).runs(moment), count)
    written = (f"{run.start:%Y-%m-%dT%H:%M} {run.end:%Y-%m-%dT%H:%M}" for run in found)
    return ", ".join(written).replace("2026-", "")


def monthly(kind: str, months: int, **keys: object) -> dict[str, Any]:
    """Return a schedule of every so many months."""
    return {f"{kind}Monthly": {"intervalMonths": months, **keys}}


DAILY = {"daily": {"intervalDays": 1}}
FRIDAYS = {"weekly": {"intervalWeeks": 2, "dayOfWeek": "Friday"}}
LAST_SUNDAY = monthly("relative", 1, weekIndex="Last", dayOfWeek="Sunday")
FIRST_MONDAY = monthly("relative", 2, weekIndex="First", dayOfWeek="Monday")
SCHEDULES = {
    "every second day, from the start date on": (
        {"daily": {"intervalDays": 2}},
        {},
        "01-01T22:00 01-02T02:00, 01-03T22:00 01-04T02:00, 01-05T22:00 01-06T02:00",
    ),
    "every second Friday, with an offset": (
        FRIDAYS,
        {"utcOffset": "+05:30", "startDate": "2026-01-03"},
        "01-09T16:30 01-09T20:30, 01-23T16:30 01-23T20:30, 02-06T16:30 02-06T20:30",
    ),
    "a day of every third month": (
        monthly("absolute", 3, dayOfMonth=15),
        {"utcOffset": "-08:00"},
        "01-16T06:00 01-16T10:00, 04-16T06:00 04-16T10:00, 07-16T06:00 07-16T10:00",
    ),
    "months without this day have no window": (
        monthly("absolute", 1, dayOfMonth=31),
        {},
        "01-31T22:00 02-01T02:00, 03-31T22:00 04-01T02:00, 05-31T22:00 06-01T02:00",
    ),
    "the last Sunday of a month": (
        LAST_SUNDAY,
        {"durationHours": 8},
        "01-25T22:00 01-26T06:00, 02-22T22:00 02-23T06:00, 03-29T22:00 03-30T06:00",
    ),
    "the interval counts from the first one after the start date": (
        FIRST_MONDAY,
        {"startDate": "2026-01-06"},
        "02-02T22:00 02-03T02:00, 04-06T22:00 04-07T02:00, 06-01T22:00 06-02T02:00",
    ),
    "both dates are not allowed, in the offset of the window": (
        DAILY,
        {
            "utcOffset": "+02:00",
            "startDate": None,
            "notAllowedDates": [{"start": "2026-01-02", "end": "2026-01-03"}],
        },
        "01-01T20:00 01-01T22:00, 01-03T22:00 01-04T00:00, 01-04T20:00 01-05T00:00",
    ),
}


@pytest.mark.parametrize(("schedule", "keys", "expected"), SCHEDULES.values(), ids=SCHEDULES)
def test_a_window_is_when_its_schedule_says(
    schedule: dict[str, Any], keys: dict[str, Any], expected: str
) -> None:
    document = window(schedule, **keys)

    assert runs(document) == expected
    arm = {"name": document["name"], "properties": {"maintenanceWindow": document["maintenanceWindow"]}}
    assert runs({"value": [arm]}) == expected


def test_the_default_configuration_has_hours_of_the_week() -> None:
    document = {
        "timeInWeek": [{"day": "Monday", "hourSlots": [1, 2]}, {"day": "Sunday", "hourSlots": [23]}],
        "notAllowedTime": [{"start": "2026-01-12T00:00:00Z", "end": "2026-01-12T02:30:00Z"}],
    }

    assert runs(document) == "01-04T23:00 01-05T00:00, 01-05T01:00 01-05T03:00, 01-11T23:00 01-12T00:00"
    assert runs(document, "2026-01-12", 1) == "01-12T02:30 01-12T03:00"


def test_without_hours_all_time_but_that_which_is_not_allowed() -> None:
    document = {"notAllowedTime": [{"start": "2026-01-12T00:00:00Z", "end": "2026-01-13T00:00:00Z"}]}

    assert runs(document, "2026-01-12") == "01-13T00:00 9999-12-31T23:59"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": {}}, "schedule: needs exactly one of daily"),
        ({"schedule": {"hourly": {}}}, "schedule.hourly: is not one of daily"),
        ({"schedule": {"daily": {"intervalDays": 0}}}, "intervalDays: 0 is not a whole number from 1 to 7"),
        ({"schedule": {"weekly": {"intervalWeeks": 1, "dayOfWeek": "Fr"}}}, "dayOfWeek: 'Fr' is not a day"),
        (
            {
                "schedule": {
                    "relativeMonthly": {"intervalMonths": 1, "weekIndex": "Fifth", "dayOfWeek": "Friday"}
                }
            },
            "weekIndex: 'Fifth' is not one of First",
        ),
        ({"startDate": None, "schedule": {"daily": {"intervalDays": 2}}}, "startDate: is missing"),
        ({"durationHours": "4"}, "durationHours: '4' is not a whole number from 1 to 24"),
        ({"startTime": "10pm"}, "startTime: '10pm' is not a time of day like 22:00"),
        ({"utcOffset": "CET"}, "utcOffset: 'CET' is not an offset"),
        (
            {"notAllowedDates": [{"start": "2026-01-02", "end": "2026-01-01"}]},
            r"\[0\].end: is before the start",
        ),
        (
            {"notAllowedDates": [{"start": "soon", "end": "2026-01-01"}]},
            r"\[0\].start: 'soon' is not a moment",
        ),
        ({"notAllowedDates": [{}] * 501}, "notAllowedDates: has more than 500 entries"),
    ],
)
def test_what_is_wrong_is_named_by_its_key(change: dict[str, Any], message: str) -> None:
    document = window({"daily": {"intervalDays": 1}})
    document["maintenanceWindow"].update(change)

    with pytest.raises(ValueError, match=message):
        parse_aks(json.loads(json.dumps(document)))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "has 0 configurations"),
        ([{}, {}], "has 2 configurations; use a file for each"),
        ({"items": []}, "is not a maintenance configuration"),
        ({"notAllowedDates": [1]}, "is not a maintenance configuration"),
        ({"timeInWeek": [{"day": "Monday", "hourSlots": [24]}]}, "24 is not an hour from 0 to 23"),
    ],
)
def test_another_document_is_refused(document: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_aks(document)


def test_a_list_of_freezes_is_no_maintenance_configuration() -> None:
    assert not is_aks([{"start": "2026-01-01", "end": "2026-01-02"}])
    assert is_aks({"properties": {"timeInWeek": []}})


QUARTERLY = {
    "maintenanceWindow": {
        "schedule": {"absoluteMonthly": {"intervalMonths": 3, "dayOfMonth": 2}},
        "durationHours": 5,
        "utcOffset": "-08:00",
        "startTime": "09:30",
        "notAllowedDates": [{"start": "2026-12-20", "end": "2027-01-10"}],
    }
}
"""The shape of a file for `az aks maintenanceconfiguration add --config-file`: without a start date."""


def test_an_interval_counts_from_the_creation_where_there_is_no_start_date() -> None:
    # The creation is on the first of February there, and on the second in UTC.
    document = {"properties": QUARTERLY, "systemData": {"createdAt": "2026-02-02T03:00:00.1234567Z"}}

    assert is_aks(document)
    assert runs(document) == "02-02T17:30 02-02T22:30, 05-02T17:30 05-02T22:30, 08-02T17:30 08-02T22:30"


@pytest.mark.parametrize("system", [{}, {"systemData": None}, {"systemData": {"createdAt": None}}])
def test_an_interval_that_counts_from_nothing_says_what_to_write(system: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"write that day as startDate"):
        parse_aks({"properties": QUARTERLY, **system})


def test_a_start_date_wins_over_the_creation() -> None:
    window = {**QUARTERLY["maintenanceWindow"], "startDate": "2026-03-01"}
    document = {
        "properties": {"maintenanceWindow": window},
        "systemData": {"createdAt": "2026-02-02T03:00:00Z"},
    }

    assert runs(document, count=1) == "03-02T17:30 03-02T22:30"


def shared(**changes: Any) -> dict[str, Any]:
    """Return a resource `maintenanceWindows`, which clusters share, as ARM has it."""
    properties = {
        "provisioningState": "Succeeded",
        "schedule": {"weekly": {"intervalWeeks": 2, "dayOfWeek": "Sunday"}},
        "startDate": "2026-01-01",
        "startTime": "03:00",
        "durationHours": 6,
        "utcOffset": "+01:00",
        "notAllowedDates": [{"start": "2026-01-18", "end": "2026-01-18"}],
        **changes,
    }
    return {
        "id": "/subscriptions/x/resourceGroups/r/providers/Microsoft.ContainerService/maintenanceWindows/w",
        "type": "Microsoft.ContainerService/maintenanceWindows",
        "location": "westeurope",
        "tags": {"team": "a"},
        "properties": properties,
    }


def test_a_window_that_clusters_share_is_read() -> None:
    assert is_aks(shared())
    # The fortnight on the 18th is not allowed.
    assert runs(shared(), count=2) == "01-04T02:00 01-04T08:00, 02-01T02:00 02-01T08:00"
    with pytest.raises(ValueError, match=r"^properties\.durationHours: 25 is not"):
        parse_aks(shared(durationHours=25))


def snake(value: Any) -> Any:
    """Return a document with its keys as the SDK's `as_dict` writes them."""
    if isinstance(value, list):
        return [snake(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key): snake(one) for key, one in value.items()
    }


@pytest.mark.parametrize(
    "document",
    [
        window(FRIDAYS, utcOffset="+05:30", startDate="2026-01-03"),
        window(DAILY, utcOffset="+02:00", notAllowedDates=[{"start": "2026-01-02", "end": "2026-01-03"}]),
        window(LAST_SUNDAY),
        window(monthly("absolute", 3, dayOfMonth=15)),
        {"properties": QUARTERLY, "systemData": {"createdAt": "2026-02-02T03:00:00Z"}},
        {
            "timeInWeek": [{"day": "Monday", "hourSlots": [1, 2]}],
            "notAllowedTime": [{"start": "2026-01-12T00:00:00Z", "end": "2026-01-12T02:30:00Z"}],
        },
        shared(),
    ],
)
def test_keys_in_snake_case_mean_the_same(document: dict[str, Any]) -> None:
    assert is_aks(snake(document))
    assert runs(snake(document), count=9) == runs(document, count=9)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"timeInWeek": [{"day": "Monday"}]}, r"^timeInWeek\[0\]\.hourSlots: has no hours"),
        ({"timeInWeek": [{"day": "Monday", "hourSlots": []}]}, r"^timeInWeek\[0\]\.hourSlots: has no hours"),
        ({"timeInWeek": [{"day": "Monday", "hours": [1]}]}, r"^timeInWeek\[0\]\.hours: unknown key"),
        (
            {**window(DAILY), "notAllowedDates": [{"start": "2026-12-18", "end": "2027-01-03"}]},
            "^notAllowedDates: unknown key; it belongs in maintenanceWindow",
        ),
        ({**window(DAILY), "freeze": "x"}, "^freeze: unknown key"),
        ({**window(DAILY), "timeInWeek": [{"day": "Monday", "hourSlots": [1]}]}, "^timeInWeek: can't be"),
        (window(DAILY, notAlowedDates=[]), "notAlowedDates: unknown key; did you mean notAllowedDates"),
        (window(DAILY, utcOffSet="+01:00", utc_offset="+02:00"), "utc_offset: utcOffset is there twice"),
        (
            window({"weekly": {"intervalWeeks": 1, "dayOfWeek": "Friday", "weeks": 2}}),
            "weekly.weeks: unknown",
        ),
        (
            {"properties": QUARTERLY, "notAllowedTime": [{}]},
            "^notAllowedTime: unknown key; it belongs in prop",
        ),
        (shared(freeze=[1]), r"^properties\.freeze: unknown key"),
        ({"notAllowedTime": [{"start": "2026-01-01", "end": "2026-01-02", "zone": "x"}]}, "zone: unknown"),
        ({"value": [window(DAILY)], "nextLink": "https://x"}, "nextLink: is a second page"),
    ],
)
def test_a_key_that_is_not_known_is_refused_with_its_place(document: dict[str, Any], message: str) -> None:
    assert is_aks(document)
    with pytest.raises(ValueError, match=message):
        parse_aks(document)


def test_a_key_without_a_value_says_nothing() -> None:
    assert runs({**window(DAILY, skipDays=None), "newer": None}) == runs(window(DAILY))
