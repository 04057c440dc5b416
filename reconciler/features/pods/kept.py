"""What the cluster keeps of moved pods: lines in a ConfigMap, compressed, with a limit."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from reconciler.features.pods import NAME
from reconciler.features.pods.moved import MovedPod, from_fields, to_fields
from reconciler.http.retrying import Guard, read_only
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import MERGE_PATCH, Connection, Request, core
from reconciler.model import limits
from reconciler.model.moments import from_text, shifted, to_text

LARGEST = 256 << 10
"""Characters of the compressed lines. A ConfigMap holds 1 MiB."""

LARGEST_LINES = 8 << 20
"""Bytes of the lines."""

LINES, WHOLE_FROM = "lines", "wholeFrom"
"""The keys of the ConfigMap."""

BEGINS = "the pods that are moved from then on are kept"
"""What follows once a ConfigMap that can't be read is deleted."""

_PATIENCE = 10.0
"""Seconds for one request. No pass waits for it."""


class KeptPods(Struct, frozen=True):
    """Moved pods in the order of their moments. From `whole_from` on (UTC) none is missing."""

    whole_from: datetime
    pods: tuple[MovedPod, ...] = ()

    def with_pods(self, pods: Iterable[MovedPod], since: datetime) -> KeptPods:
        """Return it with these pods, each once, and without those from before `since` (UTC)."""
        every = {(pod.uid, pod.at): pod for pod in (*self.pods, *pods)}
        kept = sorted((pod for pod in every.values() if pod.at >= since), key=lambda pod: pod.at)
        return KeptPods(max(self.whole_from, since), tuple(kept))


def packed(kept: KeptPods) -> dict[str, str]:
    """Return the data of the ConfigMap; above the limits the oldest lines are left out."""
    lines = [
        json.dumps(to_fields(pod), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        for pod in kept.pods
    ]
    first = 0
    while True:
        text = b"\n".join(lines[first:])
        compressed = base64.b64encode(gzip.compress(text, mtime=0))
        worst = max(len(compressed) / LARGEST, len(text) / LARGEST_LINES)
        if worst <= 1:
            break
        # A little more than what is too much, so that this ends soon.
        first += max(int((len(lines) - first) * (1 - 0.95 / worst)), 1)
    # The last one that is left out was moved at this moment, and perhaps others with it.
    whole = shifted(kept.pods[first - 1].at, timedelta(seconds=1)) if first else kept.whole_from
    return {LINES: compressed.decode(), WHOLE_FROM: to_text(max(whole, kept.whole_from))}


def unpacked(data: Mapping[str, str]) -> KeptPods:
    """Return what the data of the ConfigMap says; raises ValueError if it can't be read."""
    try:
        compressed = base64.b64decode(data[LINES], validate=True)
        text = zlib.decompressobj(wbits=31).decompress(compressed, LARGEST_LINES + 1)
    except KeyError as error:
        raise ValueError(f"it has no key {LINES}") from error
    except (ValueError, zlib.error) as error:
        raise ValueError(f"its {LINES} can't be read: {limits.text(str(error), 100)}") from error
    if len(text) > LARGEST_LINES:
        raise ValueError(f"its {LINES} are more than {LARGEST_LINES} bytes")
    try:
        pods = [from_fields(msgspec.json.decode(line)) for line in text.splitlines() if line]
        whole_from = from_text(data.get(WHOLE_FROM, ""))
    except (ValueError, msgspec.DecodeError) as error:
        raise ValueError(f"a line of it can't be read: {limits.text(str(error), 100)}") from error
    return KeptPods(whole_from, tuple(sorted(pods, key=lambda pod: pod.at)))


class KeptInCluster:
    """The ConfigMap of moved pods in a namespace; for one thread."""

    def __init__(self, connection: Connection, namespace: str, guard: Guard | None = None) -> None:
        """Use this connection; `guard` raises LockLost if the lock is not ours. Without one it only reads."""
        self._connection, self._guard = connection, guard or read_only
        self._place = core(namespace) / "configmaps"
        self.name = f"{namespace}/{NAME}"
        self._version = ""

    def read(self) -> KeptPods | None:
        """Return what is kept, None if nothing is.

        Raises ClusterError, and ValueError if it can't be read.
        """
        found = objects.find(self._connection, self._place / NAME, objects.ConfigMap, patience=_PATIENCE)
        self._version = found.metadata.resourceVersion if found is not None else ""
        return unpacked(found.data or {}) if found is not None else None

    def write(self, kept: KeptPods) -> None:
        """Write it over what was read last; raises LockLost and ClusterError.

        If somebody else has changed it since, that is a Conflict.
        """
        self._guard()
        data = packed(kept)
        if self._version:
            body = {"metadata": {"resourceVersion": self._version}, "data": data}
            place = self._place / NAME
            answer = self._send(Request("PATCH", place, body=body, content_type=MERGE_PATCH))
        else:
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data}
            answer = self._send(Request("POST", self._place, body=made))
        self._version = msgspec.json.decode(answer, type=objects.OnlyMetadata).metadata.resourceVersion

    def _send(self, request: Request) -> bytes:
        return self._connection.send(
            msgspec.structs.replace(request, read_timeout=_PATIENCE, total=_PATIENCE)
        )
