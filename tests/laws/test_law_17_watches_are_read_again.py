"""Law 17 for the watches of the clients: what a stream loses, doubles or delays is listed again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kubernetes import watching
from reconciler.kubernetes.connection import JSON, NODES, Connection
from reconciler.kubernetes.watching import LONGEST, RELIST_EVERY, KnownObjects, Watched, Watching
from reconciler.model.errors import Unreachable
from tests.laws.hits import Hits

Thing = tuple[str, str]
"""A UID and a resourceVersion."""

STEP = 10.0
BUSY_FOR = 400.0
"""Seconds for which objects change."""

FAULTS = ("kept", "lost", "doubled", "late", "unreadable")


class Server(Watched[Thing]):
    """Objects that change for a while, and a stream that tells of them unreliably, on a clock of its own."""

    path = NODES
    accept = JSON
    query: dict[str, str] = {}  # noqa: RUF012 - as the class that it stands for

    def __init__(self, seed: int, faults: tuple[str, ...], *, silent: bool) -> None:
        """Use these kinds of faults; a `silent` stream is open and says nothing after the first list."""
        self.now = 0.0
        self.there: dict[str, str] = {}
        self.lists = 0
        self.lost = 0
        self._random = Random(seed)
        self._faults = faults
        self._silent = silent
        self._late: list[bytes] = []

    def list(self) -> tuple[list[Thing], str]:
        self.lists += 1
        return list(self.there.items()), "1"

    def newest(self) -> str:
        return "1"

    def read(self, encoded: bytes) -> Thing:
        uid, version = json.loads(encoded)
        return str(uid), str(version)

    def uid(self, value: Thing) -> str:
        return value[0]

    def version(self, value: Thing) -> str:
        return value[1]

    def pass_time(self) -> bytes:
        """Let a step pass; return what the stream says of it."""
        self.now += STEP
        late, self._late = self._late, []
        if self.now > BUSY_FOR:
            return b"" if self._silent else b"".join(late)
        uid = f"object {self._random.randrange(5)}"
        if uid in self.there and self._random.random() < 0.4:
            event = _event("DELETED", uid, self.there.pop(uid))
        else:
            self.there[uid] = str(self.now)
            event = _event("MODIFIED", uid, self.there[uid])
        fault = self._random.choice(self._faults)
        self.lost += fault != "kept" or self._silent
        if self._silent:
            return b""
        if fault == "late":
            self._late.append(event)
        answers = {"kept": event, "doubled": event * 2, "unreadable": b'{"type":"ADDED","object":1}\n'}
        return answers.get(fault, b"") + b"".join(late)


def _event(kind: str, uid: str, version: str) -> bytes:
    return json.dumps({"type": kind, "object": [uid, version]}).encode() + b"\n"


class Streams:
    """Stands for the connection: each stream ends as those of an API server and of our own limits do."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.ends_at = 0.0
        self.watch: Watching[Thing, tuple[bool, Thing]] | None = None

    @contextmanager
    def stream(self, request: object) -> Iterator[object]:
        del request
        opened = self._server.now

        def read_some(size: int) -> bytes:
            del size
            heard = self._server.now
            while True:
                said = self._server.pass_time()
                if self._server.now >= self.ends_at:
                    assert self.watch is not None
                    self.watch.leave()
                    return b""
                if said:
                    return said
                if self._server.now - heard >= watching.SILENCE:
                    raise Unreachable("silent")
                if self._server.now - opened >= watching.ASK_FOR:
                    return b""

        yield SimpleNamespace(content_type=JSON, read_some=read_some, interrupt=lambda: None)


def _view_after(server: Server, seconds: float) -> dict[str, str]:
    """Follow the watch for so long; what its reader believes to be there."""
    streams = Streams(server)
    streams.ends_at = seconds
    view: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: server.now))
        patch.setattr(watching, "pause_after", lambda *_: 0.0)
        streams.watch = Watching(cast("Connection", streams), server, KnownObjects(server))
        with streams.watch as changes:
            for change in changes:
                if change is not None:
                    there, (uid, version) = change
                    if there:
                        view[uid] = version
                    else:
                        view.pop(uid, None)
    return view


LOST = Hits()


@LOST.at_least(20)
@given(
    seed=st.integers(0, 10**6),
    faults=st.lists(st.sampled_from(FAULTS), min_size=1, max_size=5).map(tuple),
    silent=st.booleans(),
)
def test_a_watch_that_lost_anything_is_right_again_after_a_bounded_time(
    seed: int, faults: tuple[str, ...], silent: bool
) -> None:
    server = Server(seed, faults, silent=silent)

    view = _view_after(server, BUSY_FOR + RELIST_EVERY + LONGEST + STEP)

    assert view == server.there
    LOST.count(server.lost > 0)
