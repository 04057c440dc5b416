"""What people say about the maintenance of a node is obeyed. Nothing here reads a plan or a record."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from reconciler.model.event import Kind
from reconciler.model.moments import from_text
from reconciler.model.node import Node
from reconciler.settings.policies import EventPolicy
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.explore.history import Broken
from tests.explore.truth import CONDITION, DEADLOCK, KEYS, Told, Truth, asks

STOPS_WITHIN = timedelta(seconds=4)
"""A drain reads its node every three seconds before it evicts, and a request takes a moment."""

_MARGIN = timedelta(minutes=20)
"""An event of which the platform says nothing is urgent so long before its latest start."""


class Obeyed:
    """Since when a hold with `--now` is on each node, by UID."""

    def __init__(self, world: World, truth: Truth, counts: Counter[str]) -> None:
        """Watch this world from its beginning; `counts` counts the checks."""
        self._world = world
        self._truth = truth
        self._counts = counts
        self._stopped: dict[str, datetime] = {}
        world.cluster.node_listeners.append(self._changed)

    def _changed(self, node: Node) -> None:
        if any(stops for stops, _ in self._holds(node)):
            self._stopped.setdefault(node.uid, self._world.now)
        else:
            self._stopped.pop(node.uid, None)

    def _holds(self, node: Node) -> Iterator[tuple[bool, bool]]:
        """Yield each annotation that holds a node: whether it stops a drain, and whether it is in force."""
        for key in (KEYS.hold, KEYS.hold_of_many):
            if key in node.annotations:
                found = _document(node.annotations[key])
                yield found.get("now") is True, self._lasts(found)

    def _lasts(self, found: dict[str, object]) -> bool:
        """Whether an instruction has not ended, by every clock."""
        until = found.get("until")
        return until is None or from_text(str(until)) > max(self._world.now, self._world.ours.now())

    def may_wait(self, one: Told, node: Node, policy: Settings) -> bool:
        """Whether a node may be kept from a drain for an event until a person says something."""
        meaning = _meaning(one, node, policy)
        said = any(key in node.annotations for key in (KEYS.hold, KEYS.hold_of_many, KEYS.defer))
        many = bool(self._world.cluster.ledger.holds)
        return said or many or (meaning is not None and meaning.says("approval"))

    # What must hold.

    def starts(self, node: Node, policy: Settings, *, for_events: bool) -> None:
        """Check a cordon by which the maintenance of a node begins, for its events or for a workflow."""
        ledger = self._world.cluster.ledger.holds
        latest = max(self._world.now, self._world.ours.now())
        many = any(one.applies(node.pool, latest) for one in ledger)
        self._counts["people"] += 1
        if many or any(lasts for _, lasts in self._holds(node)):
            raise Broken("people", f"{node.name} is cordoned, though a person holds it")
        if for_events:
            self._waits(node, policy)

    def _waits(self, node: Node, policy: Settings) -> None:
        """Check that something may start the drain that no person has deferred or has yet to approve."""
        channels = list(self._truth.channels(node, policy))
        asking = [
            one
            for channel in channels
            for one in (*channel.told, *channel.hidden)
            if asks(one, node, policy, self._world)
        ]
        if not asking or any(channel.strange for channel in channels):
            return
        deferred = self._is_deferred(node)
        approved = not KEYS.permissions.keys().isdisjoint(node.annotations)
        kept = [self._is_kept(one, node, policy, deferred, approved) for one in asking]
        self._counts["people"] += any(kept)
        if all(kept):
            why = "deferred" if deferred else "not approved"
            raise Broken("people", f"{node.name} is cordoned, and its drain is {why}")

    def _is_deferred(self, node: Node) -> bool:
        text = node.annotations.get(KEYS.defer)
        return text is not None and self._lasts(_document(text))

    def _is_kept(self, one: Told, node: Node, policy: Settings, deferred: bool, approved: bool) -> bool:
        meaning = _meaning(one, node, policy)
        if meaning is None:
            return False
        urgent = self._may_be_urgent(one, policy, meaning)
        if deferred and not urgent:
            return True
        missing = not meaning.says("approval_missing") or not urgent
        return meaning.says("approval") and missing and not approved

    def _may_be_urgent(self, one: Told, policy: Settings, meaning: EventPolicy) -> bool:
        if one.date is None:
            return one.kind in policy.budget.exempt
        latest = max(self._world.now, self._world.ours.now())
        return one.date - meaning.lead_time - _MARGIN <= latest

    def evicts(self, node: Node) -> None:
        """Check a request about a pod of a node."""
        since = self._stopped.get(node.uid)
        if since is None or not any(stops and lasts for stops, lasts in self._holds(node)):
            return
        self._counts["people"] += 1
        if self._world.now - since > STOPS_WITHIN:
            raise Broken("people", f"pods of {node.name} are evicted, though a person has stopped its drain")


def _meaning(one: Told, node: Node, policy: Settings) -> EventPolicy | None:
    if one.source == CONDITION:
        return policy.policies(node.labels).of_condition(DEADLOCK)
    return policy.policies(node.labels).of_kind(one.kind) if one.kind is not Kind.UNKNOWN else None


def _document(text: str) -> dict[str, object]:
    """Return an instruction; one that nobody can read is in force, without an end."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
