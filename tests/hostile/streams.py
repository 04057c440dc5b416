"""What happens to watches on their way: events are lost, doubled, late or broken, and streams fall silent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random

PROTOBUF = "application/vnd.kubernetes.protobuf"
KINDS = ("dropped", "doubled", "delayed", "silent", "gone", "huge", "truncated", "garbage")
_WEIGHTS = (8, 8, 8, 1, 2, 1, 2, 1)
_HUGE = 64 << 20
_GONE = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}

Note = Callable[[str], None]


class Bender:
    """Breaks some events of the watches of one session; every choice comes from one seeded generator."""

    def __init__(self, seed: int, share: float, note: Note, calm: Callable[[], bool]) -> None:
        """Break this share of all events, note the kind of each, and break none once it is `calm`."""
        self._random = Random(f"streams {seed}")
        self._share = share
        self._note = note
        self._calm = calm

    def bend(self, content_type: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Return the stream as the client gets it. It ends early where an event says so."""
        held: list[bytes] = []
        for event in cut(content_type, chunks):
            kind = self._kind()
            if kind:
                self._note(kind)
            match kind:
                case "dropped":
                    continue
                case "delayed":
                    # It comes after the next one, or never.
                    held.append(event)
                    continue
                case "doubled":
                    yield event + event
                case "silent":
                    yield from self._silence(chunks)
                    return
                case "gone":
                    yield expired(content_type)
                    return
                case "huge":
                    yield from _huge(content_type)
                    return
                case "truncated":
                    yield event[: len(event) // 2]
                    return
                case "garbage":
                    yield framed(content_type, self._random.randbytes(200).replace(b"\n", b""))
                case _:
                    yield event
            while held:
                yield held.pop()

    def _kind(self) -> str:
        if self._calm() or self._random.random() >= self._share:
            return ""
        return self._random.choices(KINDS, _WEIGHTS)[0]

    def _silence(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Keep the stream open, and pass nothing on until the server ends it."""
        for _ in chunks:
            if self._calm():
                return
        yield b""


def cut(content_type: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield each event of a watch as it is on the wire, with its length or its line end."""
    rest = b""
    for chunk in chunks:
        rest += chunk
        while size := _size(content_type, rest):
            yield rest[:size]
            rest = rest[size:]
    if rest:
        yield rest


def _size(content_type: str, rest: bytes) -> int:
    """Return the length of the first event, 0 if it is not complete."""
    if not content_type.startswith(PROTOBUF):
        return rest.find(b"\n") + 1
    if len(rest) < 4:
        return 0
    size = 4 + int.from_bytes(rest[:4], "big")
    return size if len(rest) >= size else 0


def framed(content_type: str, content: bytes) -> bytes:
    if content_type.startswith(PROTOBUF):
        return len(content).to_bytes(4, "big") + content
    return content + b"\n"


def expired(content_type: str) -> bytes:
    """Return the ERROR event of a resourceVersion that is too old."""
    if not content_type.startswith(PROTOBUF):
        return framed(content_type, json.dumps({"type": "ERROR", "object": _GONE}).encode())
    status = _text(2, b"Failure") + _text(3, b"too old") + _text(4, b"Expired") + b"\x30" + b"\x9a\x03"
    kind = _text(1, b"v1") + _text(2, b"Status")
    unknown = b"k8s\x00" + _text(1, kind) + _text(2, status)
    return framed(content_type, _text(1, b"ERROR") + _text(2, _text(1, unknown)))


def _text(number: int, content: bytes) -> bytes:
    """Return a protobuf field of less than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def _huge(content_type: str) -> Iterator[bytes]:
    """Begin an event that is larger than any answer may be."""
    if content_type.startswith(PROTOBUF):
        yield _HUGE.to_bytes(4, "big")
    for _ in range(_HUGE >> 20):
        yield b"x" * (1 << 20)
