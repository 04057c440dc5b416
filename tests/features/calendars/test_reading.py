"""Reading calendars: files, objects, and why a content can't be used."""

from __future__ import annotations

import base64
import os
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from reconciler.features.calendars.parsing import parse_calendar
from reconciler.features.calendars.reading import Calendars
from reconciler.model.content import CalendarPlace, CalendarText, Holder
from tests.support.stub import Answer, Asked, StubMaker, json_answer, status

GOOD = "- {start: 2026-12-01, end: 2026-12-02}\n"
OTHER = "- {start: 2026-12-03, end: 2026-12-04}\n"


def in_file(path: Path) -> CalendarPlace:
    return CalendarPlace("c", path=str(path))


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    path, reader = tmp_path / "a.yaml", Calendars()
    path.write_text(GOOD)
    assert reader.read([in_file(path)]) == {"c": CalendarText(GOOD)}

    path.write_text(OTHER)
    assert reader.read([in_file(path)]) == {"c": CalendarText(OTHER)}


def test_a_content_that_can_not_be_used_is_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("- {start: soon}")

    read = Calendars().read([in_file(path)])["c"]

    assert read.unread.startswith(f"{path}: [0].start: 'soon' is not a moment")
    assert not read.text


def test_of_an_icalendar_only_what_counts_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.ics"
    lines = [
        "BEGIN:VCALENDAR",
        "BEGIN:VEVENT",
        "UID:1",
        "DTSTART:20261201T000000Z",
        "DTEND:2026120",
        " 2T000000Z",
        "SUMMARY:sale",
        "ATTENDEE:mailto:ann@example.com",
        "DESCRIPTION:secret",
        " s",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    path.write_text("\r\n".join(lines))

    text = Calendars().read([in_file(path)])["c"].text

    assert "example.com" not in text
    assert "secret" not in text
    assert parse_calendar(text, in_file(path)) == parse_calendar(path.read_text(), in_file(path))


@pytest.mark.parametrize(
    ("content", "unread"),
    [(b"\xff\xfe", "is not UTF-8 text"), (b"a" * 1_000_001, "is larger than 1000000 bytes")],
)
def test_a_file_that_is_no_text_or_too_large_is_refused(tmp_path: Path, content: bytes, unread: str) -> None:
    path = tmp_path / "a.ics"
    path.write_bytes(content)

    assert unread in Calendars().read([in_file(path)])["c"].unread


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    assert Calendars().read([in_file(path)])["c"].unread == f"{path} is not a regular file"


def test_one_calendar_harms_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD)
    broken = CalendarPlace("d", path=str(tmp_path / "none"))

    found = Calendars().read([broken, in_file(path)])

    assert found["d"].unread
    assert found["c"] == CalendarText(GOOD)


class BrokenZone(tzinfo):
    """A time zone with a mistake in its program."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        raise RuntimeError("broken")

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str:
        return "broken"


def test_an_error_in_the_program_harms_one_calendar_only(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD)
    broken = CalendarPlace("d", path=str(path), zone=BrokenZone())

    found = Calendars().read([broken, in_file(path)])

    assert "broken" in found["d"].unread
    assert found["c"] == CalendarText(GOOD)


class Server:
    """An API server with one answer for each path, and what it was asked."""

    def __init__(self, stub: StubMaker) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, str]] = []
        _, self.connection = stub(self._answer)

    def _answer(self, asked: Asked) -> Answer:
        accept = {key.lower(): value for key, value in asked.headers.items()}.get("accept", "")
        self.asked.append((asked.path.rpartition("/")[2], "metadata" if "PartialObject" in accept else "all"))
        return self.answers.get(asked.path, status(404, "NotFound"))


@pytest.fixture
def server(stub: StubMaker) -> Server:
    return Server(stub)


def held(version: str, at: str = "2026-05-11T12:00:00Z", **data: str) -> Answer:
    metadata = {"name": "m", "resourceVersion": version, "managedFields": [{"manager": "ann", "time": at}]}
    return json_answer({"metadata": metadata, "data": data})


MAP = CalendarPlace("c", Holder.CONFIG_MAP, namespace="ns", object="m")
AT = "/api/v1/namespaces/ns/configmaps/m"


def test_an_object_is_read_again_only_after_a_change(server: Server) -> None:
    reader = Calendars(server.connection)
    server.answers[AT] = held("1", a=GOOD)
    assert reader.read([MAP])["c"].text == GOOD
    assert reader.read([MAP])["c"].text == GOOD
    assert server.asked == [("m", "metadata"), ("m", "all"), ("m", "metadata")]

    server.answers[AT] = held("2", a=OTHER)
    assert reader.read([MAP])["c"].text == OTHER


def test_a_version_that_comes_again_after_a_restore_of_etcd_is_another_one(server: Server) -> None:
    reader = Calendars(server.connection)
    server.answers[AT] = held("7", a=GOOD)
    reader.read([MAP])

    server.answers[AT] = held("7", at="2026-05-11T12:30:00Z", a=OTHER)
    assert reader.read([MAP])["c"].text == OTHER


def test_a_secret_is_base64(server: Server) -> None:
    place = CalendarPlace("c", Holder.SECRET, namespace="ns", object="s", key="k")
    encoded = base64.b64encode(GOOD.encode()).decode()
    server.answers["/api/v1/namespaces/ns/secrets/s"] = held("1", k=encoded, other="!")

    assert Calendars(server.connection).read([place])["c"].text == GOOD


@pytest.mark.parametrize(
    ("answer", "unread"),
    [
        pytest.param(status(404, "NotFound"), "there is no ConfigMap ns/m", id="missing"),
        pytest.param(status(403, "Forbidden"), "ConfigMap ns/m: needs get configmaps in ns", id="forbidden"),
        pytest.param(held("1"), "ConfigMap ns/m has 0 keys", id="empty"),
        pytest.param(held("1", a=GOOD, b=GOOD), "ConfigMap ns/m has 2 keys; write the one", id="which key"),
    ],
)
def test_an_object_that_has_no_calendar_says_why(server: Server, answer: Answer, unread: str) -> None:
    server.answers[AT] = answer

    assert unread in Calendars(server.connection).read([MAP])["c"].unread


@pytest.mark.heavy
def test_an_api_server_that_is_away_is_asked_once(server: Server, tmp_path: Path) -> None:
    server.answers[AT] = status(503, "ServiceUnavailable")
    path = tmp_path / "a.yaml"
    path.write_text(GOOD)
    secret = CalendarPlace("d", Holder.SECRET, namespace="ns", object="s")
    places = [MAP, secret, CalendarPlace("e", path=str(path))]

    found = Calendars(server.connection).read(places)

    assert {name for name, _ in server.asked} == {"m"}
    assert found["c"].unread
    assert found["d"].unread
    assert found["e"].text == GOOD


def test_without_a_connection_no_object_is_read() -> None:
    assert Calendars().read([MAP])["c"].unread == "ConfigMap ns/m is not read by this command"
