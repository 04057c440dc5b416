"""Law 26: a cordon waits for no read but that of nodes and the ledger, and for no other write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from reconciler.drain.ahead import PodsAhead
from reconciler.kubernetes.connection import Connection
from reconciler.kubernetes.scale import cluster as reading
from reconciler.kubernetes.scale.beside import ThreadsBeside
from reconciler.kubernetes.scale.cluster import CachedCluster
from reconciler.kubernetes.scale.node_store import NodeStore
from reconciler.kubernetes.scale.side_by_side import SideBySide
from reconciler.model import ports
from reconciler.model.errors import Late, Unreachable
from reconciler.model.instructions import PersonHold, Word
from reconciler.model.node import Node
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import Plan
from reconciler.model.ports import WritableOutside
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.run import run_pass
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.jobs.stub_cluster import StubCluster
from tests.jobs.stub_cluster import node as stub_node
from tests.support import builders
from tests.support.builders import NOW, REQUEST, minutes, plan_of
from tests.support.stub import Answer, Asked, Stub, status
from tests.support.worlds import in_pool, store_of, world_of

SOON = 5.0
"""Seconds in which a cordon is written."""

PATIENCE = 0.1
"""Seconds for which passes wait here, in place of one second."""

PREEMPT = '{"kind":"Preempt"}'

LEDGER = "/configmaps/node-maintenance-ledger"

_POD = builders.pod("web", "a")
_NODE = Node("a", "uid-a", "7", unschedulable=True)

NEEDED = {"look", "completed", "ledger", "holds", "disagreement"}
"""What a pass reads in its place. Holds are read after the cordons, beside the pass."""

LOOKED_AT = {"agents", "remediator", "server_version"}
"""What a look reads besides the nodes and the ledger."""

READS: dict[str, tuple[Any, ...]] = {
    "pods": ("a",),
    "pods_with": ("app",),
    "budgets": (),
    "namespaces": (),
    "agents": (),
    "remediator": (),
    "server_version": (),
    "cordoned_by_us": ([_NODE],),
    "uncordoned_by": (_NODE,),
    "unplaced": (),
    "attached": ({"a": frozenset[str]()},),
    "reconciler_of": ("second",),
}
"""Each read of a pass with what it gets."""


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CachedCluster, ThreadsBeside]]:
    """A client of an API server that answers nothing."""
    with closing(Stub(lambda _: Answer(hang=True))) as stub:
        kubeconfig = stub.write_kubeconfig(tmp_path_factory.mktemp("silent") / "kubeconfig")
        beside = ThreadsBeside()
        yield CachedCluster(Connection(str(kubeconfig)), guard=lambda: None, beside=beside), beside


def test_every_read_is_known() -> None:
    readers = (ports.ClusterReader, ports.LockReader)
    names = {name for reader in readers for name in vars(reader) if not name.startswith("_")}
    assert names | LOOKED_AT == READS.keys() | NEEDED


@pytest.mark.parametrize("name", READS)
def test_no_read_of_the_cluster_holds_a_pass(silent: tuple[CachedCluster, ThreadsBeside], name: str) -> None:
    cluster, beside = silent
    beside.begins(PATIENCE)
    began = time.monotonic()
    with suppress(Late):
        assert not getattr(cluster, name)(*READS[name])
    assert time.monotonic() - began < SOON


class _Faulty(StubCluster):
    """A cluster of which all requests have a fault but those of nodes, and those that `spared` names."""

    def __init__(self, folder: Path, *names: str) -> None:
        super().__init__(folder, *(stub_node(name) for name in names))
        self.fault: Answer | None = None
        self.spared = LEDGER

    def instead(self, asked: Asked) -> Answer | None:
        spared = asked.path.startswith("/api/v1/nodes") or asked.path.endswith(self.spared)
        return None if spared else self.fault


class _Passes:
    """Passes of one process over such a cluster."""

    def __init__(self, there: _Faulty, text: str) -> None:
        self.there, self.settings = there, builders.settings(text)
        self.connection = Connection(str(there.kubeconfig))
        self.ahead = 0.0
        self.beside = ThreadsBeside(seconds=lambda: time.monotonic() + self.ahead)
        self.cluster = CachedCluster(
            self.connection, guard=lambda: None, store=NodeStore(), beside=self.beside
        )
        self.world = world_of()
        self.outside = replace(
            self.world.outside,
            reader=self.cluster,
            writer=self.cluster,
            ahead=PodsAhead(self.cluster),
            beside=self.beside,
        )

    def notice(self, name: str) -> float:
        """Let a node be preempted; the seconds until it is cordoned by one pass."""
        self.there.annotations(name)[REQUEST] = PREEMPT
        began = time.monotonic()
        self.run()
        assert self.cordoned(name)
        return time.monotonic() - began

    def run(self) -> tuple[Plan, tuple[Outcome, ...]]:
        self.beside.begins(PATIENCE)
        return run_pass(self.outside, self.settings, self.connection.time.now())

    def cordoned(self, name: str) -> bool:
        return bool(self.there.nodes[name]["spec"].get("unschedulable"))


READS_MUCH = """
budget: {maxUnavailable: 100%}
publish: [nodemaintenances]
drain: {rules: [{name: kept, namespaces: {matchLabels: {keep: "yes"}}, behavior: Skip}]}
"""


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Answer(hang=True), id="silent"),
        pytest.param(status(429, Retry_After="1"), id="429"),
        pytest.param(status(500), id="500"),
    ],
)
@pytest.mark.parametrize("ledger", [True, False], ids=["a ledger", "the last ledger"])
def test_each_of_three_notices_is_cordoned_while_all_else_fails(
    tmp_path: Path, fault: Answer, ledger: bool
) -> None:
    with closing(_Faulty(tmp_path, "x", "a", "b", "c")) as there:
        passes = _Passes(there, READS_MUCH)
        passes.notice("x")
        there.fault, there.spared = fault, LEDGER if ledger else "nothing"

        assert max(map(passes.notice, "abc")) < SOON


def test_a_first_pass_cordons_what_the_agent_published_though_nothing_else_answers(tmp_path: Path) -> None:
    with closing(_Faulty(tmp_path, "a")) as there:
        there.fault = Answer(hang=True)
        event = {"EventId": "A1", "EventType": "Preempt", "EventStatus": "Scheduled", "NotBefore": ""}
        there.annotations("a")[builders.IMDS] = builders.published(event)
        passes = _Passes(there, READS_MUCH)
        passes.run()

        assert passes.cordoned("a")


@pytest.mark.parametrize("text", ["budget: {maxUnavailable: 100%}", "budget: {spacing: 1s}"])
def test_no_write_of_one_node_holds_the_cordons_of_others_or_the_pass(text: str) -> None:
    world, over = world_of(), Event()
    in_pool(world, "a", "b", "c", "d")
    beside = ThreadsBeside()
    outside = replace(world.outside, beside=beside, side_by_side=SideBySide(lambda: 0, beside=beside))

    def hang(call: Call) -> None:
        if call.what == "patch_node" and call.node == "a":
            over.wait(4 * SOON)

    world.api.before_write = hang
    chosen = builders.settings(text)
    try:
        for names in ("ab", "c", "d"):
            for name in names:
                world.cluster.annotate(name, REQUEST, PREEMPT)
            beside.begins(PATIENCE)
            began = time.monotonic()
            plan, outcomes = run_pass(outside, chosen, world.now)
            assert time.monotonic() - began < SOON
            assert world.cluster.nodes[names[-1]].unschedulable, plan_of(plan, names[-1]).holds
            assert beside.late
            said = [outcome for outcome in outcomes if outcome.node == "a"]
            assert [outcome.result for outcome in said] == [Result.LATER]
            assert "no answer yet" in said[0].detail
        assert not world.cluster.nodes["a"].unschedulable
    finally:
        over.set()


# The ledger.


def _held(*, ends: float | None) -> PersonHold:
    until = NOW + minutes(ends) if ends is not None else None
    return PersonHold(Word("alice", NOW, until, "", "all"))


@pytest.mark.parametrize(
    ("hold", "cordoned"),
    [
        pytest.param((), True, id="without a hold"),
        pytest.param((_held(ends=None),), False, id="with a hold"),
        pytest.param((_held(ends=6),), False, id="with one that has ended since it was read"),
        pytest.param((_held(ends=4),), True, id="with one that had ended before"),
    ],
)
def test_the_last_ledger_is_enough_for_a_cordon_unless_it_could_hide_a_hold(
    hold: tuple[PersonHold, ...], cordoned: bool
) -> None:
    world = world_of([builders.node("a", annotations={REQUEST: PREEMPT}), builders.node("b")])
    world.advance(minutes(10))
    world.cluster.ledger = Ledger(holds=hold, as_of=NOW + minutes(5))
    plan, _ = run_pass(world.outside, builders.settings(), world.now)

    assert world.cluster.nodes["a"].unschedulable is cordoned
    assert any("the ledger can't be read" in note for note in plan.notes)


def test_no_drain_begins_by_the_last_ledger_which_has_a_bounded_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LEDGER_COUNTS", 120.0)
    with closing(_Faulty(tmp_path, "x", "a", "b")) as there:
        passes = _Passes(there, READS_MUCH)
        passes.notice("x")
        there.fault, there.spared = status(500, Retry_After="3600"), "nothing"
        # Later than any other answer counts.
        passes.ahead = 90
        passes.notice("a")
        assert list(passes.world.drainer.orders) == ["x"]

        passes.ahead = 121
        there.annotations("b")[REQUEST] = PREEMPT
        with pytest.raises(Unreachable):
            passes.run()
        assert not passes.cordoned("b")


def test_a_ledger_that_was_only_read_is_enough_for_a_cordon(tmp_path: Path) -> None:
    with closing(_Faulty(tmp_path, "a")) as there:
        passes = _Passes(there, READS_MUCH)
        passes.run()
        there.fault, there.spared = status(500, Retry_After="3600"), "nothing"
        passes.ahead = 90

        assert passes.notice("a") < SOON


# All else that a pass reads and writes.


class _Silent:
    """A port that answers once the test is over, or too late."""

    def __init__(self, over: Event) -> None:
        self._over = over

    def _wait(self, *_: object) -> Any:
        self._over.wait(SOON + 1)
        raise Unreachable("over")

    ask = read = machines = answers = run = _wait


def _silent_port(name: str) -> Callable[[WritableOutside, World, Event], WritableOutside]:
    def change(outside: WritableOutside, _: World, over: Event) -> WritableOutside:
        changes: Any = {name: _Silent(over)}
        return replace(outside, **changes)

    return change


def _silent_client(name: str) -> Callable[[WritableOutside, World, Event], WritableOutside]:
    def change(outside: WritableOutside, _: World, over: Event) -> WritableOutside:
        return replace(outside, clients={name: _Silent(over)})

    return change


def _silent_write(what: str) -> Callable[[WritableOutside, World, Event], WritableOutside]:
    def change(outside: WritableOutside, world: World, over: Event) -> WritableOutside:
        def hang(call: Call) -> None:
            if call.what == what:
                over.wait(SOON + 1)
                raise Unreachable("over")

        world.api.before_write = hang
        return outside

    return change


ALL = """
budget: {maxUnavailable: 100%, spacing: 1s}
events: {Preempt: {replace: true}}
sources: {arm: {enabled: true}}
publish: [node-conditions, nodemaintenances]
hooks: {preDrain: [{name: backup, webhook: {url: "https://backup.example/run"}}]}
"""

CALENDAR = "calendars: [{name: freeze, file: /f.ics}]\n"
"""While it is not known, nothing starts before its deadline."""


@pytest.mark.parametrize(
    ("silence", "more"),
    [
        pytest.param(_silent_port("calendars"), CALENDAR, id="calendars"),
        pytest.param(_silent_port("machines"), "", id="machines"),
        *(pytest.param(_silent_client(name), "", id=name) for name in ("arm", "hooks")),
        *(
            pytest.param(_silent_write(what), "", id=what)
            for what in ("write_ledger", "write_maintenance", "patch_conditions")
        ),
    ],
)
def test_no_port_and_no_other_write_holds_a_cordon(
    silence: Callable[[WritableOutside, World, Event], WritableOutside], more: str
) -> None:
    world, over = world_of(), Event()
    in_pool(world, "a", "b", "c", "x")
    for number, name in enumerate("abcx"):
        world.cluster.put_node(builders.on_vm(world.cluster.nodes[name], number))
    beside, store = ThreadsBeside(), store_of(world)
    chosen = builders.settings(ALL + more)
    # The start of this one is to be noted in the ledger.
    world.cluster.annotate("x", REQUEST, builders.DRAIN_NOW)
    try:
        for name in "abc":
            world.cluster.annotate(name, REQUEST, PREEMPT)
            outside = silence(replace(world.outside, beside=beside), world, over)
            beside.begins(PATIENCE)
            began = time.monotonic()
            plan, _ = run_pass(outside, chosen, world.now, store)
            assert time.monotonic() - began < SOON
            assert world.cluster.nodes[name].unschedulable, plan_of(plan, name).holds
    finally:
        over.set()
