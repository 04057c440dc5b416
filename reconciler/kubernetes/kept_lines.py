"""Lines that are kept in a ConfigMap of ours: compressed, with a limit, and without the oldest beyond it.

What the lines say belongs to a feature, which declares them as a `LineKind`.
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes import objects
from reconciler.kubernetes.config_maps import unreadable
from reconciler.kubernetes.connection import MERGE_PATCH, Connection, Request, core
from reconciler.model import limits
from reconciler.model.errors import Rejected
from reconciler.model.moments import from_text, shifted, to_text

Line = TypeVar("Line")

LARGEST = 256 << 10
"""Characters of the data. A ConfigMap holds 1 MiB."""

LARGEST_LINES = 8 << 20
"""Bytes of the lines."""

LINES, WHOLE_FROM, BESIDE = "lines", "wholeFrom", "beside"
"""The keys of the ConfigMap."""

_PATIENCE = 10.0
"""Seconds for one request. No pass waits for it."""


class LineKind(Struct, Generic[Line], frozen=True):
    """Lines of a feature that the ConfigMap `name` keeps; `what` names them in messages: `moved pods`.

    `begins` says what follows once a ConfigMap that can't be read is deleted.
    `at` is the moment of a line (UTC), and two lines with the same `identity` are one. `write` returns the
    fields of a line as JSON has them, and `read` the line; it raises ValueError for fields that are none.
    """

    name: str
    what: str
    begins: str
    at: Callable[[Line], datetime]
    identity: Callable[[Line], Hashable]
    write: Callable[[Line], Mapping[str, Any]]
    read: Callable[[Mapping[str, Any]], Line]


class KeptLines(Struct, Generic[Line], frozen=True):
    """Lines in the order of their moments. From `whole_from` on (UTC) none is missing.

    `beside` is a text that is kept with them.
    """

    whole_from: datetime
    lines: tuple[Line, ...] = ()
    beside: str = ""

    def with_lines(self, kind: LineKind[Line], lines: Iterable[Line], since: datetime) -> KeptLines[Line]:
        """Return it with these lines, each once, and without those from before `since` (UTC)."""
        every = {kind.identity(line): line for line in (*self.lines, *lines)}
        kept = sorted((line for line in every.values() if kind.at(line) >= since), key=kind.at)
        return KeptLines(max(self.whole_from, since), tuple(kept), self.beside)


def packed(kind: LineKind[Line], kept: KeptLines[Line]) -> dict[str, str]:
    """Return the data of the ConfigMap; above the limits the oldest lines are left out."""
    lines = [
        json.dumps(kind.write(line), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        for line in kept.lines
    ]
    beside = _compressed(kept.beside.encode("utf-8", "replace")) if kept.beside else ""
    room, first = max(LARGEST - len(beside), 1), 0
    while True:
        text = b"\n".join(lines[first:])
        compressed = _compressed(text)
        worst = max(len(compressed) / room, len(text) / LARGEST_LINES)
        if worst <= 1 or first == len(lines):
            break
        # A little more than what is too much, so that this ends soon.
        first += max(int((len(lines) - first) * (1 - 0.95 / worst)), 1)
    # The last one that is left out is of this moment, and perhaps others with it.
    whole = shifted(kind.at(kept.lines[first - 1]), timedelta(seconds=1)) if first else kept.whole_from
    data = {LINES: compressed, WHOLE_FROM: to_text(max(whole, kept.whole_from))}
    return {**data, BESIDE: beside} if beside else data


def unpacked(kind: LineKind[Line], data: Mapping[str, str]) -> KeptLines[Line]:
    """Return what the data of the ConfigMap says; raises ValueError if it can't be read."""
    if LINES not in data:
        raise ValueError(f"it has no key {LINES}")
    text = _decompressed(data, LINES)
    beside = _decompressed(data, BESIDE).decode("utf-8", "replace") if data.get(BESIDE) else ""
    try:
        lines = [kind.read(msgspec.json.decode(line)) for line in text.splitlines() if line]
        whole_from = from_text(data.get(WHOLE_FROM, ""))
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"a line of it can't be read: {limits.text(str(error), 100)}") from error
    return KeptLines(whole_from, tuple(sorted(lines, key=kind.at)), beside)


def _compressed(text: bytes) -> str:
    return base64.b64encode(gzip.compress(text, mtime=0)).decode()


def _decompressed(data: Mapping[str, str], key: str) -> bytes:
    try:
        compressed = base64.b64decode(data[key], validate=True)
        # A few bytes can describe a text without end.
        text = zlib.decompressobj(wbits=31).decompress(compressed, LARGEST_LINES + 1)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"its {key} can't be read: {limits.text(str(error), 100)}") from error
    if len(text) > LARGEST_LINES:
        raise ValueError(f"its {key} are more than {LARGEST_LINES} bytes")
    return text


class KeptInCluster(Generic[Line]):
    """The ConfigMap with the lines of a kind in a namespace; for one thread."""

    def __init__(
        self, kind: LineKind[Line], connection: Connection, namespace: str, guard: Guard | None = None
    ) -> None:
        """Use this connection; `guard` raises LockLost if the lock is not ours. Without one it only reads."""
        self.kind = kind
        self._connection, self._guard = connection, guard or read_only
        self._namespace, self._place = namespace, core(namespace) / "configmaps"
        self.name = f"{namespace}/{kind.name}"
        self._version = ""

    def read(self) -> KeptLines[Line] | None:
        """Return what is kept, None if nothing is.

        Raises ClusterError, and ValueError if it can't be read.
        """
        place = self._place / self.kind.name
        present = objects.find(self._connection, place, objects.ConfigMap, patience=_PATIENCE)
        self._version = present.metadata.resourceVersion if present is not None else ""
        return unpacked(self.kind, present.data or {}) if present is not None else None

    def read_for_person(self) -> KeptLines[Line] | None:
        """Return what `read` does; what can't be read is a ClusterError as well, which says what to do."""
        try:
            return self.read()
        except ValueError as error:
            raise Rejected(self.unreadable(error)) from error

    def unreadable(self, why: ValueError) -> str:
        """Return in words that it can't be read, and how to end that."""
        return unreadable(self._namespace, self.kind.name, why, self.kind.begins)

    def write(self, kept: KeptLines[Line]) -> None:
        """Write it over what was read last; raises LockLost and ClusterError.

        If somebody else has changed it since, that is a Conflict.
        """
        self._guard()
        data = packed(self.kind, kept)
        if self._version:
            # A text beside the lines that is not kept any more has to go.
            body = {"metadata": {"resourceVersion": self._version}, "data": {BESIDE: None, **data}}
            place = self._place / self.kind.name
            answer = self._send(Request("PATCH", place, body=body, content_type=MERGE_PATCH))
        else:
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.kind.name}}
            answer = self._send(Request("POST", self._place, body={**made, "data": data}))
        self._version = msgspec.json.decode(answer, type=objects.OnlyMetadata).metadata.resourceVersion

    def _send(self, request: Request) -> bytes:
        return self._connection.send(
            msgspec.structs.replace(request, read_timeout=_PATIENCE, total=_PATIENCE)
        )
