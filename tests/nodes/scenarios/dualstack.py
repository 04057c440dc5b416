"""The reconciler and its agents as shipped, in a cluster with a network of IPv6 and IPv4."""

from __future__ import annotations

from tests.nodes.cluster import Cluster
from tests.nodes.families import play_in
from tests.support.controlplane.configuration import IPV4, IPV6


def play(cluster: Cluster) -> str:
    """Drain a node there, and ask the reconciler at each of its addresses."""
    return play_in(cluster, [IPV6, IPV4])
