"""Laws 17 and 18 against the truth: drains and hooks end, and no pod waits that could go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.pod import Pod
from reconciler.model.record import ClaimKind, Record, State, record_of
from reconciler.model.steps import HeldStep, holders_of
from reconciler.settings.schema import Mode, Settings
from reconciler.simulation.world import World
from tests.explore.history import Broken
from tests.explore.obeyed import STOPS_WITHIN
from tests.explore.truth import KEYS, Truth, asks
from tests.laws import checked

if TYPE_CHECKING:
    from reconciler.features.hooks.settings import ConfiguredHook

TENANT = "tenant"
"""The namespace of somebody who may create pods and budgets there, and nothing else."""

LONGEST = timedelta(minutes=3)
"""A message may be lost, and then a drain reads its pods again after half a minute; some reads may fail."""

FREE = "shop/web-"
"""Pods that nothing may hold: they have no budget, and another node always has room for them."""


@dataclass(frozen=True, slots=True)
class _Wait:
    """What waits: on which node and for which pod, by UID, how long it may, and which law limits it."""

    node: str
    pod: str
    longest: timedelta
    law: str
    words: str


class Waits:
    """Since when each node is empty though its drain goes on, or has a pod that could go."""

    def __init__(self, world: World, counts: Counter[str]) -> None:
        """Watch this world from its beginning; `counts` counts the checks."""
        self._world = world
        self._counts = counts
        self._since: dict[_Wait, datetime] = {}
        self._clocks: dict[str, datetime] = {}
        self.denied: Callable[[], bool] = lambda: False
        """Whether a webhook denies the eviction of the tenant's pods."""

    def clock_changed(self) -> None:
        """Note that pods wait by another clock than the one by which the drains of now have begun."""
        self._clocks = {order.uid: order.since for order in self._world.drainer.orders.values()}

    def rests(self, policy: Settings) -> None:
        """Check what waits, once passes have nothing more to do."""
        now = self._world.now
        self._since = {one: self._since.get(one, now) for one in self._waiting(policy)}
        for one, since in self._since.items():
            self._counts[one.law] += 1
            if now - since > one.longest:
                raise Broken(one.law, f"{one.words} for {now - since}")

    def _waiting(self, policy: Settings) -> Iterator[_Wait]:
        orders = self._world.drainer.orders
        for node in self._world.cluster.nodes.values():
            order, since = orders.get(node.name), _drained_since(node)
            if order is None or order.uid != node.uid or order.since != since:
                # Something holds the drain, or it has no slot.
                continue
            if not policy.manages(node.labels):
                continue
            pods = self._world.cluster.pods_on(node.name)
            if not pods:
                yield _Wait(node.uid, "", LONGEST, "17", f"{node.name} is empty, and its drain goes on")
            if order.slots is not None and order.slots < len(orders):
                continue
            for pod in pods:
                limit = self._limit(pod, policy)
                if not pod.key.startswith(FREE) and self._clocks.get(order.uid) == order.since:
                    continue
                if limit is not None and pod.deleting_until is None and node.unschedulable:
                    law = "18" if any(other.namespace != pod.namespace for other in pods) else "17"
                    words = f"{pod.key} could go from {node.name}, and is not evicted"
                    yield _Wait(node.uid, pod.uid, limit, law, words)

    def _limit(self, pod: Pod, policy: Settings) -> timedelta | None:
        """Return how long a pod may stay, None if something that is not limited may hold it."""
        if pod.key.startswith(FREE):
            return LONGEST
        blocked = self.denied() or any(one.covers(pod) for one in self._world.cluster.budgets.values())
        if pod.namespace != TENANT or blocked:
            return None
        return max(policy.drain.pods_may_wait, _timeout(policy)) + LONGEST


def _timeout(policy: Settings) -> timedelta:
    """Return how long hooks may hold something."""
    return policy.held_pods.longest if policy.held_pods is not None else timedelta()


def _configured(policy: Settings, step: HeldStep) -> tuple[ConfiguredHook, ...]:
    """Return the hooks that the settings have for a step."""
    # Without the feature there is no such section.
    from reconciler.features.hooks.settings import HOOKS

    return HOOKS.of(policy).of(step)


def _drained_since(node: Node) -> datetime | None:
    """Return when the drain of a node began that goes on, None if there is none or it is one by hand."""
    record = record_of(node, DEFAULT_PREFIX)
    drain = record.drain if isinstance(record, Record) else None
    if drain is None or drain.drain.done is not None:
        return None
    return drain.drain.since if any(one.kind != ClaimKind.PERSON for one in drain.claims) else None


LATE = timedelta(minutes=1)
"""How much longer than its limit a hook may seem to hold: records keep whole seconds, and passes may fail."""

_STEPS = {
    "preDrainHooksDone": HeldStep.PRE_DRAIN,
    "postDrainHooksDone": HeldStep.POST_DRAIN,
    "preUncordonHooksDone": HeldStep.PRE_UNCORDON,
}
_Held = tuple[str, str, frozenset[str], timedelta]


class HookWaits:
    """Since when hooks hold each node, and since when each `pre-drain` hook is on its node."""

    def __init__(self, world: World, truth: Truth, counts: Counter[str]) -> None:
        """Watch this world from its beginning; `counts` counts the checks."""
        self._world = world
        self._truth = truth
        self._counts = counts
        self._held: dict[_Held, datetime] = {}
        self._there: dict[str, dict[str, datetime]] = {}
        self._timeout: timedelta | None = None
        world.cluster.node_listeners.append(self._changed)

    def _changed(self, node: Node) -> None:
        before, now = self._there.get(node.uid, {}), self._world.now
        names = _names(node, HeldStep.PRE_DRAIN)
        self._there[node.uid] = {name: before.get(name, now) for name in names}

    def clock_changed(self) -> None:
        """Note that no time until now can be compared with a time after it."""
        self._held.clear()
        self._there.clear()

    def under(self, policy: Settings) -> None:
        """Note the settings in force. A hook that has another limit now may have ended."""
        if _timeout(policy) != self._timeout:
            self._timeout = _timeout(policy)
            self._there.clear()
        if policy.mode is Mode.OBSERVE:
            self._held.clear()

    # What must hold.

    def planned(self, plans: Iterable[NodePlan], policy: Settings) -> None:
        """Note which nodes hooks hold after a pass, and check for how long."""
        now, timeout = self._world.now, _timeout(policy)
        found: set[_Held] = set()
        for one in plans:
            node = self._world.cluster.nodes.get(one.node)
            for hold in one.holds if node is not None else ():
                step = _STEPS.get(hold.code)
                if step is not None and node is not None:
                    configured = {f"settings.{hook.name}" for hook in _configured(policy, step)}
                    found.add((node.uid, hold.code, frozenset(_names(node, step) | configured), timeout))
        self._held = {key: self._held.get(key, now) for key in found}
        self.rests()

    def rests(self) -> None:
        """Check that no hook holds a step beyond its limit, also if there was no pass meanwhile."""
        for (uid, code, names, timeout), since in self._held.items():
            self._counts["17 hooks"] += 1
            if self._world.now - since > timeout + LATE:
                raise Broken("17", f"{code} holds {uid} for {sorted(names)} since {since}")

    def evicts(self, node: Node, policy: Settings) -> None:
        """Check a request about a pod of a node: none is sent while a `pre-drain` hook holds the drain."""
        case, now = checked.case_of(node), self._world.now
        if case.state is not State.IN_MAINTENANCE or case.since is None or not policy.manages(node.labels):
            return
        urgent = self._may_be_urgent(node, policy)
        for name, since in self._there.get(node.uid, {}).items():
            begun = max(case.since, since)
            if urgent or now >= begun + _timeout(policy) - LATE:
                continue
            self._counts["17 hooks"] += 1
            if since <= case.since or now - since > STOPS_WITHIN:
                raise Broken("hooks", f"pods of {node.name} are evicted, though {name} holds its drain")

    def _may_be_urgent(self, node: Node, policy: Settings) -> bool:
        """Whether an event may be so near that no hook holds a drain for it."""
        for channel in self._truth.channels(node, policy):
            for one in (*channel.told, *channel.hidden):
                lead = policy.policies(node.labels).of_kind(one.kind).lead_time
                dated = one.date is not None and one.date - lead - LATE <= self._world.now
                undated = one.date is None and one.kind in policy.budget.exempt
                if asks(one, node, policy, self._world) and (dated or undated):
                    return True
        return any(
            one.not_before is not None or one.kind in policy.budget.exempt
            for one in checked.case_of(node).events
        )


def _names(node: Node, step: HeldStep) -> set[str]:
    return {f"{one.step}.{one.name}" for one in holders_of(node.annotations, KEYS.prefix) if one.step is step}
