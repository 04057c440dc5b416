"""k8s/deployment as shipped, in a namespace with the restricted Pod Security Standard."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import urllib3

from tests.nodes.cgroups import Usage
from tests.nodes.cluster import NAMESPACE, Cluster, Object

MEASURED = 15.0
"""Seconds of rest, and of a burst."""


def play(cluster: Cluster) -> str:
    """Look at it while nothing happens, and while everything does."""
    began = time.monotonic()
    with cluster.reconciler() as pods:
        ready = time.monotonic() - began
        labels = cluster.api.get("namespaces", NAMESPACE)["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        replica = pods[0]
        before = _usage(cluster, replica)
        time.sleep(MEASURED)
        idle = _usage(cluster, replica)
        _burst(cluster, replica)
        busy = _usage(cluster, replica)

        assert before.limit == 256, f"the manifest's limit is 256Mi, the container has {before.limit} MiB"
        assert busy.most < before.limit / 2, f"{busy.most:.0f} MiB are too near to the limit"
        assert all(not status["restartCount"] for status in replica["status"]["containerStatuses"])
        writes = [entry.uri for entry in cluster.audit(verbs=["patch"]) if entry.resource == "nodes"]
        assert not writes, f"the mode is Observe, but it wrote {writes}"
        assert not (refused := cluster.refused()), f"it was not allowed to ask {refused}"
        requests = len(cluster.audit())
    return (
        f"Ready after {ready:.0f} s, all of {requests} requests allowed. Idle {idle.memory:.0f} MiB and"
        f" {(idle.cpu - before.cpu) / MEASURED:.1%} of a core, in a burst {busy.memory:.0f} MiB (with files"
        f" {busy.most:.0f} of {busy.limit:.0f}) and {(busy.cpu - idle.cpu) / MEASURED:.0%}"
    )


def _burst(cluster: Cluster, replica: Object) -> None:
    """Announce and call off events as fast as nodes take them, while people look at the page."""
    url = f"http://{replica['status']['podIP']}:8080"
    end = time.monotonic() + MEASURED
    read: list[int] = []
    lock = threading.Lock()

    def look(path: str) -> None:
        with urllib3.PoolManager(retries=False, timeout=10) as pool:
            while time.monotonic() < end:
                status = pool.request("GET", url + path).status
                with lock:
                    read.append(status)
                time.sleep(0.2)

    def announce() -> None:
        while time.monotonic() < end:
            for node in cluster.nodes:
                cluster.announce(node, "Redeploy", datetime.now(UTC) + timedelta(minutes=10))
                cluster.call_off(node)

    work: list[Callable[[], None]] = [announce, lambda: look("/"), lambda: look("/metrics")]
    with ThreadPoolExecutor(len(work)) as threads:
        for done in [threads.submit(each) for each in work]:
            done.result()
    assert read
    assert set(read) == {200}, f"the page answered {set(read)}"


def _usage(cluster: Cluster, pod: Object) -> Usage:
    return cluster.node(pod["spec"]["nodeName"]).usage(pod["metadata"]["uid"])
