"""Lists of freezes, in the forms in which they are found."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.calendars.parsing import parse_freezes

BERLIN = ZoneInfo("Europe/Berlin")


def runs(value: object) -> list[str]:
    """Return the freezes in UTC."""
    found = parse_freezes(value, BERLIN).runs(datetime(2026, 1, 1, tzinfo=UTC))
    return [f"{run.start:%m-%dT%H:%M} {run.end:%m-%dT%H:%M}" for run in found]


SALE = {"start": "2026-03-01", "end": "2026-03-02T06:00", "reason": "sale"}
IN_UTC = {"spec": {"fromUtc": "2026-03-01T10:00:00", "toUtc": "2026-03-01T12:00:00Z"}}
DATES = {"kind": "AdminFreezeWindow", "spec": {"fromUtc": "2026-03-01", "toUtc": "2026-03-02"}}
ADMINS = {"from": "2026-03-01T00:00Z", "to": "2026-03-02T00:00Z"}
CUSTOMERS = {"start": "2026-03-01T12:00Z", "end": "2026-03-03T00:00Z"}
BOTH = {"adminFreezeWindows": [ADMINS], "CustomerFreezeWindow": CUSTOMERS}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([SALE], ["02-28T23:00 03-02T05:00"], id="moments of the settings"),
        pytest.param(IN_UTC, ["03-01T10:00 03-01T12:00"], id="an object"),
        pytest.param({"items": [DATES]}, ["03-01T00:00 03-02T00:00"], id="a list of objects"),
        pytest.param(
            {"time_zone": "America/New_York", "freezes": [{"start": "2026-03-01", "end": "2026-03-02"}]},
            ["03-01T05:00 03-02T05:00"],
            id="a time zone of the list",
        ),
        pytest.param(
            [{"start": "2026-03-01", "end": "2026-03-02", "timezone": "UTC"}],
            ["03-01T00:00 03-02T00:00"],
            id="a time zone of the freeze",
        ),
        pytest.param(
            {"spec": {"from_utc": "2026-03-01", "to_utc": "2026-03-02"}, "items": [DATES]},
            ["03-01T00:00 03-02T00:00"],
            id="snake case, and nothing is left out",
        ),
        pytest.param({"freezes": []}, [], id="a list without freezes"),
        pytest.param(BOTH, ["03-01T00:00 03-03T00:00"], id="those of the administrator and of the customer"),
    ],
)
def test_a_freeze_is_between_its_two_moments(value: object, expected: list[str]) -> None:
    assert runs(value) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("soon", "the file: 'soon' is not a freeze"),
        ([{"start": "2026-03-01"}], r"^\[0\]: has no end"),
        ([{"start": "soon", "end": "2026-03-01"}], r"^\[0\].start: 'soon' is not a moment"),
        ([{"start": "2026-03-01", "end": "2026-03-01"}], r"^\[0\]: its end is not after its start"),
        ({"items": [{"spec": {"end": "2026-03-01"}}]}, r"^items\[0\].spec: has no start"),
        ([{**SALE, "until": "2026-04-01"}], r"^\[0\].until: unknown key"),
        ([{**SALE, "repeat": "yearly"}], r"^\[0\].repeat: unknown key"),
        ([{**SALE, "from": "2026-03-01"}], r"^\[0\]: has both start and from"),
        ([{**SALE, "timezone": "CEST"}], r"^\[0\].timeZone: 'CEST' is not an IANA"),
        ({"freezes": [SALE], "freeze": [SALE]}, "^freeze: unknown key; did you mean freezes"),
        ({"kind": "ConfigMap", "data": {"freezes": "[]"}}, "is a manifest; write what its key has"),
        ([[[[[[]]]]]], "is nested too deep"),
        ([{"start": "2026-03-01", "end": "2026-03-02"}] * 2001, "more than 2000 freezes"),
    ],
)
def test_what_is_wrong_is_named_by_its_place(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_freezes(value, BERLIN)
