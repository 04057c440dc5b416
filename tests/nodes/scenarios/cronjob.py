"""k8s/cronjob, each minute: a drain goes on from Job to Job, also after a killed one and one that hangs."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.nodes.cluster import NAMESPACE, Cluster, Object, await_, moment
from tests.nodes.node import Node
from tests.nodes.scene import WORK, controller, namespace, prefer
from tests.nodes.workloads import BEAT, pod_spec
from tests.support.controlplane.workloads import budget

PODS = 3
ENDS, GRACE = 60, 90
"""Each Pod takes longer to end than a Job lasts."""

DEADLINE = 45
"""Seconds after which the Job that hangs is ended, instead of the 300 of the manifest."""

MINUTE = 60
STARTS = 30
"""Seconds that a Job gets to be created, to find a node, and to begin its pass."""


def play(cluster: Cluster) -> str:
    """Drain a node whose Pods go one by one, and lose two Jobs while they do."""
    node = cluster.nodes[0]
    with ExitStack() as stack:
        stack.enter_context(cluster.applied(_workloads(node)))
        await_("Pods that run", lambda: len(cluster.ready_pods(WORK)) == PODS, seconds=60)
        assert {life.node for life in cluster.lives(WORK)} == {node.name}
        cluster.announce(node, "Redeploy", datetime.now(UTC) + timedelta(minutes=10), event_id="G1")
        # With a settle time, one more Job would have to see the node.
        objects = cluster.settings(
            cluster.manifests("cronjob"),
            mode="Enforce",
            budget={"maxUnavailable": 1},
            uncordon={"settle": "0s"},
        )
        stack.enter_context(cluster.applied(objects))
        jobs = stack.enter_context(_Jobs(cluster))
        return _judge(cluster, node, jobs)


def _judge(cluster: Cluster, node: Node, jobs: _Jobs) -> str:
    await_("the first eviction", lambda: len(_evicted(cluster)) == 1, seconds=MINUTE + STARTS)
    await_("the end of the first Job", lambda: jobs.ended(0), seconds=MINUTE + STARTS)
    assert all(life.end is None for life in cluster.lives(WORK)), "the drain did not outlive the Job"

    await_("the second eviction", lambda: len(_evicted(cluster)) == 2, seconds=MINUTE + STARTS)
    jobs.send(1, signal.SIGKILL)
    _end_after(cluster, DEADLINE)

    await_("the third eviction", lambda: len(_evicted(cluster)) == PODS, seconds=2 * MINUTE + STARTS)
    jobs.send(2, signal.SIGSTOP)
    _end_after(cluster, 300)
    await_("the end of the Job that hangs", lambda: jobs.ended(2), seconds=2 * MINUTE)

    await_("the end of the drain", lambda: cluster.said(node, "MaintenanceDrained"), seconds=MINUTE + STARTS)
    cluster.call_off(node)
    over = datetime.now(UTC)
    await_("the uncordon", lambda: not cluster.cordoned(node), seconds=MINUTE + STARTS)
    await_("the end of the case", lambda: not cluster.in_maintenance(node), seconds=30)
    await_("the end of the last Job", jobs.all_ended, seconds=MINUTE)

    ended = ["; ".join(job.ended) for job in jobs.seen]
    assert "Failed" in ended[1], f"the Job that was killed: {ended[1]}"
    assert "DeadlineExceeded" in ended[2], f"the Job that hung: {ended[2]}"
    assert all("Complete" in text for text in (ended[0], *ended[3:])), f"Jobs ended by {ended}"
    for job in jobs.seen:
        late = moment(job.created) - job.due
        assert late <= 30, f"{job.name} came {late:.0f} s after its minute, in spite of its deadline"
    for first, second in zip(jobs.seen, jobs.seen[1:], strict=False):
        assert moment(first.until) <= moment(second.created), f"{first.name} and {second.name} ran at once"
        assert moment(first.until) <= moment(second.since) + 1, "two Pods ran at once"
    evictions = _evicted(cluster)
    assert len(evictions) == len(set(evictions)) == PODS, f"evicted were {evictions}"
    assert len(cluster.cordons(node)) == 1
    lives = cluster.lives(WORK)
    for name in {life.pod for life in lives}:
        first_life, second_life = (life for life in lives if life.pod == name)
        assert first_life.end is not None, f"{name} was killed"
        assert first_life.sigterm is not None
        assert first_life.end - first_life.sigterm >= ENDS - BEAT
        assert first_life.last < second_life.start, f"two Pods {name} lived at once"
    (uncordon,) = cluster.cordons(node, undone=True)
    back = (uncordon.timestamp - over).total_seconds()
    assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"
    durations = [moment(job.until) - moment(job.created) for job in jobs.seen if "Complete" in job.ended]
    return (
        f"{PODS} Pods that take {ENDS} s to end went one by one in {len(jobs.seen)} Jobs of"
        f" {min(durations):.0f} to {max(durations):.0f} s: after one Job had ended, one was killed, and one"
        f" hung for {moment(jobs.seen[2].until) - moment(jobs.seen[2].created):.0f} s (deadline {DEADLINE} s,"
        f" then 30 s of grace). No Pod was evicted twice, no two Jobs ran at once. Uncordoned {back:.0f} s"
        " after the end of the event"
    )


@dataclass(slots=True)
class _Job:
    """A Job, as it was last seen."""

    name: str
    created: str
    due: float
    """Its minute, in seconds since 1970."""
    since: str = ""
    """When its container started."""
    until: str = ""
    ended: list[str] = field(default_factory=list)
    """By which condition, and why."""


class _Jobs:
    """Notes the Jobs of the CronJob, which keeps one that succeeded, for as long as the `with` lasts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._by_uid: dict[str, _Job] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="jobs", daemon=True)

    def __enter__(self) -> _Jobs:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(10)

    @property
    def seen(self) -> list[_Job]:
        """Return them all, the first first."""
        return sorted(self._by_uid.values(), key=lambda job: job.created)

    def ended(self, number: int) -> bool:
        """Whether the Job of this number has ended."""
        return len(self.seen) > number and bool(self.seen[number].ended)

    def all_ended(self) -> bool:
        """Whether none runs."""
        return all(job.ended for job in self.seen)

    def send(self, number: int, what: signal.Signals) -> None:
        """Send a signal to the processes of the Job of this number, which has to be the last."""
        assert len(self.seen) == number + 1, f"there are {[job.name for job in self.seen]}"
        (pod,) = self._cluster.pods(NAMESPACE, f"job-name={self.seen[number].name}")
        self._cluster.node(pod["spec"]["nodeName"]).send(pod["metadata"]["uid"], what)

    def _look(self) -> None:
        while not self._stopped.wait(0.5):
            for each in self._cluster.api.list("jobs", NAMESPACE):
                self._note(each)
            for pod in self._cluster.pods(NAMESPACE):
                owner = self._by_uid.get(pod["metadata"]["ownerReferences"][0]["uid"])
                for status in pod["status"].get("containerStatuses", []):
                    for state in status["state"].values():
                        if owner is not None and "startedAt" in state:
                            owner.since = state["startedAt"]

    def _note(self, job: Object) -> None:
        metadata = job["metadata"]
        due = metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
        noted = self._by_uid.setdefault(
            metadata["uid"], _Job(metadata["name"], metadata["creationTimestamp"], moment(due))
        )
        for each in job["status"].get("conditions", []):
            if each["status"] == "True" and each["type"] in ("Complete", "Failed"):
                noted.until = each["lastTransitionTime"]
                noted.ended = [each["type"], each.get("reason", "")]


def _end_after(cluster: Cluster, seconds: int) -> None:
    """Give the Jobs that come a deadline."""
    body = {"spec": {"jobTemplate": {"spec": {"activeDeadlineSeconds": seconds}}}}
    cluster.api.patch("cronjobs", "reconciler", body, NAMESPACE)


def _evicted(cluster: Cluster) -> list[str]:
    """Return the Pods that were evicted, in order."""
    entries = cluster.audit(verbs=["create"])
    return [entry.name for entry in entries if entry.subresource == "eviction" and entry.code == 201]


def _workloads(node: Node) -> list[Object]:
    # The next Pod of a StatefulSet comes when the one before has ended, so they go one by one.
    spec = pod_spec(ends_after=ENDS, grace=GRACE, **prefer(node))
    return [
        namespace(),
        controller(
            "StatefulSet", "db", spec, replicas=PODS, serviceName="db", podManagementPolicy="Parallel"
        ),
        budget("db", namespace=WORK, max_unavailable=1),
    ]
