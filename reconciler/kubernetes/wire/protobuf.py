"""Kubernetes' protobuf framing: lists are cut from the stream item by item, so that memory stays flat.

The body is `k8s\\0`, then a runtime.Unknown. Its field 2 (raw) holds the list: ListMeta (1) and the items
(2), one after the other (kubernetes.io, API concepts, "Protobuf encoding").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from reconciler.kubernetes.answers import MAGIC
from reconciler.kubernetes.wire import messages
from reconciler.model.errors import Rejected, Unreachable

CHUNK = 1 << 18
"""Bytes to read from the stream at once."""

LARGEST = 4 << 20
"""Bytes of one piece. etcd stores no object above 1.5 MiB, so a greater length than this is garbage."""

_BYTES = 2


class Cutter:
    """Cuts pieces of known length from a stream of chunks; `position` counts the bytes taken."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        """Use this function, which reads up to a number of bytes, and returns b"" at the end."""
        self._read = read
        self._buffer = b""
        self._at = 0
        self._before = 0

    @property
    def position(self) -> int:
        """Bytes taken so far."""
        return self._before + self._at

    def take(self, size: int) -> memoryview:
        """Return the next `size` bytes; Unreachable if the stream ends before them."""
        if len(self._buffer) - self._at < size:
            self._fill(size)
        start = self._at
        self._at += size
        return memoryview(self._buffer)[start : self._at]

    def varint(self) -> int:
        """Return the next number in protobuf's variable-length encoding."""
        value = shift = 0
        while True:
            if self._at == len(self._buffer):
                self._fill(1)
            byte = self._buffer[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise Rejected("the protobuf is broken: a number without an end")

    def ended(self) -> bool:
        """Whether the stream has ended."""
        if self._at < len(self._buffer):
            return False
        self._before += self._at
        self._buffer, self._at = self._read(CHUNK), 0
        return not self._buffer

    def _fill(self, size: int) -> None:
        """Fill the buffer with at least `size` bytes; each byte is copied at most twice."""
        if size > LARGEST:
            raise Rejected(f"the protobuf is broken: a piece of {size} bytes")
        self._before += self._at
        pieces = [self._buffer[self._at :]]
        have = len(pieces[0])
        while have < size:
            chunk = self._read(CHUNK)
            if not chunk:
                raise Unreachable(f"the stream ended in the middle, {size - have} bytes short")
            pieces.append(chunk)
            have += len(chunk)
        self._buffer, self._at = b"".join(pieces), 0


def items(read: Callable[[int], bytes], kind: str, meta: Callable[[Any], None]) -> Iterator[memoryview]:
    """Yield each item of a list of that kind, still encoded; pass the ListMeta to `meta`.

    A piece is valid until the next one is requested. Raises Unreachable if the stream is cut, Rejected if it
    is another kind or broken.
    """
    cutter = Cutter(read)
    if cutter.take(len(MAGIC)) != MAGIC:
        raise Rejected("the answer has the content type of protobuf, but does not begin as Kubernetes' does")
    listed = False
    while not cutter.ended():
        tag = cutter.varint()
        if tag == _tag(1, _BYTES):
            found = _parse(messages.TypeMeta, cutter.take(cutter.varint())).kind
            if found != kind:
                raise Rejected(f"asked for a {kind}, the answer is a {found or 'thing without a kind'}")
        elif tag == _tag(2, _BYTES):
            yield from _list_items(cutter, cutter.varint(), meta)
            listed = True
        else:
            _skip(cutter, tag)
    if not listed:
        raise Unreachable("the stream ended before its list began")


def unwrapped(frame: bytes | memoryview) -> bytes:
    """Return the content of a `k8s\\0` envelope, still encoded."""
    if frame[: len(MAGIC)] != MAGIC:
        raise Rejected("the answer has the content type of protobuf, but does not begin as Kubernetes' does")
    raw: bytes = _parse(messages.Unknown, frame[len(MAGIC) :]).raw
    return raw


def parse(kind: Any, encoded: bytes | memoryview) -> Any:
    """Decode one message; Rejected if it is broken."""
    return _parse(kind, encoded)


def _list_items(cutter: Cutter, length: int, meta: Callable[[Any], None]) -> Iterator[memoryview]:
    end = cutter.position + length
    item = _tag(2, _BYTES)
    while cutter.position < end:
        tag = cutter.varint()
        if tag == item:
            yield cutter.take(cutter.varint())
        elif tag == _tag(1, _BYTES):
            meta(_parse(messages.ListMeta, cutter.take(cutter.varint())))
        else:
            _skip(cutter, tag)
    if cutter.position != end:
        raise Rejected("the protobuf is broken: an item goes beyond the end of its list")


def _skip(cutter: Cutter, tag: int) -> None:
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


def _tag(number: int, wire_type: int) -> int:
    return number << 3 | wire_type


def _parse(kind: Any, encoded: bytes | memoryview) -> Any:
    try:
        return kind.FromString(encoded)
    except messages.DecodeError as error:
        raise Rejected(f"the protobuf is broken: {error}") from error
