"""Large lists in protobuf: cut from the stream object by object, while the server works on the next page.

A list reads the same as that of `wire/lists.py`. Memory stays flat, whatever the objects hold that is not
read: no page is held as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, closing, contextmanager
from typing import Any, TypeVar

import msgspec

from reconciler.http.retrying import PATIENCE, patiently
from reconciler.kubernetes.connection import ApiPath, Connection, Request, Stream
from reconciler.kubernetes.wire import protobuf, shapes
from reconciler.kubernetes.wire.formats import Format
from reconciler.kubernetes.wire.lists import (
    LONGEST,
    ONLY_METADATA,
    PAGE,
    ListResult,
    check_format,
    check_goes_on,
    fitting,
    from_one_snapshot,
    page_request,
)
from reconciler.model.errors import Rejected, Unreachable
from reconciler.threads import begin_read

Value = TypeVar("Value")

_BYTES = 2


def list_streamed(
    connection: Connection,
    path: ApiPath,
    form: Format[Value],
    *,
    fields: str = "",
    labels: str = "",
    page: int = PAGE,
    patience: float = PATIENCE,
) -> ListResult[Value]:
    """Return what `lists.list_all` does, of a list that the API has in protobuf; see there."""

    def read() -> ListResult[Value]:
        result, size, ends = ListResult[Value]([], ""), page, time.monotonic() + LONGEST

        def request_for(token: str) -> Request:
            return page_request(path, form, fields=fields, labels=labels, size=size, token=token)

        with closing(_NextPage(connection)) as following:
            request = request_for("")

            def read_page() -> tuple[Any, list[Value], int]:
                """Return the ListMeta of a page, its objects, and their bytes."""
                metas: list[Any] = []
                objects, length = [], 0

                def begin(meta: Any) -> None:
                    metas.append(meta)
                    token = getattr(meta, "continue")
                    # Of the first page, nobody knows how large its objects are.
                    if token and result.items:
                        following.begin(request_for(token))

                with following.stream(request) as stream:
                    check_format(stream, form)
                    for item in items(stream.read, form.kind, begin):
                        length += len(item)
                        objects.append(form.read(item))
                if not metas:
                    raise Rejected(f"the {form.kind} has no metadata")
                return metas[0], objects, length

            while True:
                meta, objects, length = patiently(read_page, patience=patience, sleep=connection.sleep)
                result.items += objects
                # Every page has the same one: that of the snapshot from which all pages are cut.
                result.resource_version = meta.resourceVersion
                token = getattr(meta, "continue")
                if not token:
                    return result
                check_goes_on(path, request.query.get("continue", ""), token, ends)
                size = fitting(len(objects), length) if objects else size
                request = following.request or request_for(token)

    return from_one_snapshot(path, read)


class _NextPage:
    """The page after the one that is read: the API server works on it while we decode that one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._opened, self._stream = ExitStack(), Future[Stream]()
        self.request: Request | None = None
        """What is requested already."""

    def begin(self, request: Request) -> None:
        """Request it in a thread of its own."""
        self.close()
        opened = ExitStack()
        stream = begin_read("next page", lambda: opened.enter_context(self._connection.stream(request)))
        self.request, self._opened, self._stream = request, opened, stream

    @contextmanager
    def stream(self, request: Request) -> Iterator[Stream]:
        """Return the answer to a request, which was perhaps sent before."""
        if request is not self.request:
            with self._connection.stream(request) as stream:
                yield stream
            return
        self.request, answer = None, self._stream
        with self._opened:
            yield answer.result()

    def close(self) -> None:
        """Leave what nobody has asked for."""
        if self.request is not None:
            self.request = None
            wait([self._stream])
            self._opened.close()


def items(read: Callable[[int], bytes], kind: str, meta: Callable[[Any], None]) -> Iterator[memoryview]:
    """Yield each item of a list of that kind, still encoded; pass the ListMeta to `meta`.

    A piece is valid until the next one is requested. Raises Unreachable if the stream is cut, Rejected if it
    is another kind or broken.
    """
    cutter = protobuf.Cutter(read)
    protobuf.check_magic(cutter.take(len(protobuf.MAGIC)))
    listed = False
    while not cutter.ended():
        tag = cutter.varint()
        if tag == _tag(1):
            protobuf.check_kind(kind, protobuf.parse(protobuf.TypeMeta, cutter.take(cutter.varint())).kind)
        elif tag == _tag(2):
            length = cutter.varint()
            end, listed = cutter.position + length, True
            while cutter.position < end:
                tag = cutter.varint()
                if tag == _tag(2):
                    yield cutter.take(cutter.varint())
                elif tag == _tag(1):
                    meta(protobuf.parse(protobuf.ListMeta, cutter.take(cutter.varint())))
                else:
                    _skip(cutter, tag)
            if cutter.position != end:
                raise Rejected("the protobuf is broken: an item goes beyond the end of its list")
        else:
            _skip(cutter, tag)
    if not listed:
        raise Unreachable("the stream ended before its list began")


def _skip(cutter: protobuf.Cutter, tag: int) -> None:
    match tag & 7:
        case 0:
            cutter.varint()
        case 1:
            cutter.take(8)
        case 2:
            cutter.take(cutter.varint())
        case 5:
            cutter.take(4)
        case other:
            raise Rejected(f"the protobuf is broken: a field of wire type {other}")


def _tag(number: int) -> int:
    """Return the tag of a message or a text that is the field of this number."""
    return number << 3 | _BYTES


class _Counted(msgspec.Struct):
    remainingItemCount: int | None = None  # noqa: N815 - the API's spelling


class _CountedList(msgspec.Struct):
    metadata: _Counted
    items: list[msgspec.Raw] | None = None


def count_all(connection: Connection, path: ApiPath) -> int:
    """Return how many objects there are under the path, at the price of one; raises ClusterError."""
    answer = connection.send(Request("GET", path, query={"limit": "1"}, accept=ONLY_METADATA))
    listed = shapes.decode(_CountedList, answer)
    return len(listed.items or ()) + (listed.metadata.remainingItemCount or 0)
