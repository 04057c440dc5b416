"""What people are told: a node that was met with pods on it never looks green."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconciler.model.case_outcome import outcome_of
from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan, Notice, NoticeType
from reconciler.model.record import CaseFacts, Record, record_of
from reconciler.settings.schema import Mode, Settings
from reconciler.simulation.clock import Actor, Happening
from reconciler.simulation.world import World
from tests.explore.history import Broken
from tests.explore.truth import KEYS, Truth, asks
from tests.laws import checked

_STARTED = " started"
_GO_WITH_THEIR_NODE = (Kind.PREEMPT, Kind.TERMINATE)


@dataclass(frozen=True, slots=True)
class _Strike:
    """The start of an event on a node from which pods had to be evicted; `at` is when passes can say so."""

    at: datetime
    node: str
    event_id: str


class Strikes:
    """The nodes by UID that were met with pods on them, while a source said so and the program could act."""

    def __init__(
        self, world: World, truth: Truth, counts: Counter[str], excused: Callable[[Node, Kind], bool]
    ) -> None:
        """Watch this world from its beginning; `counts` counts the checks.

        `excused` says whether the program may look away from an event of a kind on a node.
        """
        self._excused = excused
        self._world = world
        self._truth = truth
        self._counts = counts
        self._fresh: dict[str, _Strike] = {}
        self.missed: dict[str, set[str]] = {}
        """The ids of the events that met a node with pods on it, by its UID."""
        self._open: set[str] = set()
        self._lost: set[str] = set()
        """Nodes with an Event that the API server refused: a notifier never says so."""
        self.policy: Settings | None = None
        """The settings in force."""
        world.log.listeners.append(self._heard)

    def forget(self, uid: str) -> None:
        """Note that a person took the case or its record away."""
        self._fresh.pop(uid, None)
        self.missed.pop(uid, None)
        self._open.discard(uid)

    def _heard(self, happening: Happening) -> None:
        if happening.what == "notify failed" and happening.node in self._world.cluster.nodes:
            self._lost.add(self._world.cluster.nodes[happening.node].uid)
        if happening.actor is not Actor.PLATFORM or not happening.what.endswith(_STARTED):
            return
        node, policy = self._world.cluster.nodes[happening.node], self.policy
        kind = Kind(happening.what.removesuffix(_STARTED))
        if policy is None or policy.mode is Mode.OBSERVE or not policy.manages(node.labels):
            return
        if self._world.cluster.skew != timedelta():
            # A clock that is ahead takes every detector for dead.
            return
        record = record_of(node, KEYS.prefix)
        if self._excused(node, kind) or (record is not None and not _is_ours(record)):
            return
        if not self._is_told(node, happening.subject, policy) or not self._pods_to_go(node):
            return
        if kind in _GO_WITH_THEIR_NODE:
            self.missed.setdefault(node.uid, set()).add(happening.subject)
        else:
            self._fresh[node.uid] = _Strike(happening.at, node.name, happening.subject)

    def _is_told(self, node: Node, event_id: str, policy: Settings) -> bool:
        told = (one for channel in self._truth.channels(node, policy) for one in channel.told)
        return any(one.what == event_id and asks(one, node, policy, self._world) for one in told)

    def _pods_to_go(self, node: Node) -> bool:
        """Whether a pod is on the node that every drain of these histories evicts."""
        return any(
            pod.namespace == "shop" and pod.owner is not None and not pod.spec.empty_dir
            for pod in self._world.cluster.pods_on(node.name)
        )

    # What must hold.

    def rests(self) -> None:
        """Check what people were told, once passes have nothing more to do."""
        cluster = self._world.cluster
        told = {one.uid for one in cluster.events if one.notice.reason == "MaintenanceMissed"} | self._lost
        again = {one.uid: one.until for one in cluster.ledger.undone if one.until > self._world.now}
        fresh, self._fresh = self._fresh, {}
        for uid, strike in fresh.items():
            if uid in again:
                # The node can't be written before this moment, so nothing is said of it.
                self._fresh[uid] = replace(strike, at=again[uid])
            # A process that looked too late may have found the node empty.
            elif strike.at == self._world.now and strike.node in cluster.nodes:
                self._counts["missed"] += 1
                if uid not in told:
                    raise Broken("missed", f"{strike.node} was met with pods on it, and nobody was told")
                self.missed.setdefault(uid, set()).add(strike.event_id)
                self._open.add(uid)
        going_on = {node.uid for node in cluster.nodes.values() if _has_case(node)}
        self._open &= going_on

    def told(self, uid: str, notice: Notice) -> None:
        """Check a notice about a node."""
        if uid in self._open and notice.reason == "MaintenanceDone" and notice.type is NoticeType.NORMAL:
            raise Broken("missed", f"a node was met with pods on it, and the Event says {notice.message!r}")

    def planned(self, plans: Iterable[NodePlan]) -> None:
        """Check the outcomes of cases that end."""
        for one in plans:
            node = self._world.cluster.nodes.get(one.node)
            if one.ended is None or node is None or node.uid not in self._open:
                continue
            found = outcome_of(one.ended)
            self._counts["missed"] += 1
            if found is not None and found.result.good:
                raise Broken(
                    "missed", f"{one.node} was met with pods on it, and its case ends {found.result}"
                )
            self._open.discard(node.uid)


def _has_case(node: Node) -> bool:
    case = checked.case_of(node)
    return case.open or case.facts != CaseFacts()


def _is_ours(record: object) -> bool:
    return isinstance(record, Record) and not record.claimed_by
