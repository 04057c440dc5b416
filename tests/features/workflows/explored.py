"""Workflows in the histories of the exploration: profiles share a node, and none acts for another one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from reconciler.features.workflows.configured import workflows_of
from reconciler.features.workflows.holds import WORKFLOW_GONE
from reconciler.features.workflows.settings import PROFILES
from reconciler.features.workflows.situation import claimed_in
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.node import Node
from reconciler.model.record import Record, State, record_of
from reconciler.model.writes import NodeWrite
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.explore.choices import PLAIN
from tests.explore.history import Broken, move
from tests.explore.of_plugins import LawsOfPlugin
from tests.explore.truth import KEYS, Truth
from tests.laws import checked

if TYPE_CHECKING:
    from tests.explore.play import Play


class LAWS(LawsOfPlugin):
    """Law 19: which workflows have each node closed, by its UID."""

    counted = ("19",)

    def __init__(
        self, world: World, truth: Truth, checked: Counter[str], missed: Mapping[str, Set[str]]
    ) -> None:
        super().__init__(world, truth, checked, missed)
        self._closed_for: dict[str, set[str]] = {}
        self._inside: dict[str, set[str]] = {}
        """The profiles for which each node was in maintenance after the last write, by its UID."""

    def left(self, node: Node) -> None:
        """Note that a person opens a node, or takes its data away: no workflow has it closed any more."""
        self._closed_for.pop(node.uid, None)

    def works(self, node: Node) -> bool:
        """Whether a workflow of a node has begun, or nobody knows."""
        return not is_readable(node) or bool(begun_profiles(node))

    def end(self, play: Play) -> None:
        """Let the work of every profile end; what can't end by itself is put right as the holds say."""
        begun = [node for node in play.cluster.nodes.values() if self.works(node) or _claims(node)]
        if begun and not play.settings.profile_names:
            play.set_line(PLAIN)
        for node in begun:
            text = node.annotations.get(KEYS.maintenance_data)
            if text is not None and not is_readable(node):
                play.cluster.annotate(node.name, KEYS.maintenance_data, None)
            play.cluster.label(node.name, KEYS.maintenance_profile, "first--second")
            if _is_left_over(node):
                play.release(node.name)
            elif _claims(node) and not node.unschedulable:
                # The drain of a workflow goes on only on a cordoned node.
                play.laws.cordoned_by_hand(node)
                play.cluster.cordon(node.name)
        for name in sorted(play.cluster.nodes):
            for key in ("one", "two"):
                play.cluster.label(name, key, None)

    def put_right(self, play: Play) -> None:
        """Do what the holds about workflows that are gone ask for.

        The settings have lost the state of a profile, or the node was drained for one that is operational.
        """
        for plan in play.looked().nodes:
            if any(KEYS.maintenance_data in hold.reason for hold in plan.holds):
                play.cluster.annotate(plan.node, KEYS.maintenance_data, None)
                play.settle()
        for plan in play.looked().nodes:
            if any(hold.code == WORKFLOW_GONE.code for hold in plan.holds):
                play.release(plan.node)

    def wrote(self, write: NodeWrite, node: Node, policy: Settings) -> None:
        """Check a write of the program that has taken effect.

        `node` is as it is then, and `policy` are the settings of the pass.
        """
        states = _states(node)
        if states is None:
            return
        inside = [name for name, state in states.items() if state == State.IN_MAINTENANCE]
        inside += ["default"] if checked.in_our_hands(node) else []
        self.checked["19"] += bool(states)
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
            self.checked["19"] += bool(closed)
            if closed or inside:
                others = sorted(closed | set(inside))
                raise Broken("19", f"{node.name} is uncordoned, and its maintenance for {others} goes on")
        if node.unschedulable:
            closed |= begun & set(_claiming(node))
        self._closed_for[node.uid] = closed


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


def _is_left_over(node: Node) -> bool:
    """Whether a node is cordoned for a profile that is operational, and that no drain keeps waiting."""
    record = record_of(node, DEFAULT_PREFIX)
    if not isinstance(record, Record):
        return False
    waits = record.drain is not None and record.drain.drain.done is None
    return not waits and not set(claimed_in(record)) <= begun_profiles(node)


def _claims(node: Node) -> bool:
    record = record_of(node, DEFAULT_PREFIX)
    return isinstance(record, Record) and bool(claimed_in(record))


@move("workflow", 7, values=("one", "two"))
def work(play: Play, name: str, value: str) -> None:
    """Ask for the work of a profile."""
    play.cluster.label(name, value, "true")


@move("workflow", 6, values=("one", "two"))
def work_done(play: Play, name: str, value: str) -> None:
    """Ask for the work of a profile no longer."""
    play.cluster.label(name, value, None)


@move("workflow", 4, values=("first--second", "first", "second", "second--first", "", "other--first"))
def workflow_label(play: Play, name: str, value: str) -> None:
    """Select the profiles of a node."""
    play.cluster.label(name, KEYS.maintenance_profile, value or None)


@move("workflow", 1, values=("", "{", "[]", '{"Profiles":{"first":{"Current":"strange"}}}'))
def workflow_data(play: Play, name: str, value: str) -> None:
    """Remove the data of the workflows, or break them."""
    if value or KEYS.maintenance_data in play.cluster.nodes[name].annotations:
        play.laws.left(play.cluster.nodes[name])
        play.cluster.annotate(name, KEYS.maintenance_data, value or None)


@move("workflow", 1, values=("", "in-maintenance", "nonsense"))
def workflow_state_label(play: Play, name: str, value: str) -> None:
    """Change the label that shows the state of the workflows."""
    play.cluster.label(name, KEYS.maintenance_state, value or None)
