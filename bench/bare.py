"""Bare loops that do nothing but drain, to compare a drainer with: they know no timeout, cordon or retry."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import urllib3

from tests.support.controlplane.api import Api, ApiError
from tests.support.controlplane.server import ControlPlane

Changed = dict[str, dict[str, dict[str, str]]]
"""A watch event. Only what the loops read of it is here."""

FLOOR = "bench-floor"
LOOP = "bench-loop"
PATIENCE = 600.0
"""Seconds."""


def loop(plane: ControlPlane, nodes: list[str]) -> None:
    """Evict one pod per budget at a time, the next one as soon as the budget allows it."""
    with Api(plane.kubeconfig, user_agent=LOOP, connections=60) as api:
        left: set[str] = set()
        queued: dict[str, list[str]] = defaultdict(list)
        for node in nodes:
            for pod in api.list("pods", fields=f"spec.nodeName={node}"):
                left.add(pod["metadata"]["name"])
                queued[pod["metadata"]["labels"]["app"]].append(pod["metadata"]["name"])
        changed = threading.Condition()
        allows: dict[str, int] = defaultdict(int)
        busy: set[str] = set()
        over = threading.Event()
        threads = ThreadPoolExecutor(50)

        def go_on(app: str) -> None:
            with changed:
                if app in busy or allows[app] <= 0 or not queued[app]:
                    return
                busy.add(app)
                allows[app] -= 1
                pod = queued[app].pop()
            threads.submit(evict, app, pod)

        def evict(app: str, pod: str) -> None:
            try:
                api.evict(pod)
            except ApiError as error:
                if error.status not in (404, 429):
                    raise
                if error.status == 429:
                    with changed:
                        queued[app].append(pod)
            with changed:
                busy.discard(app)
            go_on(app)

        def on_budget(event: Changed) -> None:
            app = event["object"]["metadata"]["name"]
            with changed:
                allows[app] = int(event["object"].get("status", {}).get("disruptionsAllowed", 0))
            go_on(app)

        def on_pod(event: Changed) -> None:
            if str(event["type"]) == "DELETED":
                with changed:
                    left.discard(event["object"]["metadata"]["name"])
                    changed.notify_all()

        watches = [PlainWatch(api, "apis/policy/v1/poddisruptionbudgets", on_budget, over)]
        watches += [
            PlainWatch(api, f"api/v1/pods?fieldSelector=spec.nodeName%3D{node}", on_pod, over)
            for node in nodes
        ]
        with changed:
            assert changed.wait_for(lambda: not left, PATIENCE)
        over.set()
        for watch in watches:
            watch.close()
        threads.shutdown()


def floor(plane: ControlPlane, nodes: list[str]) -> None:
    """All evictions at once, a refused one again when its budget allows one; then until all are gone."""
    with Api(plane.kubeconfig, user_agent=FLOOR, connections=60) as api:
        left: dict[str, str] = {}
        for node in nodes:
            for pod in api.list("pods", fields=f"spec.nodeName={node}"):
                left[pod["metadata"]["name"]] = pod["metadata"]["labels"]["app"]
        changed = threading.Condition()
        refused: dict[str, set[str]] = defaultdict(set)
        allows: dict[str, int] = defaultdict(int)
        over = threading.Event()
        threads = ThreadPoolExecutor(50)

        def evict(name: str) -> None:
            try:
                api.evict(name)
            except ApiError as error:
                if error.status == 404:
                    return
                if error.status != 429:
                    raise
                with changed:
                    app = left[name]
                    refused[app].add(name)
                again(app)

        def on_budget(event: Changed) -> None:
            app = event["object"]["metadata"]["name"]
            allows[app] = int(event["object"].get("status", {}).get("disruptionsAllowed", 0))
            again(app)

        def again(app: str) -> None:
            with changed:
                waiting = refused[app]
                now = [waiting.pop() for _ in range(min(allows[app], len(waiting)))]
                allows[app] -= len(now)
            for pod in now:
                threads.submit(evict, pod)

        def on_pod(event: Changed) -> None:
            if str(event["type"]) == "DELETED":
                with changed:
                    left.pop(event["object"]["metadata"]["name"], None)
                    changed.notify_all()

        names = list(left)
        watches = [PlainWatch(api, "apis/policy/v1/poddisruptionbudgets", on_budget, over)]
        watches += [
            PlainWatch(api, f"api/v1/pods?fieldSelector=spec.nodeName%3D{node}", on_pod, over)
            for node in nodes
        ]
        for name in names:
            threads.submit(evict, name)
        with changed:
            assert changed.wait_for(lambda: not left, PATIENCE)
        over.set()
        for watch in watches:
            watch.close()
        threads.shutdown()


class PlainWatch:
    """A watch that first reports what is there."""

    def __init__(
        self,
        api: Api,
        path: str,
        on_event: Callable[[Changed], None],
        over: threading.Event,
    ) -> None:
        joint = "&" if "?" in path else "?"
        self._over = over
        self._on_event = on_event
        self._response = api._pool.request(
            "GET",
            f"{api.url}/{path}{joint}watch=true",
            preload_content=False,
            timeout=urllib3.Timeout(PATIENCE),
        )
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def close(self) -> None:
        """Leave it."""
        self._response.shutdown()
        self._thread.join()
        self._response.close()

    def _follow(self) -> None:
        rest = b""
        try:
            while chunk := self._response.read1(1 << 16):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._on_event(json.loads(line))
        except urllib3.exceptions.HTTPError:
            if not self._over.is_set():
                raise
