"""`calendars` of the settings: what is refused, which rules follow, and what an unread calendar means."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.calendars.parsing import parse_calendar
from reconciler.model.content import CalendarPlace, CalendarText, Holder
from reconciler.model.errors import SettingsError
from reconciler.settings.explain import explain_settings, windows_as_data
from reconciler.settings.load import parse_content, parse_settings
from reconciler.settings.schema import Settings

FREEZE = """BEGIN:VCALENDAR
BEGIN:VEVENT
DTSTART;VALUE=DATE:20261201
END:VEVENT
END:VCALENDAR
"""
IN_IT = datetime(2026, 12, 1, 12, tzinfo=UTC)
AFTER = datetime(2026, 12, 3, tzinfo=UTC)


def read(entry: str, text: str = FREEZE, unread: str = "") -> Settings:
    """Return settings with this calendar, and what was read of it."""
    settings = parse_settings(f"calendars: [{entry}]", "f")
    return settings.with_calendars({"c": CalendarText(text, unread)})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{file: a.ics}", r"f:1:13: calendars\[0\].name: is missing"),
        ("{name: c}", "needs one of file, aks, configMap and secret"),
        ("{name: c, file: a.ics, aks: b.json}", "has more than one of file, aks, configMap and secret"),
        ("{name: c, file: a.ics, as: freeze}", r"'freeze' is not one of windows, notAllowed"),
        ("{name: c, file: a.ics, as: windows, absolute: true}", "absolute: is for freezes"),
        ("{name: c, aks: a.json, reason: x}", "reason: is for freezes"),
        ("{name: c, configMap: {name: A/B}}", "'A/B' is not a name of an object"),
        ("{name: c, configMap: {namespace: x}}", r"configMap.name: is missing"),
        ("{name: c, file: a}, {name: c, file: b}", r"calendars\[1\].name: 'c' is also the name"),
        (", ".join(f"{{name: c{i}, file: a}}" for i in range(101)), "calendars: has more than 100 entries"),
    ],
)
def test_a_calendar_that_does_not_fit_together_is_refused(entry: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_settings(f"calendars: [{entry}]", "f")


def test_its_events_are_freezes() -> None:
    settings = read("{name: c, file: a.ics, reason: sale}")

    answer = settings.calendar.at(IN_IT, {})
    assert answer.because == "not allowed: c (sale) until 2026-12-02T00:00:00Z"
    assert settings.calendar.at(AFTER, {}).open


def test_or_windows() -> None:
    settings = read("{name: c, file: a.ics, as: windows}")

    assert settings.calendar.at(IN_IT, {}).window == "c"
    assert not settings.calendar.at(AFTER, {}).open


def test_those_of_aks_are_windows() -> None:
    document = '{"timeInWeek": [{"day": "Tuesday", "hourSlots": [12]}]}'

    assert read("{name: c, aks: a.json}", document).calendar.at(IN_IT, {}).window == "c"


def test_it_is_for_the_nodes_that_it_selects() -> None:
    settings = read("{name: c, file: a.ics, nodeSelector: {pool: a}, absolute: true}")

    assert settings.calendar.at(IN_IT, {"pool": "a"}).absolute
    assert settings.calendar.at(IN_IT, {"pool": "b"}).open
    assert "pool" in settings.label_keys()


def test_whole_days_are_in_the_zone_of_the_calendar_or_of_the_file() -> None:
    early = datetime(2026, 12, 1, 4, tzinfo=UTC)

    assert not read("{name: c, file: a.ics}").calendar.at(early, {}).open
    assert read("{name: c, file: a.ics, timeZone: America/New_York}").calendar.at(early, {}).open


@pytest.mark.parametrize(
    "found", [{"unread": "there is none"}, {"text": "BEGIN:X"}], ids=["not read", "can't be used"]
)
def test_what_is_not_known_is_not_allowed_and_never_absolute(found: dict[str, str]) -> None:
    answer = read("{name: c, file: a.ics, absolute: true}", **found).calendar.at(AFTER, {})

    assert not answer.open
    assert not answer.absolute
    assert "not allowed: c (can't be read: " in answer.because


def test_nor_is_it_allowed_in_windows_that_are_not_known() -> None:
    settings = read("{name: c, file: a.ics, as: windows}", unread="there is none")

    answer = settings.calendar.at(IN_IT, {})
    assert not answer.open
    assert "the windows of c are not known, because it can't be read: there is none" in answer.because


def test_what_nobody_has_read_is_not_known() -> None:
    settings = parse_settings("calendars: [{name: c, file: a.ics}]", "f")

    assert not settings.calendar.at(AFTER, {}).open


def test_the_same_texts_are_the_same_settings() -> None:
    settings = parse_settings("calendars: [{name: c, file: a.ics}]", "f")
    once = settings.with_calendars({"c": CalendarText(FREEZE)})

    assert settings.with_calendars({"c": CalendarText(FREEZE)}) is once
    assert settings.with_calendars({"c": CalendarText(unread="gone")}) is not once
    assert Settings().with_calendars({}) == Settings()


def test_a_relative_path_begins_at_the_folder_of_the_file() -> None:
    text = b"calendars: [{name: c, file: a.ics}, {name: d, file: /b.ics}]"

    near, far = parse_content(text, "f", folder=Path("/etc/policy")).calendar_places()
    assert (near.path, far.path) == ("/etc/policy/a.ics", "/b.ics")
    lost, found = parse_content(text, "configmap/a/b").calendar_places()
    assert lost.problem == "the path a.ics is relative, but the settings are not in a file"
    assert not found.problem


def test_an_object_is_in_our_own_namespace_by_default() -> None:
    settings = parse_settings(
        "calendars: [{name: c, configMap: {name: m}}, {name: d, secret: {namespace: x, name: s, key: k}}]",
        "f",
    )

    one, other = settings.calendar_places()
    assert (one.holder, str(one)) == (Holder.CONFIG_MAP, "ConfigMap node-maintenance/m")
    assert (other.holder, str(other)) == (Holder.SECRET, "Secret x/s/k")


PLACE = CalendarPlace("c", zone=ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("text", "events"),
    [
        pytest.param("\ufeff" + FREEZE.lower(), 1, id="iCalendar in small letters"),
        pytest.param('[{"start": "2026-12-01", "end": "2026-12-02"}]', 1, id="freezes as JSON"),
        pytest.param(
            "- {start: 2026-12-01, end: 2026-12-02}\n- {start: 2027-01-01, end: 2027-01-02}", 2, id="YAML"
        ),
        pytest.param('{"properties": {"timeInWeek": [{"day": "Monday", "hourSlots": [1]}]}}', 1, id="AKS"),
        pytest.param("properties:\n  timeInWeek:\n  - {day: Monday, hourSlots: [1]}", 1, id="AKS as YAML"),
    ],
)
def test_the_format_is_recognized(text: str, events: int) -> None:
    assert len(parse_calendar(text, PLACE).events) == events


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (" \n", "is empty"),
        ("soon", "is not a calendar; use iCalendar"),
        ("a: [", "^line 2: not YAML"),
        ("a: &x 1", "^line 1: anchors"),
        ("[" * 10_000, "is nested too deep"),
        ("- " * 100 + "a", "nested deeper than 40 levels"),
        ("{}", "has no start"),
        ('{"freezes": [{"start": "2026-12-01"}], "freezes": []}', "^freezes: is there twice"),
        ("BEGIN:VCALENDAR\nBEGIN:VFREEBUSY\nEND:VFREEBUSY\nEND:VCALENDAR", "VFREEBUSY is not read; write"),
        ("A" * 1_000_001, "is longer than 1000000 characters"),
    ],
)
def test_another_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_calendar(text, PLACE)


WINDOW = "windows: [{name: nights, start: '22:00', end: '05:00'}]"
FROZEN = "notAllowed: [{name: sale, start: 2026-12-01, end: 2027-01-01}]"
OF_OTHERS = "calendars: [{name: theirs, file: /theirs, as: windows}]"


@pytest.mark.parametrize("calendars", [OF_OTHERS, "calendars: [{name: theirs, file: /theirs}]", ""])
@pytest.mark.parametrize("freezes", [FROZEN, ""])
@pytest.mark.parametrize("windows", [WINDOW, WINDOW.replace("}]", ", nodeSelector: {pool: a}}]"), ""])
@pytest.mark.parametrize("is_read", [True, False])
def test_check_config_says_no_windows_exactly_if_windows_shows_none(
    windows: str, freezes: str, calendars: str, is_read: bool
) -> None:
    settings = parse_settings("\n".join((windows, freezes, calendars, "conditions: {Sick: {}}")), "f")
    if is_read:
        text = '[{"start": "2026-11-24", "end": "2026-11-25"}]'
        settings = settings.with_calendars({"theirs": CalendarText(text)})
    shown = windows_as_data(settings, datetime(2026, 11, 23, 12, tzinfo=UTC))

    words = explain_settings(settings)
    assert ("o windows" in words) is (not windows and calendars != OF_OTHERS)
    if "not allowed" not in shown["because"]:
        assert ("o windows" in words) is ("there are no windows" in shown["because"])
