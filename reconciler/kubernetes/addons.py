"""What else is installed in the cluster: the node agent, and AKS's remediator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from reconciler.kubernetes.objects import ConfigMap, DaemonSet
from reconciler.model.errors import Forbidden, NotFound, Rejected
from reconciler.model.pod import Pod
from reconciler.model.snapshot import Agents, Remediator


def read_agents(
    daemon_set: Callable[[], DaemonSet], pods: Callable[[], Iterable[Pod]], needed: int
) -> Agents:
    """Return the state of the node agent; its pods are read if one is missing or not ready.

    One is missing if more nodes are `needed` to have one than the DaemonSet has: a taint that the DaemonSet
    does not tolerate leaves a node out, and nothing in its status says so. What can't be read is a `problem`
    of the result; other ClusterErrors are raised.
    """
    try:
        status = daemon_set().status
    except NotFound:
        return Agents(installed=False)
    except (Forbidden, Rejected) as error:
        return Agents(installed=True, problem=str(error), needs=error.needs)
    expected = max(status.desiredNumberScheduled, needed)
    if status.numberReady >= expected:
        return Agents(installed=True)
    try:
        seen = tuple(pods())
    except (Forbidden, NotFound, Rejected) as error:
        return Agents(installed=True, problem=str(error), needs=error.needs)
    # During a rollout of the DaemonSet a node may have two pods: one that is ready is enough.
    ready = {pod.node for pod in seen if pod.ready}
    covered = frozenset(pod.node for pod in seen if pod.node)
    return Agents(
        installed=True, not_ready=covered - ready, covered=covered if len(covered) < expected else None
    )


def read_remediator(config: Callable[[], ConfigMap]) -> Remediator:
    """Return AKS's remediator-config; its key appConfig is `{"Cluster":{"OnFreeze":{"Enabled":true}}}`.

    What can't be read is a `problem` of the result; other ClusterErrors are raised.
    """
    try:
        data = config().data or {}
    except NotFound:
        return Remediator()
    except (Forbidden, Rejected) as error:
        return Remediator(config_found=False, problem=str(error), needs=error.needs)
    try:
        enabled = (
            json.loads(data.get("appConfig", "{}")).get("Cluster", {}).get("OnFreeze", {}).get("Enabled")
        )
    except (ValueError, AttributeError) as error:
        return Remediator(config_found=True, problem=f"appConfig can't be read: {error}")
    return Remediator(config_found=True, on_freeze=enabled is True)
