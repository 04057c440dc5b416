"""Plays whole passes over a simulated cluster with the settings of a file in `examples/`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from reconciler.run import run_pass
from reconciler.settings.load import load_settings
from reconciler.settings.schema import Settings
from reconciler.simulation.workloads import Workload
from reconciler.simulation.world import World

MINUTE = timedelta(minutes=1)
_EXAMPLES = Path(__file__).parents[2] / "examples"

WEB = Workload("shop", "web", replicas=4)
CACHE = Workload("shop", "cache", replicas=4, empty_dir=True)
BARE = Workload("shop", "debug", kind="", replicas=4)
LOGS = Workload("kube-system", "logs", kind="DaemonSet")


def example(name: str) -> Settings:
    """Return the settings of an example."""
    return load_settings(_EXAMPLES / f"{name}.yaml")


def play(there: World, settings: Settings, minutes: int) -> None:
    """Run a pass a minute."""
    for _ in range(minutes):
        run_pass(there.outside, settings, there.now)
        there.advance(MINUTE)


def apps_on(there: World, node: str) -> set[str]:
    """Return the apps that have a pod on the node."""
    return {pod.labels["app"] for pod in there.cluster.pods_on(node)}
