"""What AKS's conditions say, by the messages that were seen in the wild."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.event import Answer, Initiator, Kind, Signal, Status
from reconciler.model.moments import from_text
from reconciler.sources.condition.source import parse_message, read
from tests.support import builders, strategies
from tests.support.builders import NOW

CASES = json.loads((Path(__file__).parents[1] / "cases" / "npd_messages.json").read_text("utf-8"))["cases"]
MAIN = "VMEventScheduled"
LINK = "For more information, see https://aka.ms/aks/scheduledevents."


def _told(type_: str, status: str, message: str) -> Signal | None:
    node = builders.node(conditions=(builders.condition(type_, status, message),))
    signals = [one for each in read(node) for one in each.signals]
    assert len(signals) <= 1
    return signals[0] if signals else None


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("VMEventScheduled", "Reboot"),
        ("PreemptionScheduled", "Preempt"),
        *((f"{kind}Scheduled", kind) for kind in ("Freeze", "Reboot", "Redeploy", "Preempt", "Terminate")),
    ],
)
def test_each_condition_of_aks_is_read(condition: str, kind: str) -> None:
    signal = _told(condition, "True", f"{kind} Scheduled: Mon, 11 May 2026 12:10:00 GMT.")

    assert signal is not None
    assert signal.kind.value == kind


@pytest.mark.parametrize("case", CASES, ids=[case["message"][:40] for case in CASES])
def test_a_row_means_what_its_words_say(case: dict[str, Any]) -> None:
    """By meaning, so that rows of the same kind may be added: the type and date are in the message itself."""
    message = case["message"]
    signal = _told(case.get("type", "PreemptionScheduled"), case.get("status", "True"), message)
    if case.get("status") == "False":
        assert signal is None
        return
    assert signal is not None
    word = message.split()[0]
    if "advisory" in case.get("meaning", "") or " Advisory" in message:
        assert signal.kind is Kind.REBALANCE
        return
    assert signal.kind.value == word or (word, signal.kind) == ("Freeze", Kind.LIVE_MIGRATION)
    assert signal.status is (Status.STARTED if " Started" in message else Status.SCHEDULED)
    if ", " in message and "GMT" in message.replace("UTC", "GMT"):
        date = message.split(": ", 1)[1].replace("UTC", "GMT").split("GMT")[0] + "GMT"
        assert signal.not_before == from_text(date)
    if "EventId: " in message:
        assert signal.id == message.split("EventId: ")[1].strip()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param(
            f"Preempt Scheduled: Wed, 26 Feb 2025 10:13:13 GMT. DurationInSeconds: -1.  {LINK}",
            Signal("s", Kind.PREEMPT, Status.SCHEDULED, datetime(2025, 2, 26, 10, 13, 13, tzinfo=UTC)),
            id="no description, duration unknown",
        ),
        pytest.param(
            "Reboot Scheduled: Fri, 06 Dec 2024 18:09:55 GMT. DurationInSeconds: -1. Virtual machine "
            f"is going to be restarted as requested by authorized user. {LINK}\n"
            "Throttle Result: Too Many Requests",
            Signal(
                "s",
                Kind.REBOOT,
                Status.SCHEDULED,
                datetime(2024, 12, 6, 18, 9, 55, tzinfo=UTC),
                description="Virtual machine is going to be restarted as requested by authorized user. "
                "Throttle Result: Too Many Requests",
                initiator=Initiator.USER,
            ),
            id="a user's, with IMDS's complaint behind it",
        ),
        pytest.param(
            "Preempt Scheduled: Mon, 03 Aug 2026 08:18:16 GMT. DurationInSeconds: -1. For more "
            "information, see https://aka.ms/aks/scheduledevents EventId: 218E4ED7-1234",
            Signal(
                "s",
                Kind.PREEMPT,
                Status.SCHEDULED,
                datetime(2026, 8, 3, 8, 18, 16, tzinfo=UTC),
                id="218E4ED7-1234",
            ),
            id="an id, no full stop behind the link",
        ),
        pytest.param(
            "Preempt Scheduled : Tue, 14 May 2024 12:57:00 GMT",
            Signal("s", Kind.PREEMPT, Status.SCHEDULED, datetime(2024, 5, 14, 12, 57, tzinfo=UTC)),
            id="older, with a blank before the colon",
        ),
        pytest.param(
            f"Freeze Started. DurationInSeconds: 9. Host server is undergoing maintenance. {LINK}",
            Signal(
                "s",
                Kind.FREEZE,
                Status.STARTED,
                duration=timedelta(seconds=9),
                description="Host server is undergoing maintenance",
            ),
            id="started: no date",
        ),
        pytest.param(
            "Freeze Scheduled: Mon, 11 Apr 2026 22:26:58 GMT. DurationInSeconds: 5. "
            f"{strategies.LIVE_MIGRATION} {LINK}",
            Signal(
                "s",
                Kind.LIVE_MIGRATION,
                Status.SCHEDULED,
                datetime(2026, 4, 11, 22, 26, 58, tzinfo=UTC),
                duration=timedelta(seconds=5),
                description=strategies.LIVE_MIGRATION.rstrip("."),
            ),
            id="a live migration is a Freeze with that text; the weekday is wrong as in Azure's page",
        ),
        pytest.param(
            "SpotRebalanceRecommendation Advisory: Mon, 03 Aug 2026 08:18:16 GMT. something",
            Signal("s", Kind.REBALANCE, Status.SCHEDULED, description="something"),
            id="an advice is no reclaim, and has no date: its own says when it was given",
        ),
    ],
)
def test_a_message_seen_in_the_wild_is_read_whole(message: str, expected: Signal) -> None:
    assert parse_message("s", message) == expected


@pytest.mark.parametrize(
    ("typed", "message", "kind"),
    [
        ("RebootScheduled", "the host reboots soon", Kind.REBOOT),
        ("RedeployScheduled", "", Kind.REDEPLOY),
        ("PreemptScheduled", "spot capacity is reclaimed", Kind.PREEMPT),
        ("PreemptionScheduled", "spot capacity is reclaimed", Kind.PREEMPT),
        ("PreemptionScheduled", "some other Advisory of the platform", Kind.UNKNOWN),
        ("RebootScheduled", 'Timeout when running plugin "check.sh"', Kind.UNKNOWN),
        ("VMEventScheduled", "the host reboots soon", Kind.UNKNOWN),
        ("RebootScheduled", "Redeploy Scheduled. DurationInSeconds: 9.", Kind.REDEPLOY),
    ],
)
def test_a_typed_condition_with_an_unusual_text_has_the_kind_of_its_type(
    typed: str, message: str, kind: Kind
) -> None:
    reported = builders.condition(typed, "True", message, at=NOW)
    found = [one for one in read(builders.node(conditions=(reported,))) if one.source.endswith(typed)]
    assert [signal.kind for one in found for signal in one.signals] == [kind]


@pytest.mark.parametrize(
    ("message", "kind", "unreadable"),
    [
        pytest.param("Reboot Scheduled: tomorrow. DurationInSeconds: -1.", Kind.REBOOT, True, id="words"),
        pytest.param("Reboot Scheduled: Mon, 99 Feb 2026 10:00:00 GMT", Kind.REBOOT, True, id="no such day"),
        pytest.param("Reboot Scheduled: 0001-01-01T00:00:00Z", Kind.REBOOT, True, id="Go's empty time"),
        pytest.param(
            "Reboot Scheduled: 9999-12-31T23:59:59-11:00", Kind.REBOOT, True, id="past the calendar"
        ),
        pytest.param("Reboot Scheduled", Kind.REBOOT, False, id="none"),
        pytest.param(
            "Hibernate Scheduled: Fri, 06 Dec 2024 18:09:55 GMT", Kind.UNKNOWN, False, id="new kind"
        ),
        pytest.param("Reboot Advisory", Kind.UNKNOWN, False, id="advice of a kind that we don't know"),
        pytest.param("", Kind.UNKNOWN, False, id="empty"),
    ],
)
def test_what_can_not_be_read_is_an_event_all_the_same(message: str, kind: Kind, unreadable: bool) -> None:
    signal = parse_message("s", message)

    assert (signal.kind, signal.date_unreadable) == (kind, unreadable)
    assert signal.not_before is None or not unreadable


@settings(deadline=None)
@given(st.text() | strategies.messages())
def test_a_condition_that_is_true_is_never_no_event(message: str) -> None:
    signal = _told(MAIN, "True", message)

    assert signal is not None


@settings(deadline=None)
@given(st.sampled_from((MAIN, "PreemptionScheduled", "FreezeScheduled")), st.text(max_size=8), st.text())
def test_no_status_but_true_and_false_is_an_answer(type_: str, status: str, message: str) -> None:
    node = builders.node(conditions=(builders.condition(type_, status, message),))
    answers = {one.source: one.answer for one in read(node)}
    expected = {"True": Answer.EVENT, "False": Answer.NO_EVENT}.get(status, Answer.UNKNOWN)

    assert answers[f"condition:{type_}"] is expected


def test_a_failed_query_of_imds_is_unknown_and_says_why() -> None:
    message = "IMDS query failed, exit code: 28\nConnection timed out after 24 seconds."
    node = builders.node(
        conditions=(builders.condition(MAIN, "Unknown", message, reason="NoVMEventScheduled"),)
    )
    (answer,) = read(node)

    assert answer.answer is Answer.UNKNOWN
    assert answer.installed
    assert answer.because == (
        "VMEventScheduled is Unknown: IMDS query failed, exit code: 28 Connection timed out after 24 seconds."
    )


def test_a_condition_that_reports_is_not_hidden_by_the_main_one_that_is_unknown() -> None:
    both = (
        builders.condition(MAIN, "Unknown", "killed"),
        builders.condition("RebootScheduled", "True", "Reboot Started."),
    )

    assert [one.answer for one in read(builders.node(conditions=both))] == [Answer.UNKNOWN, Answer.EVENT]


@pytest.mark.parametrize(
    ("labels", "because"),
    [
        pytest.param({}, "it has no condition VMEventScheduled", id="linux"),
        pytest.param(
            {"kubernetes.io/os": "windows"}, "Windows nodes have no node-problem-detector", id="windows"
        ),
    ],
)
def test_without_the_condition_nothing_is_installed_there(labels: dict[str, str], because: str) -> None:
    (answer,) = read(builders.node(labels=labels))

    assert (answer.answer, answer.installed, answer.because) == (Answer.UNKNOWN, False, because)


def test_the_heartbeat_is_kept_so_that_an_old_answer_can_become_unknown() -> None:
    (answer,) = read(builders.node(conditions=(builders.quiet(at=NOW),)))

    assert answer.as_of == NOW


def test_hardware_that_fails_is_a_redeploy_of_the_platform() -> None:
    signal = parse_message(
        "s", "Redeploy Scheduled: 2026-11-26T12:00:00Z. DurationInSeconds: -1. Host fails."
    )

    assert signal.degraded
