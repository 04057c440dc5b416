"""Bare loops that do nothing but drain or cordon, to compare with: they know no timeout and no retry."""

from __future__ import annotations

import json
import threading
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import urllib3

from tests.support.controlplane.api import Api, ApiError, path_of
from tests.support.controlplane.server import ControlPlane

Changed = dict[str, dict[str, dict[str, str]]]
"""A watch event. Only what the loops read of it is here."""

METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
FLOOR = "bench-floor"
LOOP = "bench-loop"
PATIENCE = 600.0
"""Seconds."""


def loop(plane: ControlPlane, nodes: list[str]) -> None:
    """Evict one pod per budget at a time, the next one as soon as the budget allows it."""
    with Api(plane.kubeconfig, user_agent=LOOP, connections=60) as api:
        _OneByOne(api, nodes).drain()


def floor(plane: ControlPlane, nodes: list[str]) -> None:
    """All evictions at once, a refused one again when its budget allows one; then until all are gone."""
    with Api(plane.kubeconfig, user_agent=FLOOR, connections=60) as api:
        _AllAtOnce(api, nodes).drain()


def cordon(plane: ControlPlane, nodes: Iterable[str], writers: int) -> None:
    """Cordon the nodes, so many at a time."""
    with Api(plane.kubeconfig, user_agent=LOOP, connections=writers) as api:
        # The answer would be the whole node.
        brief = {"Content-Type": "application/merge-patch+json", "Accept": METADATA}

        def one(node: str) -> None:
            api.request("PATCH", path_of("nodes", node), {"spec": {"unschedulable": True}}, headers=brief)

        with ThreadPoolExecutor(writers) as threads:
            list(threads.map(one, nodes))


def evict(plane: ControlPlane, pods: Iterable[str], writers: int) -> None:
    """Evict pods that no budget protects, so many at a time."""
    with (
        Api(plane.kubeconfig, user_agent=LOOP, connections=writers) as api,
        ThreadPoolExecutor(writers) as threads,
    ):
        list(threads.map(api.evict, pods))


class _Bare:
    """The pods that are left on the nodes, those that wait for their budget, and what the budgets allow."""

    def __init__(self, api: Api, nodes: list[str]) -> None:
        self.api, self.nodes = api, nodes
        self.left: dict[str, str] = {}
        for node in nodes:
            for pod in api.list("pods", fields=f"spec.nodeName={node}"):
                self.left[pod["metadata"]["name"]] = pod["metadata"]["labels"]["app"]
        self.waiting: dict[str, list[str]] = defaultdict(list)
        self.allows: dict[str, int] = defaultdict(int)
        self.changed = threading.Condition()
        self.threads = ThreadPoolExecutor(50)

    def begin(self) -> None:
        """Do what waits for no budget, once changes are watched."""

    @abstractmethod
    def go_on(self, app: str) -> None:
        """Evict what the budget allows now."""

    def drain(self) -> None:
        """Evict the pods, and return when all are gone."""
        over = threading.Event()
        watches = [PlainWatch(self.api, "apis/policy/v1/poddisruptionbudgets", self._on_budget, over)]
        watches += [
            PlainWatch(self.api, f"api/v1/pods?fieldSelector=spec.nodeName%3D{node}", self._on_pod, over)
            for node in self.nodes
        ]
        self.begin()
        with self.changed:
            assert self.changed.wait_for(lambda: not self.left, PATIENCE)
        over.set()
        for watch in watches:
            watch.close()
        self.threads.shutdown()

    def evicted(self, app: str, pod: str) -> bool:
        """Evict a pod, and return whether it goes; a refused one waits for its budget."""
        try:
            self.api.evict(pod)
        except ApiError as error:
            if error.status not in (404, 429):
                raise
            if error.status == 429:
                with self.changed:
                    self.waiting[app].append(pod)
                return False
        return True

    def _on_budget(self, event: Changed) -> None:
        app = event["object"]["metadata"]["name"]
        with self.changed:
            self.allows[app] = int(event["object"].get("status", {}).get("disruptionsAllowed", 0))
        self.go_on(app)

    def _on_pod(self, event: Changed) -> None:
        if str(event["type"]) == "DELETED":
            with self.changed:
                self.left.pop(event["object"]["metadata"]["name"], None)
                self.changed.notify_all()


class _OneByOne(_Bare):
    def __init__(self, api: Api, nodes: list[str]) -> None:
        super().__init__(api, nodes)
        self.busy: set[str] = set()
        for pod, app in self.left.items():
            self.waiting[app].append(pod)

    def go_on(self, app: str) -> None:
        with self.changed:
            if app in self.busy or self.allows[app] <= 0 or not self.waiting[app]:
                return
            self.busy.add(app)
            self.allows[app] -= 1
            pod = self.waiting[app].pop()
        self.threads.submit(self._evict, app, pod)

    def _evict(self, app: str, pod: str) -> None:
        self.evicted(app, pod)
        with self.changed:
            self.busy.discard(app)
        self.go_on(app)


class _AllAtOnce(_Bare):
    def begin(self) -> None:
        for pod, app in list(self.left.items()):
            self.threads.submit(self._evict, app, pod)

    def go_on(self, app: str) -> None:
        with self.changed:
            waiting = self.waiting[app]
            now = [waiting.pop() for _ in range(min(self.allows[app], len(waiting)))]
            self.allows[app] -= len(now)
        for pod in now:
            self.threads.submit(self._evict, app, pod)

    def _evict(self, app: str, pod: str) -> None:
        if not self.evicted(app, pod):
            self.go_on(app)


class PlainWatch:
    """A watch that first reports what is there.

    The API server ends a watch that is read too slowly; it then goes on after the last event.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        on_event: Callable[[Changed], None],
        over: threading.Event,
        accept: str = "application/json",
    ) -> None:
        self._api, self._path, self._accept = api, path, accept
        self._over = over
        self._on_event = on_event
        self._version = ""
        self._response = self._begin()
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def close(self) -> None:
        """Leave it, once it is over."""
        # The server may have ended it just now.
        with suppress(OSError):
            self._response.shutdown()
        self._thread.join()
        self._response.close()

    def _begin(self) -> urllib3.BaseHTTPResponse:
        joint = "&" if "?" in self._path else "?"
        after = f"&resourceVersion={self._version}" if self._version else ""
        return self._api.pool.request(
            "GET",
            f"{self._api.url}/{self._path}{joint}watch=true{after}",
            headers={**self._api.pool.headers, "Accept": self._accept},
            preload_content=False,
            timeout=urllib3.Timeout(PATIENCE),
        )

    def _follow(self) -> None:
        try:
            while not self._over.is_set():
                self._read()
                if not self._over.is_set():
                    self._response = self._begin()
        except urllib3.exceptions.HTTPError:
            if not self._over.is_set():
                raise

    def _read(self) -> None:
        rest = b""
        while chunk := self._response.read1(1 << 16):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines if not self._over.is_set() else ():
                event = json.loads(line)
                self._on_event(event)
                self._version = event["object"]["metadata"]["resourceVersion"]
