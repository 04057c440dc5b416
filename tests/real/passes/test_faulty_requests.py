"""A cordon waits for no request but those of nodes and the ledger, whatever becomes of all others."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import budget
from tests.support.fakes.proxy import Proxy

pytestmark = pytest.mark.slow

SOON = 5.0
"""Seconds in which each notice is cordoned."""

NOTICES = 3

SETTINGS = """
mode: Enforce
budget: {maxUnavailable: 100%}
publish: [node-conditions, nodemaintenances]
drain:
  rules:
  - {name: kept, namespaces: {matchLabels: {keep: "yes"}}, behavior: Skip}
"""

KINDS = {
    "the agents": "GET .*/daemonsets",
    "pods": "GET .*/pods",
    "budgets": "GET .*/poddisruptionbudgets",
    "namespaces": "GET /api/v1/namespaces($|[?])",
    "the ledger": "GET .*/configmaps/node-maintenance-ledger",
    "writes of the ledger": "(POST|PATCH) .*/configmaps",
    "Events": "POST .*/events",
    "conditions": "PATCH .*/nodes/.*/status",
    "NodeMaintenances": ".* /apis/node-maintenance.dev/",
    "evictions": "POST .*/eviction",
    "volumes": "GET .*/volumeattachments",
}
"""What has a fault, as a pattern of method and path."""

ASKED = {"the agents", "pods", "budgets", "namespaces", "the ledger", "Events", "conditions"}
"""What this process asks for again within some seconds."""


def silent(over: threading.Event) -> Iterator[bytes]:
    """Send nothing until the fault is over."""
    over.wait()
    yield b""


def a_byte_a_second(over: threading.Event) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n"
    while not over.wait(1):
        yield b" "


def status(line: str) -> Callable[[threading.Event], Iterator[bytes]]:
    def answer(_: threading.Event) -> Iterator[bytes]:
        yield f"HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()

    return answer


FAULTS = {
    "silent": silent,
    "a byte a second": a_byte_a_second,
    "429": status("429 Too Many Requests\r\nRetry-After: 1"),
    "500": status("500 Internal Server Error"),
}


Fault = Callable[[threading.Event], Iterator[bytes]]


class _Faults:
    """The fault of one kind of request, from `begin` to `end`; `met` counts the requests that had it."""

    def __init__(self) -> None:
        self._pattern = re.compile("no request")
        self._answer: Fault = silent
        self.over, self.met = threading.Event(), 0

    def begin(self, pattern: str, answer: Fault) -> None:
        self._answer, self.over, self.met = answer, threading.Event(), 0
        self._pattern = re.compile(pattern)

    def end(self) -> None:
        self._pattern = re.compile("no request")
        self.over.set()

    def instead(self, method: str, path: str) -> Iterator[bytes] | None:
        if not self._pattern.match(f"{method} {path}"):
            return None
        self.met += 1
        return self._answer(self.over)


@pytest.mark.parametrize("fault", FAULTS)
def test_each_of_three_notices_is_cordoned_soon_whatever_other_request_fails(
    scene: Scene, programs: Programs, tmp_path: Path, fault: str
) -> None:
    programs.configure(SETTINGS)
    # Its drain is blocked, so each pass reads its pods and the budgets.
    blocked = scene.node(0)
    scene.workload("web", blocked)
    scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=0))
    nodes = iter([scene.node(1 + number) for number in range(NOTICES * len(KINDS))])
    faults, slow = _Faults(), {}
    with Proxy(programs.kubeconfig) as proxy:
        proxy.instead = faults.instead
        serving = programs.start(
            "serve", "--every", "5s", kubeconfig=proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig")
        )
        serving.wait_for("leading")
        scene.condition_tells(blocked)
        wait_for("the first cordon", lambda: scene.cordoned(blocked), seconds=60)
        for kind, pattern in KINDS.items():
            faults.begin(pattern, FAULTS[fault])
            took = []
            for _ in range(NOTICES):
                node, began = next(nodes), time.monotonic()
                scene.condition_tells(node, kind="Preempt", minutes=0.5)
                wait_for(f"a cordon without {kind}", partial(scene.cordoned, node), seconds=60)
                took.append(round(time.monotonic() - began, 1))
                if kind in ASKED:
                    wait_for(f"a request: {kind}", lambda: faults.met, seconds=40)
            faults.end()
            if max(took) > SOON:
                slow[kind] = took
        assert serving.said("pass failed") == []
    assert slow == {}
