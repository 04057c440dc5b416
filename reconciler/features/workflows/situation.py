"""What checks and triggers of workflows may read, and how that changes within a pass.

The engine gives each check the state of the pass so far: a node that entered maintenance earlier in the same
pass is in maintenance in `members`, and a Lease that it takes is in `read` (`ReadForChecks.taken`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeVar

from msgspec import Struct

from reconciler.features.workflows.data import DataUnreadable, WorkflowData, from_annotation
from reconciler.features.workflows.reading import Needs, ReadForChecks
from reconciler.features.workflows.services import CLAIM
from reconciler.model.keys import OwnKeys, keys_of
from reconciler.model.leases import LeaseTake
from reconciler.model.node import Node
from reconciler.model.problems import guarded
from reconciler.model.record import Claim, Record, State, Unreadable
from reconciler.model.values import replace
from reconciler.profiles.situation import Situation, Work
from reconciler.profiles.vocabulary import CheckType, Vocabulary

Selected = Callable[[str], tuple[str, ...]]
"""Returns the profiles that the label of a node selects."""


class WorkflowCheck(CheckType, frozen=True):
    """A type of check for workflows.

    `needs` returns what it reads beyond the nodes. `takes` returns the Lease that the node takes when a
    transition with this check really happens, None if it takes none: it gets what the check got.
    """

    needs: Callable[[Any], Needs] = lambda _config: Needs()
    takes: Callable[[Any, Any], LeaseTake | None] = lambda _config, _situation: None


WORKFLOWS = Vocabulary(WorkflowCheck)
"""The checks and triggers that workflows may name. A configuration is a section of the settings."""

check_type, trigger_type = WORKFLOWS.check, WORKFLOWS.trigger

Value = TypeVar("Value")


class Member(Struct, frozen=True):
    """One node of the cluster with its workflows' data.

    `profiles` are the names that its label lists and the settings define. `platform` is the state of the
    profile of platform events. `problem` says why the data can't be read, empty where it can.
    """

    node: Node
    data: WorkflowData = WorkflowData()
    profiles: tuple[str, ...] = ()
    platform: State = State.OPERATIONAL
    problem: str = ""

    @property
    def in_maintenance(self) -> bool:
        """Whether the node is in maintenance for any profile; a node that can't be read may be."""
        if self.problem or self.platform is State.IN_MAINTENANCE:
            return True
        return any(one.current is State.IN_MAINTENANCE for one in self.data.profiles.values())


class Fleet(tuple[Member, ...]):
    """All nodes of the cluster, sorted by name.

    What follows from all of them is computed once and kept with them. A check is asked for each node: with
    thousands of nodes, one that goes over all of them each time would take minutes.
    """

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return what `compute` returned for this key, which it must depend on."""
        if key not in self._found:
            self._found[key] = compute()
        kept: Value = self._found[key]
        return kept

    @cached_property
    def _found(self) -> dict[Hashable, Any]:
        return {}


class WorkflowSituation(Struct, frozen=True):
    """Everything that a check or a trigger of a workflow may read.

    `since` is when the profile entered `state` (UTC), `now` is aware. `members` are all nodes of the cluster,
    this one included. `in_maintenance_here` names what the node is in maintenance for,
    the profile of platform events included. `platform` is what the checks of platform events read, None if
    that profile is off, and `silent` says which of the node's sources of events can't be read, and why.
    For triggers, `resumed` says that the chain has waited for the drain of the node, and runs again, and
    `taken_over` that maintenance-controller began the chain.
    """

    node: Node
    data: WorkflowData
    profile: str
    state: State
    since: datetime
    now: datetime
    members: Fleet = Fleet()
    read: ReadForChecks = ReadForChecks()
    in_maintenance_here: tuple[str, ...] = ()
    platform: Situation | None = None
    silent: tuple[str, ...] = ()
    keys: OwnKeys = keys_of()
    resumed: bool = False
    taken_over: bool = False

    @property
    def claim(self) -> Claim:
        """The claim of the profile on the cordon and the drain of the node."""
        return claim_of(self.profile)

    @property
    def second(self) -> datetime:
        """The moment as records keep it: in whole seconds."""
        return self.now.replace(microsecond=0)


Worked = Work[Record]
"""A node and its whole record as the triggers of its workflows so far leave them."""


def claim_of(profile: str) -> Claim:
    """Return the claim of a profile on the cordon and the drain of a node."""
    return Claim(CLAIM, profile)


def claimed_in(record: Record) -> tuple[str, ...]:
    """Return the workflows that claim the cordon or the drain of a node, sorted."""
    return tuple(claim.name for claim in record.of_features if claim.kind == CLAIM)


class Members:
    """The nodes by name, and what was read for checks. A node that moves counts as moved at once."""

    def __init__(self, members: Iterable[Member] = (), read: ReadForChecks | None = None) -> None:
        """Take all nodes of the cluster, in any order."""
        self._members = {one.node.name: one for one in sorted(members, key=lambda one: one.node.name)}
        self._all: Fleet | None = None
        self.read = read or ReadForChecks()

    @property
    def all(self) -> Fleet:
        """All nodes, sorted by name."""
        if self._all is None:
            self._all = Fleet(self._members.values())
        return self._all

    def of(self, name: str) -> Member:
        """Return one node; raises KeyError if there is none."""
        return self._members[name]

    def moved(self, node: Node, data: WorkflowData) -> None:
        """Note a node as its workflows leave it."""
        before = self._members[node.name]
        if (before.node, before.data) != (node, data):
            self._members[node.name] = replace(before, node=node, data=data)
            self._all = None


def members_of(
    nodes: Iterable[Node], records: Mapping[str, Record | Unreadable], selected: Selected, keys: OwnKeys
) -> tuple[Member, ...]:
    """Return each node with the data of its workflows. One that can't be read has a problem."""
    found = []
    for node in nodes:
        make = partial(_member, node, records.get(node.name), selected, keys)
        broken = Member(node, problem="an error in this program")
        found.append(guarded(f"the workflows of node {node.name} can't be read", make, broken)[0])
    return tuple(found)


def _member(node: Node, record: Record | Unreadable | None, selected: Selected, keys: OwnKeys) -> Member:
    profiles = selected(node.labels.get(keys.maintenance_profile, ""))
    platform = record.worst if isinstance(record, Record) else State.OPERATIONAL
    if isinstance(record, Unreadable):
        # It may be in maintenance.
        platform = State.IN_MAINTENANCE
    try:
        data = from_annotation(node.annotations.get(keys.maintenance_data, ""))
    except DataUnreadable as error:
        return Member(node, profiles=profiles, platform=platform, problem=str(error))
    return Member(node, data, profiles, platform)
