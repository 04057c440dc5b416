"""What checks and triggers of workflows may read.

The engine gives each check the state of the pass so far: a node that entered maintenance earlier in the same
pass is in maintenance in `members`, and a Lease that it takes is in `read` (`ReadForChecks.taken`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct

from reconciler.model.keys import OwnKeys, keys_of
from reconciler.model.node import Node
from reconciler.model.record import State
from reconciler.model.workflow import ReadForChecks, WorkflowData
from reconciler.profiles.situation import Situation

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


class CheckInput(Struct, frozen=True):
    """Everything that a check of a workflow may read.

    `since` is when the profile entered `state` (UTC), `now` is aware. `members` are all nodes of the cluster,
    this one included. `in_maintenance_here` names what the node is in maintenance for,
    the profile of platform events included. `platform` is what the checks of platform events read, None if
    that profile is off, and `silent` says which of the node's sources of events can't be read, and why.
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
