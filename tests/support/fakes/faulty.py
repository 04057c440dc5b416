"""What becomes of one kind of request on its way: no answer, a byte a second, 429, 500."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator

Answer = Callable[[threading.Event], Iterator[bytes]]
"""The parts of an answer; the event says that the fault is over."""

BESIDE = {
    "DaemonSets": "GET .*/daemonsets",
    "pods": "GET .*/pods",
    "PodDisruptionBudgets": "GET .*/poddisruptionbudgets",
    "namespaces": "GET /api/v1/namespaces($|[?])",
    "writes of the ledger": "(POST|PUT|PATCH) .*/configmaps",
    "Events": "(GET|POST|PATCH) .*/events",
    "conditions of nodes": "PATCH .*/nodes/.*/status",
    "evictions": "POST .*/eviction",
}
"""Requests that no cordon waits for, as patterns of method and path."""

NEEDED = {
    "the ledger": "GET .*/configmaps/node-maintenance-ledger",
    "lists of nodes": "GET /api/v1/nodes($|[?](?!.*watch=))",
    "watches of nodes": "GET /api/v1/nodes[?].*watch=",
    "single nodes": "GET /api/v1/nodes/[^/]+$",
    "writes of nodes": "PATCH /api/v1/nodes/[^/]+$",
    "the lock": ".* /apis/coordination.k8s.io/v1/namespaces/.*/leases",
    "everything": "",
}
"""Requests without which there may be no cordon."""


def silent(over: threading.Event) -> Iterator[bytes]:
    """Send nothing."""
    over.wait()
    yield b""


def slow(over: threading.Event) -> Iterator[bytes]:
    """Send a byte a second."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n"
    while not over.wait(1):
        yield b" "


def refused(status: str) -> Answer:
    """Refuse at once."""

    def answer(_: threading.Event) -> Iterator[bytes]:
        yield f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()

    return answer


ANSWERS: dict[str, Answer] = {
    "silent": silent,
    "a byte a second": slow,
    "429": refused("429 Too Many Requests\r\nRetry-After: 1"),
    "500": refused("500 Internal Server Error"),
}


class Faulty:
    """The fault of one kind of request, from `begin` to `end`; `met` counts the requests that had it."""

    def __init__(self) -> None:
        """Begin without one."""
        self._answer: Answer | None = None
        self._pattern = re.compile("")
        self._over = threading.Event()
        self.met = 0

    def begin(self, pattern: str, answer: Answer) -> None:
        """Answer requests of this kind so."""
        self._over, self.met = threading.Event(), 0
        self._pattern, self._answer = re.compile(pattern), answer

    def end(self) -> None:
        """Answer them as the server does."""
        self._answer = None
        self._over.set()

    def instead(self, method: str, path: str) -> Iterator[bytes] | None:
        """See Proxy."""
        answer = self._answer
        if answer is None or not self._pattern.match(f"{method} {path}"):
            return None
        self.met += 1
        return answer(self._over)
