"""A real Prometheus scrapes a real process, and evaluates the alerts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.monitoring.rules import spec
from tests.real.forks import Forks
from tests.real.manifests.applying import built
from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.controlplane.workloads import budget
from tests.support.tools.running import RunningPrometheus

pytestmark = pytest.mark.slow


def honors_labels() -> bool:
    """What the PodMonitor asks for."""
    (monitor,) = [one for one in built("monitoring") if one["kind"] == "PodMonitor"]
    return bool(monitor["spec"]["podMetricsEndpoints"][0].get("honorLabels", False))


def test_a_blocked_drain_and_then_the_end_of_the_process_are_seen(
    prometheus_program: Path, cluster: ControlPlane, forks: Forks, tmp_path: Path
) -> None:
    scene, not_seen = Scene(cluster), "NodeMaintenanceNoPass"
    folder = tmp_path / "prometheus"
    folder.mkdir()
    prometheus = RunningPrometheus(prometheus_program, folder)
    try:
        with Programs(cluster.kubeconfig, tmp_path, forks) as programs:
            programs.configure(ENFORCE)
            node = scene.node()
            scene.workload("web", node)
            scene.api.create("poddisruptionbudgets", budget("web", min_available=1))
            process = programs.start("serve", "--every", "2s", "--listen", "127.0.0.1:0")
            (line,) = process.wait_for("listening")
            target = line["address"]
            # The operator gives each series the namespace of its Pod.
            prometheus.configure(target, spec(), honor_labels=honors_labels(), namespace="node-maintenance")
            with prometheus:
                scene.condition_tells(node)
                wait_for("the alert", lambda: blocked(prometheus), seconds=60)
                assert blocked(prometheus) == [{"node": node, "namespace": "default", "budget": "web"}]
                wait_for(
                    "every rule",
                    lambda: {rule["health"] for rule in prometheus.rules()} == {"ok"},
                    seconds=60,
                )
                # Rules that are evaluated before the first scrape see no process yet.
                wait_for("the end of that alert", lambda: not_seen not in prometheus.raised(), seconds=60)

                process.kill()
                wait_for("the alert", lambda: not_seen in prometheus.raised(), seconds=60)
    finally:
        scene.close()


def blocked(prometheus: RunningPrometheus) -> list[dict[str, Any]]:
    """The labels of the alerts about blocked drains, without those of the rule."""
    return [
        {name: value for name, value in alert["labels"].items() if name not in ("alertname", "severity")}
        for rule in prometheus.rules()
        if rule["name"] == "NodeMaintenanceDrainBlocked"
        for alert in rule["alerts"]
    ]
