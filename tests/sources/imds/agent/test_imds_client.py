"""How the client asks IMDS, how long it waits, and what it makes of answers."""

from __future__ import annotations

import socket
import sys
import textwrap
from subprocess import run

import pytest

from reconciler.model.errors import SourceError
from reconciler.sources.imds.agent.imds import Imds, ImdsError
from reconciler.sources.imds.agent.plain_http import LARGEST_BODY
from tests.support.fakes.imds import Answer, FakeImds, event, started


def test_a_good_answer_is_the_document(imds: FakeImds) -> None:
    imds.announce(event("vmss_1"))

    assert Imds(imds.address).scheduled_events() == {"DocumentIncarnation": 1, "Events": [event("vmss_1")]}
    assert imds.requests == ["GET"]


@pytest.mark.parametrize(
    ("answer", "reason", "retry_after"),
    [
        (Answer(410), "IMDS answered 410 Gone", None),
        (Answer(429, headers={"Retry-After": "7"}), "IMDS answered 429 Too Many Requests", 7),
        (Answer(500), "IMDS answered 500 Internal Server Error", None),
        (Answer(200), "IMDS answered with an empty body", None),
        (Answer(200, b"\n"), "IMDS answered with an empty body", None),
        (Answer(200, b"<html>"), "IMDS answered with a broken body: ", None),
        (Answer(200, b'{"Events":[', cut=True), "no answer from IMDS at ", None),
        (Answer(302, headers={"Location": "http://127.0.0.1:9"}), "IMDS answered 302 Found", None),
        (Answer(200, b" " * (LARGEST_BODY + 1)), "no answer from IMDS at ", None),
    ],
)
def test_what_is_no_document_is_an_error_with_its_reason(
    imds: FakeImds, answer: Answer, reason: str, retry_after: float | None
) -> None:
    imds.script(answer)

    with pytest.raises(ImdsError) as caught:
        Imds(imds.address).scheduled_events()

    assert str(caught.value).startswith(reason)
    assert caught.value.retry_after == retry_after
    assert isinstance(caught.value, SourceError)


@pytest.mark.heavy
def test_the_largest_answer_of_any_shape_leaves_the_agent_memory(imds: FakeImds) -> None:
    # The worst shape: an empty list takes 64 bytes in memory and 3 in JSON.
    events = b'{"Events": [], "x": [' + b",".join([b"[]"] * (LARGEST_BODY // 3 - 10)) + b"]}"
    assert LARGEST_BODY - 100 < len(events) <= LARGEST_BODY
    imds.script(Answer(200, b'{"Events": []}'), Answer(200, events))
    child = """
        import sys, tracemalloc
        from reconciler.sources.imds.agent.imds import Imds

        imds = Imds(sys.argv[1])
        imds.scheduled_events()
        tracemalloc.start()
        imds.scheduled_events()
        print(tracemalloc.get_traced_memory()[1] >> 10)
    """
    done = run(
        [sys.executable, "-c", textwrap.dedent(child), imds.address],
        capture_output=True,
        text=True,
        check=True,
    )

    # The agent needs 25 MiB by itself, and has 48.
    assert int(done.stdout) < 20 << 10


def test_no_answer_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # taken, and not listening
        with pytest.raises(ImdsError, match="no answer from IMDS"):
            Imds(f"http://127.0.0.1:{taken.getsockname()[1]}").scheduled_events()


@pytest.mark.parametrize(
    "mood", [Answer(delay=30), Answer(200, b"{" * 100, trickle=0.1)], ids=["slow", "trickle"]
)
def test_the_whole_answer_has_to_come_in_time(imds: FakeImds, mood: Answer) -> None:
    imds.script(mood)

    with pytest.raises(ImdsError, match="timed out"):
        Imds(imds.address, first_timeout=0.5).scheduled_events()


def test_patience_is_for_the_first_good_answer_only(imds: FakeImds) -> None:
    client = Imds(imds.address, timeout=0.3, first_timeout=20)
    imds.script(
        Answer(500), Answer(200, b'{"Events":[]}', delay=0.6), Answer(200, b'{"Events":[]}', delay=10)
    )

    with pytest.raises(ImdsError, match="500"):
        client.scheduled_events()
    assert client.scheduled_events() == {"Events": []}
    with pytest.raises(ImdsError, match="timed out"):
        client.scheduled_events()


def test_acknowledging_names_the_event(imds: FakeImds) -> None:
    imds.announce(event("vmss_1", event_id="C7061BAC"))
    Imds(imds.address).acknowledge("C7061BAC")

    assert imds.acknowledged == ["C7061BAC"]
    assert imds.requests == ["POST"]


def test_the_fake_starts_no_event_that_it_does_not_list() -> None:
    with FakeImds() as imds:
        imds.announce(event("vmss_1", event_id="A"))
        with pytest.raises(ImdsError, match="400"):
            Imds(imds.address).acknowledge("B")

        assert imds.acknowledged == []
        assert imds.violations == ["unknown EventId B"]


def test_what_is_acknowledged_has_started(imds: FakeImds) -> None:
    imds.announce(event("vmss_1", event_id="A"), event("vmss_1", event_id="B"))
    client = Imds(imds.address)
    client.acknowledge("A")
    events = client.scheduled_events()["Events"]

    assert events == [started(event("vmss_1", event_id="A")), event("vmss_1", event_id="B")]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(Answer(400), "IMDS answered 400 Bad Request"), (Answer(503), "IMDS answered 503 Service Unavailable")],
)
def test_an_acknowledgement_that_is_refused_is_an_error(imds: FakeImds, answer: Answer, reason: str) -> None:
    imds.refuse(answer)

    with pytest.raises(ImdsError, match=reason):
        Imds(imds.address).acknowledge("A")

    assert imds.acknowledged == []


@pytest.mark.parametrize("address", ["", "127.0.0.1", "https://127.0.0.1", "http://", "http://127.0.0.1/x"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="not the address of an IMDS"):
        Imds(address)
