"""k8s/deployment as shipped, in a namespace with the restricted Pod Security Standard."""

from __future__ import annotations

from tests.nodes.cluster import NAMESPACE, Cluster, await_


def play(cluster: Cluster) -> str:
    """Apply it, and look at what it does in its first minute."""
    with cluster.applied(cluster.manifests("deployment")):
        await_("two Pods that are Ready", lambda: len(cluster.ready_pods(NAMESPACE)) == 2, seconds=90)
        return "Ready"
