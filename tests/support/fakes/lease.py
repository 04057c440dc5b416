"""An API server that has one Lease, and a clock that stands until a test moves it."""

from __future__ import annotations

import threading
from typing import Any, cast

import msgspec

from reconciler.kubernetes.connection import Connection, Request
from reconciler.model.errors import Conflict, NotFound, Rejected

Object = dict[str, Any]


class LeaseServer:
    """Answers the requests of a lock as the API server does."""

    def __init__(self) -> None:
        """Start without a Lease, at second 100."""
        self.now = 100.0
        self.lease: Object | None = None
        self.version = 0
        self._lock = threading.Lock()

    @property
    def connection(self) -> Connection:
        """What a lock sends its requests with."""
        return cast("Connection", self)

    @property
    def spec(self) -> Object:
        """The spec of the Lease."""
        assert self.lease is not None
        found: Object = self.lease["spec"]
        return found

    def clock(self) -> float:
        """Return the seconds of all clocks."""
        return self.now

    def change(self, spec: Object, annotations: dict[str, str] | None = None) -> None:
        """Let others write these fields of the Lease, if there is one."""
        with self._lock:
            if self.lease is not None:
                self.lease["spec"] |= spec
                self.lease["metadata"].setdefault("annotations", {}).update(annotations or {})
                self._written()

    def sleep(self, seconds: float) -> None:
        """Wait by the clock of this server."""
        self.now += seconds

    def send(self, request: Request) -> bytes:
        """See Connection."""
        with self._lock:
            if request.method == "POST":
                if self.lease is not None:
                    raise Conflict("POST: 409", status=409)
                self.lease = msgspec.json.decode(msgspec.json.encode(request.body))
                self.lease["metadata"] |= {"uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"}
                self._written()
            elif self.lease is None:
                raise NotFound(f"{request.method}: 404", status=404)
            elif request.method == "PATCH":
                changes: list[Object] = msgspec.json.decode(msgspec.json.encode(request.body))
                self.lease = self._patched(self.lease, changes)
                self._written()
            return msgspec.json.encode(self.lease)

    def _written(self) -> None:
        assert self.lease is not None
        self.version += 1
        self.lease["metadata"]["resourceVersion"] = str(self.version)

    @staticmethod
    def _patched(lease: Object, changes: list[Object]) -> Object:
        patched: Object = msgspec.json.decode(msgspec.json.encode(lease))
        for change in changes:
            *path, name = change["path"].split("/")[1:]
            place = patched
            for each in path:
                place = place[each]
            if change["op"] != "test":
                place[name] = change["value"]
            elif place.get(name) != change["value"]:
                raise Rejected(f"PATCH: 422 {change['path']} is another", status=422)
        return patched
