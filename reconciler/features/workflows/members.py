"""All nodes as the checks of workflows read them, and how that changes within a pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from reconciler.features.workflows.configured import Workflows
from reconciler.features.workflows.data import DataUnreadable, from_annotation
from reconciler.features.workflows.input import Fleet, Member
from reconciler.model.keys import OwnKeys
from reconciler.model.node import Node
from reconciler.model.problems import guarded
from reconciler.model.record import Record, State, Unreadable
from reconciler.model.values import replace
from reconciler.model.workflow import ReadForChecks, WorkflowData


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
    nodes: Iterable[Node],
    records: Mapping[str, Record | Unreadable],
    workflows: Workflows,
    keys: OwnKeys,
) -> tuple[Member, ...]:
    """Return each node with the data of its workflows. One that can't be read has a problem."""
    if not workflows.on:
        return ()
    found = []
    for node in nodes:
        make = partial(_member, node, records.get(node.name), workflows, keys)
        broken = Member(node, problem="an error in this program")
        found.append(guarded(f"the workflows of node {node.name} can't be read", make, broken)[0])
    return tuple(found)


def _member(node: Node, record: Record | Unreadable | None, workflows: Workflows, keys: OwnKeys) -> Member:
    profiles = workflows.selected(node.labels.get(keys.workflows, ""))
    platform = record.worst if isinstance(record, Record) else State.OPERATIONAL
    if isinstance(record, Unreadable):
        # It may be in maintenance.
        platform = State.IN_MAINTENANCE
    try:
        data = from_annotation(node.annotations.get(keys.workflow_data, ""))
    except DataUnreadable as error:
        return Member(node, profiles=profiles, platform=platform, problem=str(error))
    return Member(node, data, profiles, platform)
