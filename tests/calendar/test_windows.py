"""Whether a drain may start, for nodes by their labels: unions, freezes, sentences, and what changes when."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from reconciler.calendar.values import in_zone
from reconciler.calendar.windows import Calendar
from reconciler.settings.load import parse_settings

EXAMPLE = """
timeZone: Europe/Berlin
windows:
- name: weeknights
  days: [Mon-Thu]
  start: "22:00"
  end: "05:00"
  nodeSelector: {agentpool: batch}
- name: first-saturday
  schedule: "0 2 * * 6#1"
  duration: 4h
  nodeSelector: {agentpool: batch}
notAllowed:
- name: black-friday
  start: 2026-11-26
  end: 2026-11-30T06:00
  reason: sale
"""
BATCH = {"agentpool": "batch"}
CLOSED = "no maintenance window is open"
ANY_TIME = "no window selects the node, so a drain may start at any time"


def calendar(text: str) -> Calendar:
    """Build the calendar of a settings file."""
    return parse_settings(text, "f").calendar


def for_people(sentence: str) -> str:
    """Return a sentence as reports show it."""
    return in_zone(sentence, ZoneInfo("Europe/Berlin"))


def at(text: str) -> datetime:
    """Read a moment; without an offset it is Berlin's."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("now", "labels", "is_open"),
    [
        pytest.param("2026-11-23T21:59:59", BATCH, False, id="before Monday night"),
        pytest.param("2026-11-23T22:00", BATCH, True, id="the start is inside"),
        pytest.param("2026-11-24T04:59:59", BATCH, True, id="past midnight it is still Monday's"),
        pytest.param("2026-12-05T03:00", BATCH, True, id="the first Saturday"),
        pytest.param(
            "2026-12-05T03:00", {"agentpool": "web"}, True, id="a node that no window selects: any time"
        ),
        pytest.param("2026-11-26T00:00", BATCH, False, id="the freeze cuts a window short"),
        pytest.param("2026-11-27T12:00", {}, False, id="and is for nodes without windows, too"),
        pytest.param("2026-11-30T06:00", {}, True, id="and not longer"),
    ],
)
def test_the_example_is_open_when_it_says(now: str, labels: dict[str, str], is_open: bool) -> None:
    assert calendar(EXAMPLE).at(at(now), labels).open is is_open


@pytest.mark.parametrize(
    ("now", "labels", "because"),
    [
        ("2026-11-23T23:00", BATCH, "window weeknights is open until Tue 2026-11-24 05:00"),
        ("2026-11-25T23:00", BATCH, "window weeknights is open until Thu 2026-11-26 00:00"),
        ("2026-11-23T12:00", BATCH, f"{CLOSED}; weeknights opens next, at Mon 2026-11-23 22:00"),
        ("2026-11-27T12:00", BATCH, "not allowed: black-friday (sale) until Mon 2026-11-30 06:00"),
        ("2026-11-23T12:00", {}, f"{ANY_TIME} until Thu 2026-11-26 00:00"),
        ("2026-12-23T12:00", {}, ANY_TIME),
    ],
)
def test_the_answer_has_a_reason_with_times_in_the_settings_zone(
    now: str, labels: dict[str, str], because: str
) -> None:
    shown = for_people(calendar(EXAMPLE).at(at(now), labels).because)

    assert shown == because + (" CET (Europe/Berlin)" if "2026" in because else "")


def test_without_windows_it_is_any_time() -> None:
    openness = Calendar().at(at("2026-11-23T12:00"), {})

    assert openness.open
    assert openness.window is None
    assert openness.changes_at is None
    assert openness.because == "there are no windows, so a drain may start at any time"


def test_an_answer_says_when_it_changes() -> None:
    nights = calendar(EXAMPLE)

    assert nights.at(at("2026-11-23T12:00"), BATCH).changes_at == at("2026-11-23T22:00")
    assert nights.at(at("2026-11-23T23:00"), BATCH).changes_at == at("2026-11-24T05:00")
    assert nights.at(at("2026-11-26T12:00"), BATCH).changes_at == at("2026-11-30T06:00")
    assert nights.at(at("2026-12-26T12:00"), {}).changes_at is None


def test_an_absolute_freeze_says_so_also_when_another_one_is_named_first() -> None:
    both = calendar(
        "notAllowed:\n- {name: a, start: 2026-11-01, end: 2026-12-01}\n"
        "- {name: b, start: 2026-11-10, end: 2026-11-20, absolute: true, reason: audit}\n"
    )

    before, during = (both.at(at(text), {}) for text in ("2026-11-05T00:00", "2026-11-15T00:00"))

    assert (before.not_allowed, before.absolute) == ("a", False)
    assert before.changes_at == datetime(2026, 11, 10, tzinfo=UTC)
    assert (during.not_allowed, during.absolute) == ("a", True)
    assert during.because == (
        "not allowed: a until 2026-12-01T00:00:00Z; b (audit) until 2026-11-20T00:00:00Z, even at a deadline"
    )


def test_openings_are_net_of_freezes_and_start_when_they_really_started() -> None:
    openings = calendar(EXAMPLE).openings(at("2026-11-25T23:00"), BATCH)

    assert [(o.start, o.end, o.window) for o in openings] == [
        (at("2026-11-25T22:00"), at("2026-11-26T00:00"), "weeknights"),
        (at("2026-11-30T22:00"), at("2026-12-01T05:00"), "weeknights"),
        (at("2026-12-01T22:00"), at("2026-12-02T05:00"), "weeknights"),
    ]


def test_a_node_without_windows_has_openings_around_the_freezes() -> None:
    now = at("2026-11-25T23:00")

    openings = calendar(EXAMPLE).openings(now, {})

    assert [(o.start, o.end, o.window) for o in openings] == [
        (now, at("2026-11-26T00:00"), "any time"),
        (at("2026-11-30T06:00"), None, "any time"),
    ]


def test_openings_end_with_what_was_asked_for() -> None:
    nights = calendar(EXAMPLE)

    assert len(nights.openings(at("2026-11-01T00:00"), BATCH, count=7)) == 7
    assert len(nights.openings(at("2026-12-01T06:00"), BATCH, count=None, until=at("2026-12-11"))) == 8
    until = at("2026-11-04T00:00")
    assert [o.start.day for o in nights.openings(at("2026-11-01T00:00"), BATCH, count=9, until=until)] == [
        2,
        3,
    ]


def test_windows_that_meet_are_one_opening_with_both_names() -> None:
    two = calendar(
        'windows:\n- {name: a, start: "22:00", end: "24:00"}\n- {name: b, start: "00:00", end: "05:00"}\n'
    )

    (opening,) = two.openings(at("2026-11-23T22:30+00:00"), {}, count=1)

    assert opening.window == "a, b"
    assert opening.end == datetime(2026, 11, 24, 5, tzinfo=UTC)
    assert two.at(at("2026-11-24T01:00+00:00"), {}).window == "b"


def test_windows_that_fill_each_others_gaps_have_no_end() -> None:
    two = calendar('windows: [{name: a, end: "12:00"}, {name: b, start: "12:00"}]')

    (opening,) = two.openings(at("2026-11-23T22:30+00:00"), {})

    assert opening.end is None


@pytest.mark.parametrize(
    ("now", "is_told"),
    [
        pytest.param("2026-11-25T00:00", True, id="from its first moment on"),
        pytest.param("2026-11-26T00:00", False, id="between two runs"),
        pytest.param("2026-12-25T12:00", True, id="and when it comes back"),
    ],
)
def test_a_time_that_is_not_allowed_on_some_nodes_is_reported_only_while_it_lasts(
    now: str, is_told: bool
) -> None:
    freeze = "{name: billing, schedule: '0 0 25 * *', duration: 1d, nodeSelector: {agentpool: batch}}"
    chosen = calendar(f"timeZone: Europe/Berlin\nnotAllowed: [{freeze}]")

    assert ("not allowed (billing)" in chosen.at(at(now), None).because) is is_told


def test_windows_may_be_of_one_date() -> None:
    once = calendar("windows: [{name: move, start: 2026-11-28T20:00, end: 2026-11-29}]")

    assert once.at(at("2026-11-28T21:00+00:00"), {}).open
    assert not once.at(at("2026-11-29T00:00+00:00"), {}).open
    assert once.at(at("2026-11-29T00:00+00:00"), {}).because == (
        "no maintenance window is open, and none opens within 400 days"
    )


def test_a_freeze_without_end_leaves_no_opening_and_is_not_searched_for_ever() -> None:
    frozen = calendar("windows: [{days: [sun]}]\nnotAllowed: [{name: a, days: [mon-sun]}]")

    assert frozen.openings(at("2026-11-23T12:00"), {}) == ()
    assert not frozen.at(at("2026-11-23T12:00"), {}).open
    assert frozen.at(at("2026-11-23T12:00"), {}).because == "not allowed: a"


def test_closures_are_the_freezes_of_a_node_until_a_moment() -> None:
    found = calendar(
        """
notAllowed:
- {name: lunch, start: "12:00", end: "13:00", nodeSelector: {agentpool: batch}}
- {name: sale, reason: discount, start: 2026-11-20, end: 2026-11-22T12:30, absolute: true}
- {name: audit, start: 2026-11-24, end: 2030-01-01}
"""
    )
    now, until = at("2026-11-21T12:30+00:00"), at("2026-11-23T12:00+00:00")
    batch = [(one.name, one.start, one.end) for one in found.closures(now, BATCH, until)]

    assert batch == [
        ("sale", at("2026-11-20T00:00+00:00"), at("2026-11-22T12:30+00:00")),
        ("lunch", at("2026-11-21T12:00+00:00"), at("2026-11-21T13:00+00:00")),
        ("lunch", at("2026-11-22T12:00+00:00"), at("2026-11-22T13:00+00:00")),
    ]
    (sale,) = found.closures(now, {}, until)
    assert (sale.reason, sale.absolute) == ("discount", True)


def test_a_freeze_for_ever_is_a_closure_without_an_end() -> None:
    frozen = calendar("notAllowed: [{name: a, days: [mon-sun]}]")
    now = at("2026-11-23T12:00+00:00")

    assert [one.end for one in frozen.closures(now, {}, now + timedelta(days=7))] == [None]


def test_nodes_that_the_same_rules_select_have_the_same_calendar() -> None:
    found = calendar(EXAMPLE)

    assert found.selected_by(BATCH) == found.selected_by({**BATCH, "zone": "1"})
    assert found.selected_by(BATCH) != found.selected_by({})


def test_each_window_is_meant_in_its_own_zone() -> None:
    tokyo = calendar(
        'timeZone: Europe/Berlin\nwindows: [{name: a, start: "09:00", end: "10:00", timeZone: Asia/Tokyo}]'
    )

    answer = tokyo.at(at("2026-11-23T00:30+00:00"), {})

    assert answer.open
    assert for_people(answer.because) == "window a is open until Mon 2026-11-23 02:00 CET (Europe/Berlin)"


def test_without_a_node_the_windows_of_every_selector_are_listed() -> None:
    openness = calendar(EXAMPLE).at(at("2026-11-23T23:00"), None)
    openings = calendar(EXAMPLE).openings(at("2026-11-23T23:00"), None)

    assert openness.open
    assert openness.window == "weeknights"
    assert for_people(openness.because) == (
        "nodes agentpool=batch: window weeknights is open until Tue 2026-11-24 05:00 CET (Europe/Berlin); "
        "nodes without a window: a drain may start at any time"
    )
    assert [(o.window, str(o.selector)) for o in openings] == [("weeknights", "agentpool=batch")] * 3
    assert not calendar(EXAMPLE).at(at("2026-11-23T12:00"), None).open


def test_a_freeze_for_some_nodes_leaves_the_question_about_none_in_particular_open() -> None:
    some = calendar("notAllowed: [{name: a, nodeSelector: {x: y}, start: 2026-11-01, end: 2026-12-01}]")

    openness = some.at(at("2026-11-23T12:00"), None)

    assert openness.open
    assert openness.because == (
        "there are no windows, so a drain may start at any time; nodes x=y: not allowed (a)"
    )
    assert not some.at(at("2026-11-23T12:00"), {"x": "y"}).open


def test_the_same_question_is_answered_once_for_all_nodes_that_share_their_windows() -> None:
    nights = calendar(EXAMPLE)
    now = at("2026-11-23T23:00")

    assert nights.at(now, BATCH | {"name": "a"}) is nights.at(now, BATCH | {"name": "b"})
    assert nights.at(now, BATCH) is not nights.at(now + timedelta(seconds=1), BATCH)
