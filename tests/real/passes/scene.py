"""One cluster on the real API server, as its users see it: report events, run passes, read the results."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from jobs.runtime.environment import Target
from jobs.runtime.process import Ports, ports_made_by, processes
from reconciler import USER_AGENT
from reconciler.drain.drainer import Drainer
from reconciler.kubernetes.cluster import Cluster
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.eviction import Evictions
from reconciler.kubernetes.reconcilers import LOCK
from reconciler.model.plan import NodePlan
from reconciler.model.ports import Machines, WritableOutside
from reconciler.model.snapshot import Self
from reconciler.report.document import Report, to_report
from reconciler.report.text import as_text
from reconciler.run import run_pass
from reconciler.settings.load import parse_settings
from tests.support.controlplane.api import CLUSTER_WIDE, Api, ApiError
from tests.support.controlplane.audit import AuditEntry
from tests.support.controlplane.fill import Pool, no_vm_event, patch_conditions, vm_event
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.workloads import budget, deployment
from tests.support.fakes import imds
from tests.support.fakes.clock import SystemClock

Object = dict[str, Any]

PREFIX = "node-maintenance.dev"
HOOKS_IN = "default"
"""The namespace of the Jobs that are hooks."""
POOL = Pool("np")
MONDAY_NOON = datetime(2026, 5, 11, 12, tzinfo=UTC)
UNDER_MAINTENANCE = "Host server is undergoing maintenance."


EMPTY_DIR = [{"name": "scratch", "emptyDir": {}}]


class StandingClock:
    """The passes' clock.

    It stays at the moment that a test has set, even if a step takes long. An event that is reported twice
    then has the same moment, as on a real platform.
    """

    def __init__(self) -> None:
        self.drainers = RunningClock()
        self.set(datetime.now(UTC))

    def now(self) -> datetime:
        return self._moment

    def set(self, moment: datetime) -> None:
        self._moment = moment
        self.drainers.start(moment)

    def advance(self, **parts: float) -> None:
        self.set(self._moment + timedelta(**parts))


class RunningClock(SystemClock):
    """The drainer's clock, which must go on for its pauses to end."""

    def __init__(self) -> None:
        self._ahead = timedelta()

    def start(self, moment: datetime) -> None:
        """Be at this moment now."""
        self._ahead = moment - super().now()

    def now(self) -> datetime:
        """See the port."""
        return super().now() + self._ahead


class PassReport:
    """The report of one pass: `document` for programs, `text` for people."""

    def __init__(self, report: Report) -> None:
        self.document = report.document
        self.text = as_text(report)

    def node(self, name: str) -> Object:
        """The node's part; an empty one if the output does not contain the node."""
        return next((one for one in self.document["nodes"] if one["name"] == name), {})

    def actions(self, name: str) -> list[str]:
        return list(self.node(name).get("actions", []))

    def holds(self, name: str) -> dict[str, str]:
        """The reasons by the check's name; a drain waits for many pods, each with its own."""
        found: dict[str, str] = {}
        for hold in self.node(name).get("holds", []):
            check, reason = hold["check"], hold["reason"]
            found[check] = f"{found[check]}; {reason}" if check in found else reason
        return found


class Scene:
    """A cluster with the program's own parts in this process: real clients, a real drainer, no lock."""

    def __init__(self, controlplane: ControlPlane) -> None:
        self.controlplane = controlplane
        self.api: Api = controlplane.api
        self.clock = StandingClock()
        self.settings = parse_settings("mode: Enforce", "maintenance.yaml")
        self.connection = Connection(str(controlplane.kubeconfig))
        self.cluster = Cluster(self.connection, guard=lambda: None, agent_namespace="agents", agent="agent")
        given = Ports(self.connection, Target(namespace=HOOKS_IN), lambda: None)
        self._ports = [process.ports(given) for process in processes() if process.ports]
        self.itself = Self()
        self.clients: dict[str, Any] = {}
        self.machines: Machines | None = None
        self.plans: dict[str, NodePlan] = {}
        self._drainer: Drainer | None = None

    @property
    def drainer(self) -> Drainer:
        """Of the process that runs: `new_process` ends it."""
        if self._drainer is None:
            evictions = Evictions(self.connection, guard=lambda: None, prefix=PREFIX)
            self._drainer = Drainer(evictions, self.clock.drainers)
        return self._drainer

    def new_process(self) -> None:
        """Forget what only a process knows, as between two sweeps."""
        if self._drainer is not None:
            self._drainer.close()
            self._drainer = None

    def close(self) -> None:
        self.new_process()
        self.connection.close()

    def set(self, text: str) -> None:
        """Use these settings; the mode is Enforce if they name none."""
        self.settings = parse_settings(
            text if "mode:" in text else f"mode: Enforce\n{text}", "maintenance.yaml"
        )

    @property
    def now(self) -> datetime:
        return self.clock.now()

    # The cluster.

    def node(self, instance: int = 0, pool: Pool = POOL, **shape: Any) -> str:
        """Make a node; its name."""
        shape.setdefault("images", 1)
        made = self.api.create("nodes", pool.node(instance, now=self.now, **shape))
        return str(made["metadata"]["name"])

    def workload(self, name: str, node: str | None = None, replicas: int = 1, **shape: Any) -> list[str]:
        """Make a Deployment, of one node's pods where one is named; its pods' names once they are ready."""
        if node is not None:
            shape["node_selector"] = {"kubernetes.io/hostname": node}
        return self.deploy(deployment(name, replicas, **shape))

    def deploy(self, made: Object) -> list[str]:
        """Make a Deployment as it is given; its pods' names once they are ready."""
        self.api.create("deployments", made)
        name, replicas = made["metadata"]["name"], made["spec"]["replicas"]
        mark = made["spec"]["template"]["metadata"].get("annotations", {}).get("made", "")
        # Where the API server was away a moment ago its controllers take their time to come back.
        return wait_for(
            f"ready pods of {name}",
            lambda: self.ready(name, replicas, mark),
            seconds=60,
            instead=lambda: self.api.pods_in_brief(f"app={name}"),
        )

    def ready(self, app: str, count: int, mark: str = "") -> list[str] | None:
        """The names of an app's pods once so many are ready.

        With a mark, pods without it are deleted, and no pod counts as long as there is one.
        """
        pods = self.api.list("pods", labels=f"app={app}")
        if mark and self.api.delete_strays(pods, mark):
            return None
        found = [
            each["metadata"]["name"]
            for each in pods
            if "deletionTimestamp" not in each["metadata"]
            and any(
                one["type"] == "Ready" and one["status"] == "True"
                for one in each["status"].get("conditions", [])
            )
        ]
        return found if len(found) == count else None

    def pods_on(self, node: str) -> list[str]:
        """The apps whose pods are on the node."""
        pods = self.api.list("pods", fields=f"spec.nodeName={node}")
        return sorted(each["metadata"]["labels"]["app"] for each in pods)

    def cordoned(self, node: str) -> bool:
        return bool(self.api.get("nodes", node)["spec"].get("unschedulable", False))

    def record(self, node: str) -> Object | None:
        """What the annotation remembers."""
        text = self.api.get("nodes", node)["metadata"].get("annotations", {}).get(f"{PREFIX}/record")
        return None if text is None else dict(json.loads(text))

    def state(self, node: str) -> str | None:
        """What the label shows."""
        label = self.api.get("nodes", node)["metadata"]["labels"].get(f"{PREFIX}/state")
        return None if label is None else str(label)

    def is_untouched(self, node: str) -> bool:
        """Whether there is neither cordon, label nor record."""
        return not self.cordoned(node) and self.state(node) is None and self.record(node) is None

    def asked(self, *verbs: str, since: datetime | None = None) -> list[AuditEntry]:
        """What the program asked the API server, of these verbs or of all, since then."""
        agent = USER_AGENT.split("/")[0]
        return self.controlplane.audit_entries(agent, verbs or None, since)

    def free_lock(self, namespace: str = "node-maintenance") -> None:
        """Give the lock of a process that has ended back, so that nobody waits until it runs out."""
        self.api.patch("leases", LOCK, {"spec": {"holderIdentity": ""}}, namespace)

    # What the platform and others do.

    def condition_tells(
        self,
        node: str,
        kind: str = "Reboot",
        minutes: float = 10,
        *,
        status: str = "Scheduled",
        duration: int = -1,
        description: str = UNDER_MAINTENANCE,
        event_id: str | None = None,
    ) -> None:
        """Let node-problem-detector report an event that begins in so many minutes."""
        report = vm_event(
            kind,
            self.now + timedelta(minutes=minutes),
            status=status,
            duration=duration,
            description=description,
            event_id=event_id,
            now=self.now,
        )
        patch_conditions(self.api, node, report)

    def condition_silent(self, node: str) -> None:
        """Let the condition report no event."""
        patch_conditions(self.api, node, no_vm_event(now=self.now))

    def condition(self, node: str, kind: str, status: str, message: str = "") -> None:
        """Set a condition as of now."""
        moment = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        one = {"type": kind, "status": status, "reason": "Test", "message": message}
        times = {"lastHeartbeatTime": moment, "lastTransitionTime": moment}
        patch_conditions(self.api, node, {**one, **times})

    def imds_tells(self, instance: int, *events: Object, pool: Pool = POOL) -> None:
        """Publish what the agent would of these events; of none it publishes that, too."""
        from reconciler.sources.imds.scheduled_events import to_annotation

        text = to_annotation({"Events": list(events)}, pool.vm_name(instance))
        self.annotate(pool.node_name(instance), "imds", text)

    def event(
        self,
        instance: int,
        kind: str = "Reboot",
        minutes: float = 10,
        *,
        event_id: str = imds.EVENT_ID,
        status: str = "Scheduled",
        description: str = UNDER_MAINTENANCE,
        duration: int = -1,
        source: str = "Platform",
    ) -> Object:
        """An event in the form of IMDS."""
        when = (self.now + timedelta(minutes=minutes)).strftime("%a, %d %b %Y %H:%M:%S GMT")
        return imds.event(
            POOL.vm_name(instance),
            kind,
            event_id=event_id,
            status=status,
            not_before=when,
            description=description,
            duration=duration,
            source=source,
        )

    def serves(self, resource: str) -> bool:
        """Whether the API server knows the kind of a CustomResourceDefinition that was just created."""
        try:
            return "items" in self.api.request("GET", f"{CLUSTER_WIDE[resource]}/{resource}")
        except ApiError as error:
            # Not there yet; or there, and its storage still begins (429).
            if error.status not in (404, 429):
                raise
            return False

    def annotate(self, node: str, key: str, text: str | None) -> None:
        self.api.patch("nodes", node, {"metadata": {"annotations": {f"{PREFIX}/{key}": text}}})

    def uncordon(self, node: str) -> None:
        """Let a person uncordon it."""
        self.api.patch("nodes", node, {"spec": {"unschedulable": None}})

    # Passes.

    @property
    def outside(self) -> WritableOutside:
        """What the next pass is given."""
        ports = ports_made_by(self._ports, self.settings)
        assert ports.notifier is not None
        return WritableOutside(
            reader=self.cluster,
            writer=self.cluster,
            drainer=self.drainer,
            notifier=ports.notifier,
            clients={**ports.clients, **self.clients},
            machines=self.machines,
            itself=self.itself,
        )

    def run(self) -> PassReport:
        """Run one pass; drains go on behind it."""
        plan, outcomes = run_pass(self.outside, self.settings, self.now)
        self.plans = {node.node: node for node in plan.nodes}
        return PassReport(to_report(plan, outcomes, rehearsed=False))

    def finish(self) -> PassReport:
        """Run passes until no drain is under way; the last one's story."""
        report = self.run()

        def ended() -> bool:
            nonlocal report
            idle = not any(plan.todo.drain for plan in self.plans.values())
            if not idle:
                self.drainer.wait(0.5)
                report = self.run()
            return idle

        wait_for("end of the drains", ended, seconds=60)
        return report


def cover(scene: Scene, app: str) -> None:
    """Let a PodDisruptionBudget hold the app's only pod."""
    scene.api.create("poddisruptionbudgets", budget(app, min_available=1))
    wait_for(
        "a budget that was counted",
        lambda: scene.api.get("poddisruptionbudgets", app).get("status", {}).get("currentHealthy") == 1,
    )


def volume(scene: Scene, zone: str) -> list[Object]:
    """Make a volume that nodes of one zone can mount, bound to the claim `data`; the pod's volumes."""
    key = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    required = {"nodeSelectorTerms": [{"matchExpressions": [key]}]}
    scene.api.create(
        "persistentvolumes",
        {
            "metadata": {"name": "data"},
            "spec": {
                **shared,
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/data"},
                "claimRef": {"namespace": "default", "name": "data"},
                "nodeAffinity": {"required": required},
            },
        },
    )
    scene.api.create(
        "persistentvolumeclaims",
        {
            "metadata": {"name": "data"},
            "spec": {**shared, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "data"},
        },
    )
    wait_for(
        "a bound volume", lambda: scene.api.get("persistentvolumes", "data")["status"].get("phase") == "Bound"
    )
    return [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
