"""The watches' attacks are what they say: a watch of the program reads them as such."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.kubernetes.connection import JSON, PROTOBUF, read_status
from reconciler.kubernetes.wire import protobuf
from tests.hostile import streams
from tests.hostile.streams import Bender


def _events(content_type: str) -> list[bytes]:
    return [streams.framed(content_type, bytes([65 + one]) * (one + 1)) for one in range(9)]


def _bent(seed: int, content_type: str, *, share: float = 1.0, calm: bool = False) -> tuple[list[str], bytes]:
    tried: list[str] = []
    bender = Bender(seed, share, tried.append, lambda: calm)
    whole = b"".join(_events(content_type))
    chunks: Iterator[bytes] = (whole[at : at + 5] for at in range(0, len(whole), 5))
    return tried, b"".join(bender.bend(content_type, chunks))


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
def test_a_calm_stream_is_as_the_server_sent_it(content_type: str) -> None:
    tried, got = _bent(1, content_type, calm=True)

    assert (tried, got) == ([], b"".join(_events(content_type)))


@pytest.mark.heavy
@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
def test_every_kind_of_fault_happens_and_changes_the_stream(content_type: str) -> None:
    seen: set[str] = set()
    for seed in range(60):
        tried, got = _bent(seed, content_type)
        seen.update(tried)
        assert got != b"".join(_events(content_type))

    assert seen == set(streams.KINDS)


def test_the_event_of_an_old_version_is_one_for_the_program() -> None:
    frame = streams.expired(PROTOBUF)
    event = protobuf.parse(protobuf.WatchEvent, frame[4:])

    status = read_status(PROTOBUF, event.object.raw)
    assert (int.from_bytes(frame[:4], "big"), event.type) == (len(frame) - 4, "ERROR")
    assert (status.code, status.reason) == (410, "Expired")
