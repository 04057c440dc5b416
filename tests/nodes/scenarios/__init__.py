"""What is tried on real nodes, each in a module of its name; SCENARIOS has the order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.nodes.cluster import Cluster
from tests.nodes.scenarios import (
    agent,
    cronjob,
    deployment,
    dualstack,
    frozen,
    helm,
    ipv6,
    outage,
    own_node,
    person,
    preempt,
    redeploy,
    rollout,
)

Scenario = Callable[[Cluster], str]
"""Plays on the cluster, and returns what was seen, in a line. AssertionError or TimeoutError: it failed."""

SCENARIOS: Mapping[str, Scenario] = {
    "deployment": deployment.play,
    "redeploy": redeploy.play,
    "own_node": own_node.play,
    "outage": outage.play,
    "preempt": preempt.play,
    "agent": agent.play,
    "cronjob": cronjob.play,
    "frozen": frozen.play,
    "person": person.play,
    "helm": helm.play,
    "rollout": rollout.play,
    "ipv6": ipv6.play,
    "dualstack": dualstack.play,
}
