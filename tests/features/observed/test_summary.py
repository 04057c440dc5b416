"""What was observed, in a sentence, as a table, as CSV and as JSON; and the way to Enforce."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.observed.cases import Kept, ObservedCase, Stretch
from reconciler.features.observed.summary import Sum, as_csv, as_text, chosen, summed_up
from reconciler.features.observed.way import steps
from reconciler.model.findings import FindingRow, FindingsPart, KnownFindings
from reconciler.model.values import replace
from tests.support.builders import NOW, minutes, settings
from tests.support.golden import assert_as_in

DAY = timedelta(days=1)
UTC = ZoneInfo("UTC")


def case(name: str, hours: float = 1, **changes: object) -> ObservedCase:
    """A case that was announced so many hours ago, would have been drained in time, and is over."""
    at = NOW - timedelta(hours=hours)
    known = ObservedCase(
        at,
        name,
        f"uid-{name}",
        "Reboot",
        "np",
        "agentpool",
        name,
        ("imds",),
        date=at + minutes(30),
        begins=at,
        begun=True,
        cleared=True,
        pods=14,
        struck=at + minutes(30),
        over=at + minutes(40),
    )
    return replace(known, **changes)  # type: ignore[arg-type]  # the fields of a case


MISSED = case(
    "b", 5, begun=False, begins=None, cleared=False, late="no window before the deadline", because="why not"
)
BLOCKED = case("c", 4, cleared=False, stays=("PDB shop/ledger",), because="shop/ledger-0 can't be evicted")
OFF = case("d", 3, begun=False, cleared=False, struck=None, pods=None)
AHEAD = case("e", 2, begun=False, cleared=False, struck=None, over=None, date=NOW + DAY)
EVERY: tuple[Kept, ...] = (Stretch(NOW - 12 * DAY), case("a", 6), MISSED, BLOCKED, OFF, AHEAD)


def observed(*lines: Kept) -> Sum:
    return summed_up(lines or EVERY, NOW, "the ConfigMap", observes=True, whole_from=NOW - 12 * DAY)


def test_the_sum_is_a_sentence_with_what_went_wrong_and_why() -> None:
    assert observed().sentence == (
        "In 12 days 5 nodes were announced; 1 would have been drained in time, 1 missed (no window before "
        "the deadline), 1 blocked by PDB shop/ledger, 1 called off, 1 still ahead"
    )
    assert observed().met == "The platform began on 3 nodes, with 42 pods on them"


def test_without_any_maintenance_it_says_for_how_long_there_was_none() -> None:
    quiet = "In 3 hours no maintenance was announced, so nothing would have been done"
    assert observed(Stretch(NOW - timedelta(hours=3))).sentence == quiet


def test_a_node_that_was_announced_twice_is_one_node() -> None:
    again = case("a", 3, key="later")
    assert observed(case("a", 6), again).sentence.startswith("2 maintenances of 1 node were announced; 2 ")


def test_times_in_which_replicas_observe_together_count_once() -> None:
    until = NOW - 5 * DAY
    found = observed(Stretch(NOW - 10 * DAY, until), Stretch(NOW - 9 * DAY, until), Stretch(NOW - 2 * DAY))
    assert found.lasted == 7 * DAY


def test_in_another_mode_it_lasted_at_least_until_what_was_seen_last() -> None:
    seen = case("a", 3 * 24)
    assert seen.over is not None
    found = summed_up((Stretch(NOW - 10 * DAY), seen), NOW, "the ConfigMap")
    assert found.lasted == seen.over - (NOW - 10 * DAY)
    assert summed_up((Stretch(NOW - 10 * DAY),), NOW, "the ConfigMap").lasted is None


def test_a_time_of_which_the_cases_are_no_longer_kept_does_not_count() -> None:
    lines = (Stretch(NOW - 60 * DAY, NOW - 40 * DAY), Stretch(NOW - 35 * DAY), case("a"))
    found = summed_up(lines, NOW, "the ConfigMap", observes=True, whole_from=NOW - 30 * DAY)
    assert found.sentence.startswith("In 30 days 1 node was announced")


@pytest.mark.parametrize("width", [60, 80, 200])
def test_people_read_it_at_each_width(width: int) -> None:
    found = observed()
    found = replace(found, steps=steps(found, settings("mode: Observe"), readiness(), simulates=True))
    text = as_text(found, UTC, width)

    assert_as_in(Path(__file__).parent / "golden" / f"observed-{width}.txt", text)
    assert max(map(len, text.splitlines())) <= width


HOSTILE = "\x1b[2Jx\nFAKE  in time\r\u202e=1"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_names_of_others_can_not_steer_a_terminal_or_break_a_line(width: int) -> None:
    found = observed(case(HOSTILE, pool=HOSTILE, kind=HOSTILE, cleared=False, stays=(HOSTILE,)))
    lines = as_text(replace(found, steps=steps(found, settings(), None, simulates=True)), UTC, width)

    assert "\x1b" not in lines
    assert "\r" not in lines
    assert "\u202e" not in lines
    assert not [line for line in lines.splitlines() if line.startswith("FAKE")]


def test_a_cell_of_csv_is_no_formula() -> None:
    (heads, row) = csv.reader(io.StringIO(as_csv(observed(case("=cmd()", late="@x", stays=("+1",))))))
    assert not [cell for cell in row if cell[:1] in ("=", "+", "-", "@")]
    assert row[heads.index("fate")] == "missed"


def test_only_what_was_asked_for_is_summed_up() -> None:
    found = observed(*chosen(EVERY, NOW - timedelta(hours=4, minutes=30), None))
    assert [one.node for one in found.cases] == ["c", "d", "e"]
    assert found.lasted == timedelta(hours=4, minutes=30)
    assert [one.node for one in observed(*chosen(EVERY, None, "c")).cases] == ["c"]


def test_programs_get_each_case_and_the_sum() -> None:
    document = observed().document
    assert document["fates"] == {
        "in time": 1,
        "missed": 1,
        "blocked": 1,
        "not known": 0,
        "called off": 1,
        "ahead": 1,
    }
    assert document["observedSeconds"] == 12 * 86400
    assert [one["fate"] for one in document["cases"]] == [
        *("in time", "missed", "blocked", "called off", "ahead")
    ]


def readiness(*rows: FindingRow, remarks: tuple[str, ...] = ()) -> KnownFindings:
    """What readiness says, with these findings."""
    return KnownFindings(FindingsPart("0 of 3 nodes would not drain", "now", remarks, rows))


BLOCKS = FindingRow("shop/ledger", "blocks", "1 pod on a", "because", "remedy")


def done(text: str, known: KnownFindings | None = None, *lines: Kept) -> dict[str, bool | None]:
    """Which steps are done, by the first word of their titles and the last."""
    found = observed(*(lines or (Stretch(NOW - DAY), case("a"))))
    return {step.title: step.done for step in steps(found, settings(text), known, simulates=True)}


READY, SEE = "Nothing keeps a drain from its end", "See that drains would be in time"
POOL, PERSON = "Enforce on one pool", "Let a person say yes to each drain at first"
ALL = "Enforce on all nodes"


def test_the_program_says_itself_which_steps_are_done() -> None:
    assert done("mode: Observe", readiness()) == {
        READY: True,
        SEE: True,
        POOL: False,
        PERSON: False,
        ALL: False,
    }
    assert done("mode: Enforce\nnodeSelector: {agentpool: np}\nevents: {Reboot: {approval: true}}") == {
        SEE: True,
        POOL: True,
        PERSON: True,
        ALL: False,
    }
    assert done("mode: Enforce")[ALL] is True


@pytest.mark.parametrize(
    ("known", "answer"),
    [
        (readiness(BLOCKS), False),
        (readiness(remarks=("could not see pods",)), None),
        (KnownFindings(note="Readiness is being read."), None),
    ],
    ids=["a drain would not end", "not all was seen", "not read yet"],
)
def test_what_is_not_known_is_not_done(known: KnownFindings, answer: bool | None) -> None:
    assert done("mode: Observe", known)[READY] is answer


def test_a_forecast_is_good_once_a_drain_would_have_been_in_time_and_none_missed() -> None:
    assert done("mode: Observe", None, Stretch(NOW - DAY))[SEE] is False
    assert done("mode: Observe", None, case("a"), MISSED)[SEE] is False


def test_only_the_next_step_says_what_to_do_in_settings_that_are_valid() -> None:
    found = observed(case("a"), case("b", pool="on"), case("c"))
    every = steps(found, settings("mode: Observe"), readiness(), simulates=True)

    (following,) = [step for step in every if step.todo]
    assert following.title == POOL
    chosen_settings = settings("\n".join(following.todo))
    assert chosen_settings.in_fleet({"agentpool": "on"})
    assert not chosen_settings.in_fleet({"agentpool": "np"})
