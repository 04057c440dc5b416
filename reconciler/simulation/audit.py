"""Counts and checks the effects of a simulated day, independently of the reconciler's own view."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from reconciler.model.node import Node
from reconciler.model.outcome import ActionName
from reconciler.settings.policies import OutsideWindow
from reconciler.settings.schema import Settings
from reconciler.simulation.log import Actor, Happening
from reconciler.simulation.platform import VmEvent
from reconciler.simulation.world import World


class Audit:
    """Listens to a world's log.

    `violations` are sentences; there should never be one. The audit checks that pods are evicted only from
    cordoned nodes, that our cordons never exceed the budget (except for exempt kinds that are due), and that
    no eviction takes a PodDisruptionBudget below the healthy pods that it requires.
    """

    def __init__(self, world: World, settings: Settings) -> None:
        """Listen to the log of this world."""
        self._world = world
        self._settings = settings
        self._budget = settings.budget
        self.violations: list[str] = []
        self.events: Counter[str] = Counter()
        self.cancelled = 0
        self.cordons = 0
        self.uncordons = 0
        self.evictions = 0
        self.refusals = 0
        self.most_out = 0
        self.most_out_in_a_zone = 0
        world.log.listeners.append(self.heard)

    def heard(self, happening: Happening) -> None:
        """Count and check one happening."""
        match happening.actor, happening.what:
            case Actor.PLATFORM, what if what.endswith(" scheduled"):
                self.events[what.removesuffix(" scheduled")] += 1
            case Actor.PLATFORM, what if what.endswith(" cancelled"):
                self.cancelled += 1
            case Actor.US, ActionName.CORDON:
                self.cordons += 1
                self._cordoned(happening.node)
            case Actor.US, ActionName.UNCORDON:
                self.uncordons += 1
            case Actor.US, "evict":
                self.evictions += 1
                self._evicted(happening)
            case Actor.US, "evict refused":
                self.refusals += 1
            case _:
                pass

    def _cordoned(self, name: str) -> None:
        nodes = self._world.cluster.nodes
        node = nodes[name]
        out = [one for one in nodes.values() if one.unschedulable or not one.ready]
        zone = [one for one in out if one.zone == node.zone]
        self.most_out = max(self.most_out, len(out))
        self.most_out_in_a_zone = max(self.most_out_in_a_zone, len(zone))
        if any(self._is_exempt(event, node) for event in self._world.platform.reported(name)):
            return
        if not node.ready:
            # It was out of service already, and needs no second place.
            return
        self._compare("maxUnavailable", out, list(nodes.values()), name)
        in_zone = [one for one in nodes.values() if one.zone == node.zone]
        self._compare("perZone", zone, in_zone, name)

    def _is_exempt(self, event: VmEvent, node: Node) -> bool:
        """Return whether the event waits for no place: it has started, or is exempt and due."""
        policy = self._settings.event_policy(event.kind, node.labels)
        at_once = policy.outside_window is OutsideWindow.IMMEDIATELY
        lead = max(policy.lead_time, timedelta(minutes=15)) if at_once else policy.lead_time
        wait = lead if event.kind in self._budget.exempt else timedelta()
        return self._world.now >= event.not_before - wait

    def _compare(self, limit: str, out: list[Node], total: list[Node], name: str) -> None:
        wanted = self._budget.max_unavailable if limit == "maxUnavailable" else self._budget.per_zone
        if wanted is not None and len(out) > wanted.of(len(total)):
            names = ", ".join(sorted(one.name for one in out))
            self.violations.append(f"{name} was cordoned over {limit} {wanted}: out of service are {names}")

    def _evicted(self, happening: Happening) -> None:
        cluster = self._world.cluster
        node = cluster.nodes.get(happening.node)
        if node is not None and not node.unschedulable:
            self.violations.append(f"{happening.subject} was evicted from {node.name}, which is not cordoned")
        pod = cluster.find_pod(happening.subject)
        if pod is None or not pod.ready or pod.deleting_until is not None:
            return
        for budget in cluster.budgets.values():
            # Counted before the pod goes: one more than wanted has to be healthy.
            if budget.covers(pod) and budget.healthy - 1 < budget.desired:
                self.violations.append(f"{pod.key} was evicted although PDB {budget.key} needs it")
