"""Law 19 against the truth: several profiles share a node, and none opens it or drains it for another."""

from __future__ import annotations

import json
from collections import Counter

from reconciler.features.workflows.configured import workflows_of
from reconciler.features.workflows.settings import PROFILES
from reconciler.features.workflows.situation import claimed_in
from reconciler.model.node import Node
from reconciler.model.record import ClaimKind, Record, State, from_annotation, record_of
from reconciler.model.writes import NodeWrite
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.explore.history import Broken
from tests.explore.truth import KEYS
from tests.laws import checked


class Shared:
    """Which workflows have each node closed, by its UID."""

    def __init__(self, world: World, counts: Counter[str]) -> None:
        """Watch this world from its beginning; `counts` counts the checks."""
        self._world = world
        self._counts = counts
        self._closed_for: dict[str, set[str]] = {}
        self._inside: dict[str, set[str]] = {}
        """The profiles for which each node was in maintenance after the last write, by its UID."""

    def ends(self, node: Node) -> None:
        """Note that a person opens a node, or takes its data away: no workflow has it closed any more."""
        self._closed_for.pop(node.uid, None)

    def works(self, node: Node) -> bool:
        """Whether a workflow of a node has begun, or nobody knows."""
        return not is_readable(node) or bool(begun_profiles(node))

    def wrote(self, write: NodeWrite, node: Node, policy: Settings) -> None:
        """Check a write of the program that has taken effect.

        `node` is as it is then, and `policy` are the settings of the pass.
        """
        states = _states(node)
        if states is None:
            return
        inside = [name for name, state in states.items() if state == State.IN_MAINTENANCE]
        inside += ["default"] if checked.in_our_hands(node) else []
        self._counts["19"] += bool(states)
        # A profile that the node does not have any more goes on with nothing, so none waits for it. It may
        # come back while another one is at work.
        selected = workflows_of(PROFILES.of(policy)).selected(node.labels.get(KEYS.maintenance_profile, ""))
        at_work = [name for name in inside if name in (*selected, "default")]
        before = self._inside.get(node.uid, set())
        if len(at_work) > 1 and not before.issuperset(at_work):
            raise Broken("19", f"{node.name} is in maintenance for {at_work}")
        self._inside[node.uid] = set(inside)
        begun = begun_profiles(node)
        closed = self._closed_for.get(node.uid, set()) & begun
        if write.unschedulable is False:
            self._counts["19"] += bool(closed)
            if closed or inside:
                others = sorted(closed | set(inside))
                raise Broken("19", f"{node.name} is uncordoned, and its maintenance for {others} goes on")
        if node.unschedulable:
            closed |= begun & set(_claiming(node))
        self._closed_for[node.uid] = closed


def is_for_events(write: NodeWrite, uid: str) -> bool:
    """Whether the cordon that a write makes is claimed for the maintenance of the platform."""
    found = from_annotation(write.annotations.get(KEYS.record) or "null", uid)
    cordon = found.cordon if found is not None else None
    return cordon is None or any(one.kind == ClaimKind.PROFILE for one in cordon.claims)


def is_readable(node: Node) -> bool:
    """Whether the data of a node's workflows can be read."""
    return _states(node) is not None


def begun_profiles(node: Node) -> set[str]:
    """Return the profiles of a node that are not operational, none if nobody can read their data."""
    return {name for name, state in (_states(node) or {}).items() if state != State.OPERATIONAL}


def _claiming(node: Node) -> tuple[str, ...]:
    found = record_of(node, KEYS.prefix)
    return claimed_in(found) if isinstance(found, Record) else ()


def _states(node: Node) -> dict[str, str] | None:
    """Return the state of each profile that the node shows, None if nobody can read it."""
    text = node.annotations.get(KEYS.maintenance_data)
    if text is None:
        return {}
    try:
        found = {str(name): str(one["Current"]) for name, one in json.loads(text)["Profiles"].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return found if all(state in tuple(State) for state in found.values()) else None
