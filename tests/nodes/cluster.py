"""A cluster of real nodes, and what scenarios do with it and ask about it."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import urllib3
import yaml

from tests.nodes import network, workloads
from tests.nodes.node import POOL, Node
from tests.nodes.workloads import Life
from tests.support.controlplane.api import Api, ApiError, path_of
from tests.support.controlplane.audit import AuditEntry
from tests.support.controlplane.configuration import IPV4, Family
from tests.support.controlplane.fill import no_vm_event, vm_event
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane

Object = dict[str, Any]
Value = TypeVar("Value")

MANIFESTS = Path(__file__).parents[2] / "k8s"
NAMESPACE = "node-maintenance"
"""Of the reconciler."""

PREFIX = "node-maintenance.dev/"
"""Of the reconciler's labels and annotations."""

_OPTIONAL = {("list", "persistentvolumes")}
"""What the page asks for once, and `k8s/base` leaves to `k8s/report`, see docs/page.md."""

_HEARTBEAT = 20
"""Seconds between two heartbeats of the condition that announces events."""


class Cluster:
    """A control plane and nodes, for as long as the `with` lasts."""

    def __init__(
        self,
        folder: Path,
        programs: Mapping[str, Path],
        image: Path,
        next_image: Path,
        plugin: Path,
        *,
        numbers: Sequence[int] = (1, 2, 3),
        families: Sequence[Family] = (IPV4,),
    ) -> None:
        """Prepare it in a folder of the run.

        Args:
            folder: of this run; its name is that of the run's control group.
            programs: the path of `kubelet`.
            image: the archive of the project's image.
            next_image: that of another version, which the nodes do not have yet.
            plugin: the archive of the plugin for kubectl.
            numbers: those of its nodes.
            families: the addresses in its network, those that it prefers first.
        """
        self.folder = folder
        self.kept = folder / "kept"
        self.next_image = next_image
        self.plugin = plugin
        self._programs, self._image, self._families = programs, image, families
        self._records = folder / "records"
        if not self._records.exists():
            self._records.mkdir()
            # Pods of several users write there.
            self._records.chmod(0o777)
            Path(workloads.RECORDS_ON_NODES).mkdir(parents=True)
            command = ["mount", "--bind", str(self._records), workloads.RECORDS_ON_NODES]
            subprocess.run(command, check=True)
        images = [*workloads.write_images(folder), image]
        self.nodes = [Node(number, folder, programs["kubelet"], images, families) for number in numbers]
        self.controlplane = ControlPlane(nodes=[node.name for node in self.nodes], families=families)
        self._events: dict[str, Object] = {node.name: no_vm_event() for node in self.nodes}
        self._began = datetime.now(UTC)
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def __enter__(self) -> Self:
        network.prepare(self._families)
        self.controlplane.start()
        self.api: Api = self.controlplane.api
        with ThreadPoolExecutor(len(self.nodes)) as threads:
            list(threads.map(self.start, self.nodes))
        wait_for("nodes that are Ready", lambda: all(map(self.ready, self.nodes)), seconds=120)
        self._heart = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._heart.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the control plane; what the nodes leave goes with the namespaces of the run."""
        self._stopped.set()
        self._heart.join(_HEARTBEAT)
        for node in self.nodes:
            with suppress(TimeoutError, subprocess.CalledProcessError):
                node.kill()
        self.controlplane.stop()

    @contextmanager
    def beside(self, families: Sequence[Family]) -> Iterator[Cluster]:
        """Have a cluster of two nodes in another network, beside this one."""
        last = self.nodes[-1].number
        other = Cluster(
            self.folder,
            self._programs,
            self._image,
            self.next_image,
            self.plugin,
            numbers=(last + 1, last + 2),
            families=families,
        )
        other.kept = self.kept
        try:
            with other:
                yield other
        finally:
            # The next one has nodes of the same numbers.
            folders = [str(node.folder) for node in other.nodes]
            subprocess.run(["rm", "-rf", "--one-file-system", *folders], check=False)

    # Nodes.

    def start(self, node: Node) -> None:
        """Boot a node that has no power."""
        node.start(self.controlplane.kubeconfig_of(node.name))

    def power_on(self) -> None:
        """Let every node run."""
        for node in self.nodes:
            if node.frozen:
                node.thaw()
            if not node.runs:
                # A boot that failed leaves something.
                node.kill()
                self.start(node)

    def node(self, name: str) -> Node:
        """Return a node by its name."""
        return next(node for node in self.nodes if node.name == name)

    def read(self, node: Node) -> Object:
        """Return a node as the API server has it."""
        return self.api.get("nodes", node.name)

    def ready(self, node: Node) -> bool:
        """Whether it is Ready, to the API server."""
        found = self.api.find("nodes", node.name) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def cordoned(self, node: Node) -> bool:
        """Whether it is cordoned."""
        return bool(self.read(node)["spec"].get("unschedulable", False))

    def in_maintenance(self, node: Node) -> bool:
        """Whether the reconciler says that it is not operational."""
        return f"{PREFIX}state" in self.read(node)["metadata"]["labels"]

    # What the platform announces.

    def announce(self, node: Node, kind: str, not_before: datetime | None = None, **more: Any) -> None:
        """Announce an event for a node by its condition, as node-problem-detector does."""
        self._say(node, vm_event(kind, not_before, **more))

    def call_off(self, node: Node) -> None:
        """Say that a node has no event any more."""
        self._say(node, no_vm_event())

    def _say(self, node: Node, condition: Object) -> None:
        with self._lock:
            self._events[node.name] = condition
            self._write(node.name)

    def _beat(self) -> None:
        while not self._stopped.wait(_HEARTBEAT):
            # What looks for events runs on the node, and has no heartbeat without it.
            for name in [node.name for node in self.nodes if node.runs and not node.frozen]:
                # Without an API server there is nobody to tell.
                with self._lock, suppress(ApiError, urllib3.exceptions.HTTPError):
                    self._write(name)

    def _write(self, name: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = self._events[name] | {"lastHeartbeatTime": now}
        body = {"status": {"conditions": [condition]}}
        self.api.patch("nodes", name, body, kind="strategic", subresource="status")

    # Manifests and workloads.

    def kubectl(self, *arguments: str, text: str | None = None) -> str:
        """Run kubectl as an administrator; return its output."""
        command = [str(self.controlplane.kubectl), f"--kubeconfig={self.controlplane.kubeconfig}", *arguments]
        done = subprocess.run(
            command, input=text, capture_output=True, encoding="utf-8", check=False, timeout=120
        )
        if done.returncode:
            msg = f"kubectl {' '.join(arguments)}: {done.stderr.strip()}"
            raise RuntimeError(msg)
        return done.stdout

    def manifests(self, folder: str) -> list[Object]:
        """Return the objects of a folder of `k8s`."""
        return list(yaml.safe_load_all(self.kubectl("kustomize", str(MANIFESTS / folder))))

    def apply(self, objects: Iterable[Object]) -> None:
        """Create or change objects."""
        # Namespaces and classes come first, as in `kubectl apply -k`, which knows the order.
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            (Path(folder) / "all.json").write_text(json.dumps(_list(objects)), encoding="utf-8")
            (Path(folder) / "kustomization.yaml").write_text("resources: [all.json]\n", encoding="utf-8")
            self.kubectl("apply", "--server-side", "-k", folder)

    def delete(self, objects: Iterable[Object]) -> None:
        """Delete objects, and wait until they are gone."""
        rest = list(objects)
        spaces = [each for each in rest if each["kind"] == "Namespace"]
        names = {space["metadata"]["name"] for space in spaces}
        parts = [[each for each in rest if each not in spaces], spaces]
        for part in filter(None, parts):
            self.kubectl("delete", "--ignore-not-found", "-f", "-", text=json.dumps(_list(part)))
            # A namespace that is deleted with Pods looks again only after half of their grace periods.
            wait_for("the end of Pods", lambda: not any(map(self.pods, names)), seconds=150, every=0.1)

    def settings(self, objects: Iterable[Object], **changes: Any) -> list[Object]:
        """Return the objects with other settings in their ConfigMap."""
        changed = []
        for each in objects:
            if each["kind"] == "ConfigMap" and "maintenance.yaml" in each.get("data", {}):
                document = yaml.safe_load(each["data"]["maintenance.yaml"]) | changes
                each = each | {"data": {"maintenance.yaml": yaml.safe_dump(document)}}  # noqa: PLW2901
            changed.append(each)
        return changed

    @contextmanager
    def applied(self, objects: Iterable[Object]) -> Iterator[None]:
        """Have these objects for as long as the `with` lasts."""
        objects = list(objects)
        self.apply(objects)
        try:
            yield
        except Exception:
            # With the Pods, their logs would go.
            self.keep()
            # On a node without power no Pod ends.
            self.power_on()
            raise
        finally:
            self.delete(objects)

    def pods(self, namespace: str, labels: str | None = None) -> list[Object]:
        """Return the Pods of a namespace."""
        return self.api.list("pods", namespace, labels=labels)

    def ready_pods(self, namespace: str, labels: str | None = None) -> list[Object]:
        """Return those that are Ready and stay."""
        return [
            pod
            for pod in self.pods(namespace, labels)
            if "deletionTimestamp" not in pod["metadata"]
            and any(
                each["type"] == "Ready" and each["status"] == "True"
                for each in pod["status"].get("conditions", [])
            )
        ]

    def lives(self, namespace: str) -> list[Life]:
        """Return what the Pods of a namespace recorded about themselves."""
        return [life for life in workloads.read_records(self._records) if life.namespace == namespace]

    @contextmanager
    def reconciler(self, folder: str = "deployment", **settings: Any) -> Iterator[list[Object]]:
        """Have the reconciler as shipped, but for these settings, with both replicas Ready; yield these."""
        with self.applied(self.settings(self.manifests(folder), **settings)):
            pods = await_(
                "two replicas that are Ready",
                lambda: pods if len(pods := self.ready_pods(NAMESPACE)) == 2 else None,
                seconds=90,
            )
            if settings.get("mode") == "Enforce":  # nobody else takes the lock
                await_("a leader", self.leader, seconds=30)
            yield pods

    # What was seen.

    def audit(
        self, *, user: str = f"system:serviceaccount:{NAMESPACE}:", verbs: Collection[str] | None = None
    ) -> list[AuditEntry]:
        """Return the requests of users whose names begin so, the reconciler's, since the scenario began."""
        entries = self.controlplane.audit_entries(verbs=verbs, since=self._began)
        return [entry for entry in entries if entry.user.startswith(user)]

    def leader(self) -> str | None:
        """Return the Pod that has the reconciler's lock."""
        lease = self.api.find("leases", "reconciler-lock", NAMESPACE)
        holder = str((lease or {}).get("spec", {}).get("holderIdentity") or "")
        names = [pod["metadata"]["name"] for pod in self.pods(NAMESPACE)]
        return next((name for name in names if name in holder), None)

    def events(self, name: str, namespace: str = "default") -> list[Object]:
        """Return the Events about an object, the oldest first."""
        found = self.api.list("events", namespace, fields=f"involvedObject.name={name}")
        return sorted(found, key=lambda event: str(event["metadata"]["creationTimestamp"]))

    def said(self, node: Node, reason: str) -> bool:
        """Whether the reconciler has sent an Event of this reason about a node since the scenario began."""
        return any(
            event["reason"] == reason and moment(event["lastTimestamp"]) >= self._began.timestamp() - 1
            for event in self.events(node.name)
        )

    def refused(self) -> list[AuditEntry]:
        """Return the requests of the reconciler that its roles had to allow, and did not."""
        refused = [entry for entry in self.audit() if entry.code in (401, 403)]
        return [entry for entry in refused if (entry.verb, entry.resource) not in _OPTIONAL]

    def cordons(self, node: Node, *, undone: bool = False) -> list[AuditEntry]:
        """Return the reconciler's patches that cordoned a node, or those that took the cordon away."""
        found = []
        for entry in self.audit(verbs=["patch"]):
            if (entry.resource, entry.name, entry.code) == ("nodes", node.name, 200):
                # It sends JSON patches, which also test what they depend on.
                values = [
                    each.get("value")
                    for each in entry.body
                    if each["path"] == "/spec/unschedulable" and each["op"] != "test"
                ]
                if values and bool(values[-1]) is not undone:
                    found.append(entry)
        return found

    def logs(self, pod: Object) -> str:
        """Return what a Pod has printed."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        return str(self.api.request("GET", path_of("pods", name, namespace, "log"))["message"])

    def clean(self) -> None:
        """Go back to what every scenario begins with: nodes that run, are Ready, and are not cordoned."""
        self.power_on()
        wait_for("nodes that are Ready", lambda: all(map(self.ready, self.nodes)), seconds=120)
        for node in self.nodes:
            self.call_off(node)
            metadata = self.read(node)["metadata"]
            body = {
                "metadata": {
                    key: {name: None for name in metadata.get(key, {}) if name.startswith(PREFIX)}
                    for key in ("labels", "annotations")
                },
                "spec": {"unschedulable": None},
            }
            self.api.patch("nodes", node.name, body)
        for file in self._records.iterdir():
            file.unlink()
        self._began = datetime.now(UTC)

    def keep(self) -> None:
        """Copy all logs and all objects into the folder `kept`, once."""
        folder = self.kept
        if folder.exists():
            return
        folder.mkdir(parents=True)
        for log in (*self.controlplane.folder.glob("*.log"), *self.folder.glob("node*/*.log")):
            name = log.name if log.parent == self.controlplane.folder else f"{log.parent.name}-{log.name}"
            shutil.copy(log, folder / name)
        for node in self.nodes:
            shutil.copytree(
                self.folder / f"node{node.number}/disk/pods",
                folder / f"node{node.number}-pods",
                ignore_dangling_symlinks=True,
            )
        shutil.copytree(self._records, folder / "records")
        with suppress(RuntimeError, subprocess.TimeoutExpired):
            kinds = "nodes,pods,events,leases,configmaps,deployments,replicasets,statefulsets,jobs"
            text = self.kubectl("get", kinds, "--all-namespaces", "--output=yaml")
            (folder / "objects.yaml").write_text(text, encoding="utf-8")


def await_(what: str, condition: Callable[[], Value | None], *, seconds: float) -> Value:
    """Wait for what is true in time; errors of the API server, which may be away, count as not true."""

    def asked() -> Value | None:
        try:
            return condition()
        except (ApiError, urllib3.exceptions.HTTPError):
            return None

    return wait_for(what, asked, seconds=seconds, every=0.1)


def moment(text: str) -> float:
    """Return a time of the API server in seconds since 1970."""
    return datetime.fromisoformat(text).timestamp()


def now() -> float:
    """Return the time in seconds since 1970."""
    return time.time()


def _list(objects: Iterable[Object]) -> Object:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


__all__ = ["NAMESPACE", "POOL", "PREFIX", "Cluster", "await_", "moment", "now"]
