"""Law 10: a dry run writes nothing and takes no lock; tests/real look at the audit log, too."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

from hypothesis import given, settings

from reconciler.drain.ahead import PodsAhead
from reconciler.model.clocks import Disagreement
from reconciler.model.instructions import PersonHold
from reconciler.model.node import Node, Wanted
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.ports import ClusterReader, Look, LookRequest, Outside
from reconciler.model.snapshot import Ledger
from reconciler.model.writes import ClusterWriter
from reconciler.run import rehearse
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws.hits import Hits
from tests.support import strategies
from tests.support.builders import NOW
from tests.support.searching import examples
from tests.support.worlds import look


class ReadOnly:
    """A world that can only be looked at: it has no method that writes, and so none to call."""

    def __init__(self, world: World) -> None:
        self._api = world.api

    def look(self, request: LookRequest) -> Look:
        return self._api.look(request)

    def completed(self, nodes: Sequence[Node], wanted: Wanted) -> Sequence[Node]:
        return self._api.completed(nodes, wanted)

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        return self._api.pods(node, placement=placement)

    def pods_with(self, label: str) -> tuple[Pod, ...]:
        return self._api.pods_with(label)

    def budgets(self) -> tuple[PodDisruptionBudget, ...]:
        return self._api.budgets()

    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        return self._api.namespaces()

    def ledger(self) -> Ledger:
        return self._api.ledger()

    def holds(self) -> tuple[PersonHold, ...]:
        return self._api.holds()

    def disagreement(self) -> Disagreement | None:
        return self._api.disagreement()

    def cordoned_by_us(self, nodes: Sequence[Node]) -> frozenset[str]:
        return self._api.cordoned_by_us(nodes)

    def uncordoned_by(self, node: Node) -> str:
        return self._api.uncordoned_by(node)

    def unplaced(self) -> tuple[Pod, ...]:
        return self._api.unplaced()

    def attached(self, staying: Mapping[str, frozenset[str]]) -> Mapping[str, tuple[str, ...]]:
        return self._api.attached(staying)


def reading(world: World) -> Outside:
    """What a rehearsal uses of the world."""
    reader = ReadOnly(world)
    return Outside(reader=reader, clients=world.clients, itself=world.outside.itself, ahead=PodsAhead(reader))


ACTS = Hits()


@ACTS.at_least(20)
@settings(max_examples=examples(80))
@given(strategies.worlds(), strategies.policies())
def test_a_rehearsal_needs_only_reads_and_leaves_the_cluster_as_it_was(
    world: World, policy: Settings
) -> None:
    before, log = dict(world.cluster.nodes), list(world.log.happenings)
    plan = rehearse(reading(world), policy, NOW)

    ACTS.count(any(one.acts for one in plan.nodes))
    assert world.cluster.nodes == before
    assert (world.log.happenings, world.api.writes) == (log, 0)


REHEARSED = Hits()


@REHEARSED.at_least(30)
@settings(max_examples=examples(80))
@given(strategies.worlds(), strategies.policies())
def test_a_rehearsal_decides_what_the_pass_then_does(world: World, policy: Settings) -> None:
    rehearsed = rehearse(reading(world), policy, NOW)
    plan, _ = look(world, policy)

    assert all(one.draining.preview is None for one in rehearsed.nodes)
    REHEARSED.count(bool(world.api.done))
    assert rehearsed == plan


def test_nothing_that_a_rehearsal_is_given_can_write_or_lock() -> None:
    reads = {name for name, _ in inspect.getmembers(ClusterReader, inspect.isfunction)}
    writes = {name for name, _ in inspect.getmembers(ClusterWriter, inspect.isfunction)}
    given = {name: str(one.annotation) for name, one in inspect.signature(rehearse).parameters.items()}
    given_types = {*given.values(), *Outside.__annotations__.values()}

    assert given["outside"] == "Outside"
    assert {name for name in dir(ReadOnly) if not name.startswith("_")} <= reads
    assert {"patch_node", "write_ledger"} <= writes
    assert not {"patch_node", "write_ledger", "notify"} & reads
    writers = ("Writer", "Lock", "Drain", "Notifier")
    assert not any(word in name for word in writers for name in given_types)
