"""Fetches the page from a Pod of `serve` by `kubectl port-forward`, and from another once that is gone."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock

import msgspec
import urllib3

from jobs.runtime.environment import Target
from jobs.runtime.health import Document
from reconciler.kubernetes.connection import Connection, Request, core
from reconciler.kubernetes.wire.shapes import ObjectMeta, Page, decode
from reconciler.model.errors import ClusterError, ReconcilerError
from reconciler.threads import start

SERVES = "app.kubernetes.io/name=node-maintenance-reconciler,app.kubernetes.io/component=serve"
"""The labels of the Pods of `serve`, in the manifests and in the chart."""

PATIENCE = 20.0
"""Seconds in which kubectl must forward, and a Pod must answer."""

_FORWARDS = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ->")

_OF_THE_TRANSFER = ("connection", "content-length", "content-type", "transfer-encoding")
"""Headers that the answer to the browser has of its own. All others are passed on."""


class _Port(msgspec.Struct):
    name: str = ""
    containerPort: int = 0  # noqa: N815 - as in the API


class _Container(msgspec.Struct):
    ports: list[_Port] = []


class _Spec(msgspec.Struct):
    containers: list[_Container] = []


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class Replica(msgspec.Struct, frozen=True):
    """A Pod that is ready, and the port of its page."""

    name: str
    port: int


def replicas(connection: Connection, namespace: str) -> tuple[Replica, ...]:
    """Return the Pods of `serve` that are ready, by name; raises ClusterError."""
    request = Request("GET", core(namespace) / "pods", query={"labelSelector": SERVES})
    ready = []
    for pod in decode(Page[_Pod], connection.send(request)).items or ():
        ports = (port for container in pod.spec.containers for port in container.ports if port.name == "http")
        port = next(ports, None)
        is_ready = any(
            condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions
        )
        if port is not None and is_ready and pod.metadata.deletionTimestamp is None:
            ready.append(Replica(pod.metadata.name, port.containerPort))
    return tuple(sorted(ready, key=lambda replica: replica.name))


class _Forward:
    """One run of `kubectl port-forward`, to one Pod."""

    def __init__(self, kubectl: str, target: Target, replica: Replica) -> None:
        """Begin to forward, and wait until that is so; raises ClusterError."""
        where = ["--namespace", target.namespace]
        where += ["--kubeconfig", target.kubeconfig] if target.kubeconfig else []
        where += ["--context", target.context] if target.context else []
        what = ["port-forward", f"pod/{replica.name}", f":{replica.port}", "--address", "127.0.0.1"]
        self.replica = replica
        self._process = subprocess.Popen(
            [kubectl, *where, *what], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        said: SimpleQueue[str] = SimpleQueue()
        start("kubectl", lambda: _read(self._process, said))
        lines: list[str] = []
        with suppress(Empty):
            while line := said.get(timeout=PATIENCE):
                lines.append(line.strip())
                if (forwards := _FORWARDS.search(line)) is not None:
                    self.port = int(forwards[1])
                    return
        self.close()
        because = "; ".join(lines) or "it says nothing"
        raise ClusterError(f"kubectl does not forward to Pod {replica.name}: {because}")

    @property
    def goes_on(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)


def _read(process: subprocess.Popen[str], said: SimpleQueue[str]) -> None:
    """Read what kubectl prints, also later: it would else wait for a reader. An empty line is the end."""
    for line in process.stdout or ():
        said.put(line)
    said.put("")


class ForwardedPage:
    """The page of one of the Pods, whichever answers."""

    def __init__(
        self,
        kubectl: str,
        target: Target,
        find: Callable[[], tuple[Replica, ...]],
        say: Callable[[str], object],
    ) -> None:
        """`find` returns the Pods that are ready, the first one first; it may raise ClusterError."""
        self._kubectl, self._target, self._find, self._say = kubectl, target, find, say
        self._forward: _Forward | None = None
        # The Pod that did not answer last. It may still be listed as ready.
        self._gone = ""
        self._lock = Lock()

    def close(self) -> None:
        """End kubectl."""
        if self._forward is not None:
            self._forward.close()

    def connect(self) -> str:
        """Forward to a Pod, unless that goes on, and return its name; raises ClusterError."""
        with self._lock:
            return self._connected().replica.name

    def document(self, query: str) -> Document:
        """Return the page, or why there is none now."""
        problem = ""
        with self._lock:
            # After a Pod has ended, kubectl says so with the next connection only.
            for _ in range(2):
                try:
                    url = f"http://127.0.0.1:{self._connected().port}/?{query}"
                    answer = urllib3.request("GET", url, retries=False, timeout=PATIENCE)
                    headers = tuple(
                        (name, value)
                        for name, value in answer.headers.items()
                        if name.lower() not in _OF_THE_TRANSFER
                    )
                    kind = answer.headers.get("Content-Type", "text/plain; charset=utf-8")
                    return Document(kind, answer.data, headers, f"{answer.status} {answer.reason}")
                except (ReconcilerError, urllib3.exceptions.HTTPError) as error:
                    problem = str(error)
                    if self._forward is not None:
                        self._gone = self._forward.replica.name
                        self._forward.close()
                        self._forward = None
        text = f"No Pod of the reconciler answers now; this page tries again by itself.\n{problem}\n"
        again = (("Refresh", "5"), ("Cache-Control", "no-store"))
        return Document("text/plain; charset=utf-8", text.encode(), again, "503 Service Unavailable")

    def _connected(self) -> _Forward:
        if self._forward is not None and self._forward.goes_on:
            return self._forward
        if self._forward is not None:
            self._gone = self._forward.replica.name
        ready = self._find()
        if not ready:
            raise ClusterError(
                f"no Pod of the reconciler is ready in namespace {self._target.namespace}: kubectl get pods "
                f"-n {self._target.namespace} -l {SERVES} shows them"
            )
        others = [replica for replica in ready if replica.name != self._gone]
        replica = (others or ready)[0]
        self._forward = _Forward(self._kubectl, self._target, replica)
        self._say(f"The page is that of Pod {replica.name}.")
        return self._forward
