"""The base of every watch: it lists, follows, reconnects, and ends on request."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Struct

from reconciler.http.failures import decode_json
from reconciler.http.retrying import CHANCE
from reconciler.kubernetes.connection import (
    GONE,
    JSON,
    PROTOBUF,
    ApiPath,
    Connection,
    Request,
    Stream,
    read_status,
)
from reconciler.kubernetes.wire import protobuf
from reconciler.kubernetes.wire.formats import Format
from reconciler.kubernetes.wire.lists import list_all, newest
from reconciler.model.errors import ClusterError, Rejected, TooManyRequests, Unreachable

log = logging.getLogger(__name__)

ASK_FOR = 280
"""Seconds after which the server ends a watch, so that load spreads again; below its own maximum."""

SILENCE = 100.0
"""Seconds without a byte until the connection counts as dead; a bookmark comes about every minute."""

LONGEST = ASK_FOR + 20.0
"""Seconds after which we end a watch ourselves, if the server does not."""

RELIST_EVERY = 600.0
"""Seconds after which a watch lists its objects again, so that no lost event stays unknown for longer."""

RELIST_FOR_EACH = 0.06
"""Seconds for each object after which it lists again, if that is longer."""

REREAD_AFTER = 30.0
"""Seconds after an object that could not be read until the objects are listed again."""

SHORTEST = 1.0
"""Seconds. After a watch that the server ended sooner, there is a pause."""

LONGEST_PAUSE = 5.0
LONGEST_WISH = 60.0
"""Seconds of a server's Retry-After that a watch respects."""

AT_ONCE = 0.0
"""The limit of retries of the list at the start of a watch, in seconds.

The watch itself tries again, with pauses that `leave` ends.
"""

CHUNK = 1 << 18
LARGEST_EVENT = protobuf.LARGEST

Value = TypeVar("Value")


class WatchEvent(Struct, frozen=True):
    """One event: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object, still encoded."""

    type: str
    object: bytes


class Watched(Generic[Value]):
    """The target of a watch: how to list it, which path to follow, and how to read an event's object."""

    path: ApiPath
    query: dict[str, str]
    accept: str = PROTOBUF

    def __init__(
        self,
        connection: Connection,
        path: ApiPath,
        form: Format[Value],
        uid: Callable[[Value], str],
        *,
        fields: str = "",
    ) -> None:
        """Watch the objects under the path that match a field selector; `uid` tells them apart."""
        self._connection, self._form, self._uid, self._fields = connection, form, uid, fields
        self.path = path
        self.query = {"fieldSelector": fields} if fields else {}

    def list(self) -> tuple[list[Value], str]:
        """Return all objects, and the resourceVersion from which a watch continues."""
        listed = list_all(self._connection, self.path, self._form, fields=self._fields, patience=AT_ONCE)
        return listed.items, listed.resource_version

    def newest(self) -> str:
        """Return the resourceVersion that a list would have now, at the price of one object."""
        return newest(self._connection, self.path, fields=self._fields)

    def read(self, encoded: bytes) -> Value:
        """Return the object of an event."""
        return self._form.read(protobuf.unwrapped(encoded))

    def uid(self, value: Value) -> str:
        """Return what is the same for all versions of the object."""
        return self._uid(value)

    def version(self, value: Value) -> str:
        """Return the object's resourceVersion."""
        version: str = cast("Any", value).resource_version
        return version


Change = TypeVar("Change")


class Known(Generic[Value, Change]):
    """What a watch has seen, and the changes that it yields of that. One thread calls it.

    `listed` gets all objects, and the resourceVersion of the list; it yields the changes since then. `saw`
    gets the object of an event, and whether it is gone; None is no change. `heard` is called for every sign
    of life of the watch, `lost` for what can't be read: what is known is not right any more. `forget` is
    called before the list of an API server whose versions went back. While it is `stale`, the watch lists
    again, and otherwise after `relist_every` seconds, or later with many objects.

    `version` is the newest resourceVersion that is known from others than the watch, empty without one.
    """

    stale = False
    version = ""

    @property
    def relist_every(self) -> float:
        """The seconds until the next list."""
        return RELIST_EVERY

    def listed(self, values: Iterable[Value], version: str) -> Iterator[Change]:
        """Yield the changes that a list shows."""
        raise NotImplementedError

    def saw(self, value: Value, *, gone: bool) -> Change | None:
        """Return the change that an event shows."""
        raise NotImplementedError

    def heard(self) -> None:
        """Note that the watch is alive, and has missed nothing."""

    def lost(self) -> None:
        """Note that an object can't be read."""

    def forget(self) -> None:
        """Compare nothing of what is known with what comes: equal versions may be different objects."""


class KnownObjects(Known[Value, tuple[bool, Value]]):
    """All objects. A change is `(True, object)` as listed or changed, or `(False, object)` that is gone."""

    def __init__(self, source: Watched[Value]) -> None:
        """Tell objects and their versions apart as this target does."""
        self._source = source
        self._values: dict[str, Value] = {}

    def listed(self, values: Iterable[Value], version: str) -> Iterator[tuple[bool, Value]]:
        del version
        now = {self._source.uid(value): value for value in values}
        for uid, value in list(self._values.items()):
            if uid not in now:
                del self._values[uid]
                yield False, value
        for uid, value in now.items():
            before = self._values.get(uid)
            self._values[uid] = value
            # Not by their versions, which may be equal after these went back.
            if before != value:
                yield True, value

    def saw(self, value: Value, *, gone: bool) -> tuple[bool, Value]:
        if gone:
            self._values.pop(self._source.uid(value), None)
        else:
            self._values[self._source.uid(value)] = value
        return not gone, value


def is_later(version: str, other: str) -> bool | None:
    """Whether the first resourceVersion is the newer one; None if that is not known, as one is no number."""
    return int(version) > int(other) if version.isdecimal() and other.isdecimal() else None


def later(version: str, other: str) -> str:
    """Return the newer one of two resourceVersions, each of which may be empty."""
    return version if not other or is_later(version, other) else other


class Watching(Generic[Value, Change]):
    """Lists, then follows. A context manager; its iterator ends when any thread leaves the context.

    Yields the changes of what is known, and None after each list. A watch event shows that an object is gone;
    after a break that was too long, a comparison of two lists does. It reconnects without a limit, and raises
    what is not an outage (Forbidden, Unauthorized). It lists again every `RELIST_EVERY` seconds, or a minute
    later on a watch without events. An object that can't be read is skipped, logged, and listed again after
    `REREAD_AFTER` seconds.

    All lists are consistent reads, so none is older than what was known when it was requested, whichever API
    server answers: one that lags behind waits, or asks etcd (only `resourceVersion=0`, which nothing here
    sends, may be answered from an old cache). Where the version of a list is lower all the same, somebody has
    restored a backup of etcd. Then what is known is forgotten, and the objects are listed again. A watch from
    a version that does not exist yet would be silent until it does, maybe for hours. So before a watch goes
    on, it asks for the newest version.
    """

    def __init__(self, connection: Connection, source: Watched[Value], known: Known[Value, Change]) -> None:
        """Watch this target over this connection."""
        self._connection = connection
        self._source = source
        self._known = known
        self._left = threading.Event()
        self._lock = threading.Lock()
        self._stream: Stream | None = None
        self._version = self._newest = ""
        self._list_at = 0.0
        self._turn = threading.Lock()
        self._iterator = self._events()

    def __enter__(self) -> Iterator[Change | None]:
        """Return the iterator."""
        return self

    def __iter__(self) -> Iterator[Change | None]:
        """Return the iterator."""
        return self

    def __next__(self) -> Change | None:
        """Wait for the next change."""
        with self._turn:
            return next(self._iterator)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the iterator, also if another thread waits in it."""
        self.leave()
        # A thread that waits for the next change ends the iterator itself. If none waits, the reader stopped
        # in the middle, and the connection would stay open until the iterator is collected.
        if self._turn.acquire(blocking=False):
            try:
                self._iterator.close()
            finally:
                self._turn.release()

    def leave(self) -> None:
        """End the iterator; a second call does nothing."""
        self._left.set()
        with self._lock:
            if self._stream is not None:
                self._stream.interrupt()

    def _events(self) -> Generator[Change | None]:
        failures = 0
        while not self._left.is_set():
            wish = 0.0
            try:
                if not self._is_due() and is_later(self._newest, self._source.newest()):
                    self._list_at = 0.0
                if self._is_due():
                    yield from self._list()
                    yield None
                began = time.monotonic()
                for change in self._follow():
                    failures = 0
                    yield change
                if time.monotonic() - began >= SHORTEST or self._is_due():
                    failures = 0
                    continue
            except (Unreachable, TooManyRequests) as error:
                log.info("a watch was cut: path=%s error=%s", self._source.path, error)
                wish = error.retry_after or 0.0
            except ClusterError as error:
                if error.status != GONE:
                    raise
                self._list_at = 0.0
                if not failures:
                    failures = 1
                    continue
            # A server that ends each watch at once is not asked in a loop without a pause.
            failures += 1
            self._left.wait(pause_after(failures, wish))

    def _is_due(self) -> bool:
        return self._known.stale or time.monotonic() >= self._list_at

    def _list(self) -> Iterator[Change]:
        known = later(self._newest, self._known.version)
        try:
            values, version = self._source.list()
            if is_later(known, version):
                log.warning(
                    "the versions of the API server went back, as after a restore of etcd; all is read again:"
                    " path=%s from=%s to=%s",
                    self._source.path,
                    known,
                    version,
                )
                self._known.forget()
                # Of the first list, an object may have been taken for one that is known.
                values, version = self._source.list()
        except ClusterError:
            self._known.lost()
            raise
        self._version = self._newest = version
        # A list of very many objects costs more than what it finds.
        self._list_at = time.monotonic() + max(self._known.relist_every, len(values) * RELIST_FOR_EACH)
        yield from self._known.listed(values, self._version)

    def _follow(self) -> Iterator[Change]:
        source = self._source
        query = {
            **source.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(ASK_FOR),
            "resourceVersion": self._version,
        }
        request = Request(
            "GET", source.path, query=query, accept=source.accept, read_timeout=SILENCE, total=LONGEST
        )
        with self._connection.stream(request) as stream:
            if not self._hold(stream):
                return
            try:
                for event in events(stream, source.accept):
                    if event.type == "ERROR":
                        raise _error(source.path, stream.content_type, event)
                    change: Change | None = None
                    try:
                        value = source.read(event.object)
                        self._version = source.version(value)
                        self._newest = later(self._newest, self._version)
                        if event.type != "BOOKMARK":
                            change = self._known.saw(value, gone=event.type == "DELETED")
                    except Exception as error:  # noqa: BLE001 - one object must not end the watch of all
                        self._skip(event, error)
                        continue
                    self._known.heard()
                    if change is not None:
                        yield change
                    if self._is_due():
                        return
            finally:
                self._hold(None)

    def _skip(self, event: WatchEvent, error: Exception) -> None:
        """Skip an object that can't be read: it stops no other. All objects are listed again soon."""
        if isinstance(error, MemoryError):
            raise error
        self._known.lost()
        list_at = time.monotonic() + REREAD_AFTER
        if list_at < self._list_at:
            # Logged once before each list, because the object may change many times a second.
            self._list_at = list_at
            log.warning(
                "a watch skips an object that can't be read: path=%s event=%s bytes=%d",
                self._source.path,
                event.type,
                len(event.object),
                exc_info=error,
            )

    def _hold(self, stream: Stream | None) -> bool:
        """Remember the stream that `leave` interrupts; return False if the watch was left in the meantime."""
        with self._lock:
            self._stream = stream
            return not self._left.is_set()


def pause_after(failures: int, wish: float) -> float:
    """Return the seconds until the next try after so many failures in a row; `wish` is the server's."""
    backoff = min(0.1 * float(2 ** min(failures, 10)), LONGEST_PAUSE)
    return max(CHANCE.uniform(0.5, 1.0) * backoff, min(wish, LONGEST_WISH))


def events(stream: Stream, accept: str = JSON) -> Iterator[WatchEvent]:
    """Yield each event of a watch, in JSON lines or in protobuf with a length of 4 bytes before each."""
    if stream.content_type != accept:
        raise Rejected(
            f"a watch in {stream.content_type or 'no type'}; is there a proxy before the API server?"
        )
    return _protobuf_events(stream) if accept == PROTOBUF else _json_events(stream)


def _protobuf_events(stream: Stream) -> Iterator[WatchEvent]:
    cutter = protobuf.Cutter(stream.read_some)
    while not cutter.ended():
        frame = cutter.take(int.from_bytes(cutter.take(4), "big"))
        event = protobuf.parse(protobuf.WatchEvent, frame)
        yield WatchEvent(event.type, event.object.raw)


class _JsonEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


def _json_events(stream: Stream) -> Iterator[WatchEvent]:
    rest: list[bytes] = []
    while chunk := stream.read_some(CHUNK):
        *lines, tail = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*rest, lines[0]])
            rest.clear()
        rest.append(tail)
        if sum(map(len, rest)) > LARGEST_EVENT:
            raise Rejected(f"a watch event is larger than {LARGEST_EVENT} bytes")
        for line in lines:
            try:
                event = decode_json(_JsonEvent, line)
            except msgspec.DecodeError as error:
                raise Rejected(f"a watch event can't be read: {error}") from error
            yield WatchEvent(event.type, bytes(event.object))


def _error(path: ApiPath, content_type: str, event: WatchEvent) -> ClusterError:
    """Return the error of an ERROR event; most of them mean that the resourceVersion is too old."""
    refusal = read_status(content_type, event.object)
    status = GONE if refusal.reason in ("Expired", "Gone") else refusal.code
    kind: Callable[..., ClusterError] = Rejected if status == GONE else Unreachable
    return kind(f"the watch of {path} ended: {refusal.message}", status=status, reason=refusal.reason)
