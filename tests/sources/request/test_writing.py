"""A request by a person: what it writes is what the source reads, and it overwrites no other request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model import limits
from reconciler.model.event import Kind, Signal, Status
from reconciler.model.moments import to_text
from reconciler.model.writes import NodeWrite
from reconciler.sources.request.source import (
    KINDS,
    Request,
    RequestRefused,
    cancelled,
    parse,
    parse_not_before,
    requested,
)
from tests.support import builders
from tests.support.builders import DRAIN_NOW, NOW, PREFIX, REQUEST

BERLIN = ZoneInfo("Europe/Berlin")
SETTINGS = builders.settings()
OTHER = '{"kind":"Redeploy","notBefore":"2026-11-22T21:00:00Z","id":"CHG-1","reason":"disk"}'

texts = st.text(st.characters(codec=None), max_size=limits.NAME)
seconds = st.integers(0, int(limits.LONGEST.total_seconds()))


@given(
    kind=st.sampled_from(KINDS),
    at=st.none() | st.integers(1, 10**8).map(lambda ahead: NOW + timedelta(seconds=ahead)),
    length=st.none() | seconds.map(lambda count: timedelta(seconds=count)),
    name=texts,
    reason=texts,
)
def test_the_source_reads_what_was_requested(
    kind: Kind, at: datetime | None, length: timedelta | None, name: str, reason: str
) -> None:
    written = Request(kind, at, length, name, reason).text

    expected = Signal(
        "request",
        kind,
        Status.SCHEDULED,
        not_before=at,
        duration=length,
        id=limits.whole(name),
        description=limits.whole(reason),
    )
    assert parse(written) == expected
    assert written.encode("utf-8")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"id": "x" * 254}, "the id has 254 characters; write at most 253"),
        ({"reason": "x" * 1025}, "the reason has 1025 characters; write at most 1024"),
        ({"duration": timedelta(days=367)}, "a duration of 367d is longer than 366d"),
    ],
)
def test_what_the_annotation_would_cut_is_refused(made: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Request(Kind.REBOOT, **made)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+2h", NOW + timedelta(hours=2)),
        ("2h", NOW + timedelta(hours=2)),
        ("1d12h", NOW + timedelta(hours=36)),
        (" +1h30m ", NOW + timedelta(minutes=90)),
        ("2026-11-22", datetime(2026, 11, 21, 23, tzinfo=UTC)),
        ("2026-11-22T06:00", datetime(2026, 11, 22, 5, tzinfo=UTC)),
        ("2026-11-22 06:00", datetime(2026, 11, 22, 5, tzinfo=UTC)),
        ("2026-11-22T06:00:00Z", datetime(2026, 11, 22, 6, tzinfo=UTC)),
        ("2026-11-22T06:00:00.9-05:00", datetime(2026, 11, 22, 11, tzinfo=UTC)),
    ],
)
def test_a_moment_is_in_the_time_zone_of_the_settings_unless_it_has_an_offset(
    text: str, expected: datetime
) -> None:
    assert parse_not_before(text, BERLIN, NOW) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-11-21T12:00:00Z", "is not in the future; leave it out"),
        ("2026-11-21T12:30", r"Sat 2026-11-21 12:30 CET \(Europe/Berlin\) is not in the future"),
        ("+0s", "is not in the future"),
        ("2 hours", r"is not a moment; write it like 2026-11-26, .* or 2h from now"),
        ("+soon", r"is not a duration; .* or 2h from now"),
        ("0h", r"is not in the future"),
        ("+-2h", "is negative"),
        ("2026-02-30", "is not a valid date"),
        ("2101-01-02", "is not from 2000 to 2100"),
        ("", "is not a moment"),
    ],
)
def test_a_moment_that_can_not_be_meant_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_not_before(text, BERLIN, NOW)


def test_the_write_is_for_the_node_as_it_was_read() -> None:
    node = builders.node()
    request = Request(Kind.REBOOT, id="CHG-42")

    write = requested(node, request, SETTINGS, replace=False)

    assert isinstance(write, NodeWrite)
    assert write.annotations == {REQUEST: request.text}
    assert (write.uid, write.seen_unschedulable, write.seen_own) == (node.uid, False, {})
    assert (write.unschedulable, dict(write.labels)) == (None, {})


def test_another_request_is_refused_by_name_unless_it_is_to_be_replaced() -> None:
    node = builders.node(annotations={REQUEST: OTHER})
    request = Request(Kind.REBOOT)

    refused = requested(node, request, SETTINGS, replace=False)
    replaced = requested(node, request, SETTINGS, replace=True)

    assert refused == RequestRefused(
        "it has another request: Redeploy, not before 2026-11-22T21:00:00Z, id CHG-1, “disk”; "
        "--replace overwrites it, --cancel removes it"
    )
    assert isinstance(replaced, NodeWrite)
    assert replaced.annotations == {REQUEST: request.text}


def test_a_request_that_can_not_be_read_is_not_overwritten_either() -> None:
    node = builders.node(annotations={REQUEST: "reboot"})

    refused = requested(node, Request(Kind.REBOOT), SETTINGS, replace=False)

    assert isinstance(refused, RequestRefused)
    assert refused.because.startswith("it has a request that can't be read: it is not JSON")


def test_the_author_of_a_request_and_when_it_was_written_are_read_with_its_reason() -> None:
    written = Request(Kind.REBOOT, reason="disk", by="alice@host", at=NOW).text

    assert parse(written).description == f"requested by alice@host at {to_text(NOW)}: disk"
    # Nothing depends on when it was written, so an unreadable moment is no reason to hold the node.
    assert parse('{"kind": "Reboot", "by": "bob", "at": "now"}').description == "requested by bob"


def test_the_same_request_of_another_person_is_there_already() -> None:
    node = builders.node(annotations={REQUEST: Request(Kind.REBOOT, by="alice@host", at=NOW).text})

    assert requested(node, Request(Kind.REBOOT, by="bob@host"), SETTINGS, replace=True) is None


def test_the_same_request_in_other_words_is_there_already() -> None:
    node = builders.node(annotations={REQUEST: '{"kind": "reboot"}'})

    assert requested(node, Request(Kind.REBOOT), SETTINGS, replace=True) is None


def test_a_node_that_no_pass_looks_at_is_refused() -> None:
    settings = builders.settings("nodeSelector: {agentpool: batch}")

    refused = requested(builders.node(), Request(Kind.REBOOT), settings, replace=False)

    assert isinstance(refused, RequestRefused)
    assert "nodeSelector" in refused.because


def test_a_cancellation_removes_the_annotation_of_this_prefix_only() -> None:
    settings = builders.settings("keys: {prefix: ours.example.com}")
    other = builders.node(annotations={REQUEST: DRAIN_NOW})
    node = builders.node(annotations={"ours.example.com/request": "broken", REQUEST: DRAIN_NOW})

    write = cancelled(node, settings, "bob", NOW)

    assert write is not None
    assert write.annotations.keys() == {"ours.example.com/request", "ours.example.com/said-before"}
    assert write.annotations["ours.example.com/request"] is None
    assert cancelled(other, settings, "bob", NOW) is None
    assert f"{PREFIX}/request" == REQUEST
