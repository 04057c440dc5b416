"""A server of more nodes than an API server on this machine holds: it makes them up while it sends them.

    python -m tests.bench.scale.many --nodes 100000

It prints its address, and answers what `serve` asks: pages and a watch of nodes, other lists without items,
objects that it keeps as they are written. `POST /change` reports a notice of one node, and answers after how
many seconds the patch of its cordon came.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import parse_qs, urlsplit

from reconciler.kubernetes.wire import protobuf
from tests.support import shapes
from tests.support.controlplane.fill import Pool, vm_event
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.loopback import Loopback
from tests.support.patches import patched

Object = dict[str, Any]

_POOL = Pool("np")
_FIRST = 100_000
"""The number of the first node's VM: all have six digits."""

_VERSION = 1_000_000
"""That of the first node; all have seven digits."""

_PADDING = 12_000
"""Bytes for what is not read of a node, above all its images: with the rest, 15 KB as on AKS."""

_ITEM, _STATUS, _IMAGES = 2, 3, 8
"""Numbers of fields: of a list's items, of a node's status, of its images."""

_CORE = {"nodes": "Node", "pods": "Pod", "poddisruptionbudgets": "PodDisruptionBudget"}


class Nodes:
    """Nodes that are alike but for name, UID, VM and version; those that have changed are kept."""

    def __init__(self, count: int, padding: int = _PADDING) -> None:
        self.count = count
        self._padding = shapes.field(_STATUS, shapes.field(_IMAGES, b"x" * padding))
        self._changed: dict[int, Object] = {}
        self.version = 2 * _VERSION

    def page(self, start: int, limit: int) -> tuple[bytes, int]:
        """Return the encoded list of so many nodes, and where the next one starts, 0 for nowhere."""
        end = min(start + limit, self.count) if limit else self.count
        following = end if end < self.count else 0
        token = str(following) if following else ""
        meta = protobuf.ListMeta(resourceVersion=str(self.version), **{"continue": token})
        parts = [shapes.field(1, meta.SerializeToString())]
        parts += [shapes.field(_ITEM, self.encoded(number)) for number in range(start, end)]
        return shapes.envelope("NodeList", b"".join(parts)), following

    def encoded(self, number: int) -> bytes:
        """Return a node as protobuf."""
        if number in self._changed:
            return shapes.encoded(protobuf.Node(), self._changed[number]) + self._padding
        template = _template(number % 3)
        for there, here in zip(_words(number % 3), _words(number), strict=True):
            template = template.replace(there, here)
        return template + self._padding

    def event(self, kind: str, number: int) -> bytes:
        """Return an event of a watch about a node, with its length before it."""
        event = protobuf.WatchEvent(type=kind)
        event.object.raw = shapes.envelope("Node", self.encoded(number))
        frame: bytes = event.SerializeToString()
        return len(frame).to_bytes(4, "big") + frame

    def change(self, number: int, patch: object) -> Object:
        """Apply a patch to a node, and return it."""
        self.version += 1
        self._changed[number] = after = patched(self._changed.get(number) or _document(number), patch)
        self._changed[number]["metadata"]["resourceVersion"] = str(self.version)
        return after

    def number(self, name: str) -> int:
        """Return the number of the node of this name."""
        return int(name.removeprefix(_POOL.scale_set), 36) - _FIRST


def _document(number: int) -> Object:
    made = _POOL.node(_FIRST + number, images=0)
    made["metadata"] |= {
        "uid": f"00000000-0000-4000-8000-{number:012}",
        "resourceVersion": str(_VERSION + number),
    }
    made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return made


def _words(number: int) -> tuple[bytes, ...]:
    """Return what a node has of its own, always of the same length."""
    own = (_POOL.node_name(_FIRST + number), f"machines/{_FIRST + number}", f"8000-{number:012}")
    return tuple(word.encode() for word in (*own, f"{_VERSION + number}"))


@cache
def _template(number: int) -> bytes:
    return shapes.encoded(protobuf.Node(), _document(number))


class Many(Loopback):
    """The server. Everything but nodes is kept by its path, as it was written."""

    def __init__(self, count: int) -> None:
        self.nodes = Nodes(count)
        self.kept: dict[str, Object] = {}
        self.watches: list[SimpleQueue[bytes]] = []
        self.patched: dict[int, threading.Event] = {}
        self._next = 0
        super().__init__(type("Handler", (_Handler,), {"many": self}))

    def tell(self, number: int) -> None:
        """Send the node as it is now to all watches."""
        for watch in self.watches:
            watch.put(self.nodes.event("MODIFIED", number))

    def change(self) -> float:
        """Report a notice of the next node; return after how many seconds its patch came."""
        wait_for("watch of nodes", lambda: self.watches)
        self._next += 1
        number = self._next * 1009 % self.nodes.count
        self.patched[number] = came = threading.Event()
        notice = vm_event("Reboot", datetime.now(UTC) + timedelta(hours=4))
        self.nodes.change(number, {"status": {"conditions": [notice, *_healthy()]}})
        began = time.monotonic()
        self.tell(number)
        assert came.wait(600), "no patch"
        return time.monotonic() - began


def _healthy() -> list[Object]:
    conditions: list[Object] = _document(0)["status"]["conditions"]
    return [each for each in conditions if each["type"] != "VMEventScheduled"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    many: Many

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        *_, before, last = url.path.split("/")
        if "watch" in query:
            self._watch(last)
        elif last == "nodes" and self.headers["Accept"] != _PROTOBUF:
            # Of metadata alone, to count them.
            more = {"resourceVersion": "1", "remainingItemCount": self.many.nodes.count - 1}
            self._json({"metadata": more, "items": [{}]})
        elif last == "nodes":
            body, _ = self.many.nodes.page(int(query.get("continue", 0)), int(query.get("limit", 0)))
            self._send(body, of_core=True)
        elif before == "nodes":
            self._node(self.many.nodes.number(last))
        elif url.path in self.many.kept:
            self._json(self.many.kept[url.path])
        elif last in _CORE:
            self._send(shapes.as_protobuf(f"{_CORE[last]}List", []), of_core=True)
        elif "labelSelector" in query or "limit" in query:
            self._json({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})
        else:
            self._json({"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": last}}, 404)

    def do_POST(self) -> None:
        body = self._body()
        if self.path == "/change":
            self._json({"seconds": self.many.change()})
            return
        body.setdefault("metadata", {}).setdefault("resourceVersion", "1")
        self.many.kept[f"{urlsplit(self.path).path}/{body['metadata'].get('name')}"] = body
        self._json(body, 201)

    def do_PUT(self) -> None:
        self.many.kept[urlsplit(self.path).path] = body = self._body()
        self._json(body)

    def do_PATCH(self) -> None:
        body, path = self._body(), urlsplit(self.path).path
        *_, before, last = path.split("/")
        if before != "nodes":
            self.many.kept[path] = patched(self.many.kept.get(path, {}), body)
            self._json(self.many.kept[path])
            return
        number = self.many.nodes.number(last)
        after = self.many.nodes.change(number, body)
        if after["spec"].get("unschedulable") and number in self.many.patched:
            self.many.patched[number].set()
        self._node(number)
        self.many.tell(number)

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")

    def _node(self, number: int) -> None:
        self._send(shapes.envelope("Node", self.many.nodes.encoded(number)), of_core=True)

    def _json(self, document: Object, status: int = 200) -> None:
        self._send(json.dumps(document).encode(), status)

    def _send(self, body: bytes, status: int = 200, *, of_core: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", _PROTOBUF if of_core else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _watch(self, what: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", _PROTOBUF if what in _CORE else "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        changes: SimpleQueue[bytes] = SimpleQueue()
        if what == "nodes":
            self.many.watches.append(changes)
        while not self.many.stopping.is_set():
            try:
                frame = changes.get(timeout=30)
            except Empty:
                frame = self.many.nodes.event("BOOKMARK", 0)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(frame), frame))


_PROTOBUF = "application/vnd.kubernetes.protobuf"


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale.many", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    with Many(parser.parse_args().nodes) as many:
        print(many.address, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
