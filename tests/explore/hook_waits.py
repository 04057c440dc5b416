"""Law 17 for hooks: each holds its step while it is there, and no longer than its time limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta

from reconciler.model.hooks import HookStep, hooks_of
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.record import State
from reconciler.settings.schema import Mode, Settings
from reconciler.simulation.world import World
from tests.explore.broken import Broken
from tests.explore.obeyed import STOPS_WITHIN
from tests.explore.truth import KEYS, Truth, asks
from tests.laws import checked

LATE = timedelta(minutes=1)
"""How much longer than its limit a hook may seem to hold: records keep whole seconds, and passes may fail."""

_STEPS = {
    "preDrainHooksDone": HookStep.PRE_DRAIN,
    "postDrainHooksDone": HookStep.POST_DRAIN,
    "preUncordonHooksDone": HookStep.PRE_UNCORDON,
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
        names = _names(node, HookStep.PRE_DRAIN)
        self._there[node.uid] = {name: before.get(name, now) for name in names}

    def clock_changed(self) -> None:
        """Note that no time until now can be compared with a time after it."""
        self._held.clear()
        self._there.clear()

    def under(self, policy: Settings) -> None:
        """Note the settings in force. A hook that has another limit now may have ended."""
        if policy.hooks.timeout != self._timeout:
            self._timeout = policy.hooks.timeout
            self._there.clear()
        if policy.mode is Mode.OBSERVE:
            self._held.clear()

    # What must hold.

    def planned(self, plans: Iterable[NodePlan], policy: Settings) -> None:
        """Note which nodes hooks hold after a pass, and check for how long."""
        now, timeout = self._world.now, policy.hooks.timeout
        found: set[_Held] = set()
        for one in plans:
            node = self._world.cluster.nodes.get(one.node)
            for hold in one.holds if node is not None else ():
                step = _STEPS.get(hold.code)
                if step is not None and node is not None:
                    configured = {f"settings.{hook.name}" for hook in policy.hooks.of(step)}
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
            if urgent or now >= begun + policy.hooks.timeout - LATE:
                continue
            self._counts["17 hooks"] += 1
            if since <= case.since or now - since > STOPS_WITHIN:
                raise Broken("hooks", f"pods of {node.name} are evicted, though {name} holds its drain")

    def _may_be_urgent(self, node: Node, policy: Settings) -> bool:
        """Whether an event may be so near that no hook holds a drain for it."""
        for channel in self._truth.channels(node, policy):
            for one in (*channel.told, *channel.hidden):
                lead = policy.event_policy(one.kind, node.labels).lead_time
                dated = one.date is not None and one.date - lead - LATE <= self._world.now
                undated = one.date is None and one.kind in policy.budget.exempt
                if asks(one, node, policy, self._world) and (dated or undated):
                    return True
        return any(
            one.not_before is not None or one.kind in policy.budget.exempt
            for one in checked.case_of(node).events
        )


def _names(node: Node, step: HookStep) -> set[str]:
    return {str(one.id) for one in hooks_of(node.annotations, KEYS.prefix) if one.id.step is step}
