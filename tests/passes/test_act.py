"""Carrying a plan out: what is written first, what a failure stops, and what it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from reconciler.model.errors import ClusterError, Conflict, Forbidden, LockLost, NotFound, Unreachable
from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.messages import ProfileMessage
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import Actions, NodePlan, Plan, Transition, outcome_name
from reconciler.model.record import Cordon, DrainRecord, State, from_annotation
from reconciler.model.snapshot import NOT_WRITTEN
from reconciler.model.values import replace
from reconciler.model.writes import node_write
from reconciler.passes.act import act
from reconciler.run import AGAIN, rehearse
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.builders import NOW, PREFIX, RECORD, REQUEST, minutes
from tests.support.worlds import look, world_of

TWO = "budget: {maxUnavailable: 2}"
SPACED = "budget: {maxUnavailable: 2, spacing: 1s}"


def _asking(*names: str) -> World:
    return world_of([builders.node(name, annotations={REQUEST: builders.DRAIN_NOW}) for name in names])


def _one_of_two_spaced() -> World:
    """Two nodes that start at once: `b` waits for no spacing, because it is lost anyway."""
    world = _asking("a", "b")
    world.cluster.annotate("b", REQUEST, '{"kind":"Preempt"}')
    return world


def _act(world: World, text: str = TWO) -> tuple[Outcome, ...]:
    return look(world, builders.settings(text))[1]


def _failing(name: str, error: Exception, what: str = "patch_node") -> Callable[[Call], None]:
    def fail(write: Call) -> None:
        if (write.what, write.node) == (what, name):
            raise error

    return fail


def test_every_node_is_cordoned_before_the_first_is_drained() -> None:
    world = _asking("a", "b")
    outcomes = _act(world)

    assert [(one.node, one.action, one.result) for one in outcomes] == [
        ("a", "cordon", Result.DONE),
        ("b", "cordon", Result.DONE),
        ("a", "drain", Result.RUNNING),
        ("b", "drain", Result.RUNNING),
    ]
    assert sorted(world.drainer.orders) == ["a", "b"]


@pytest.mark.parametrize(
    ("scope", "stops", "begun"),
    [
        pytest.param("all", True, [], id="all nodes"),
        pytest.param("pool np", True, ["b"], id="a pool"),
        pytest.param("all", False, ["a", "b"], id="a hold that stops no drain"),
    ],
)
def test_a_hold_that_comes_while_the_nodes_are_cordoned_stops_the_drains_before_they_begin(
    scope: str, stops: bool, begun: list[str]
) -> None:
    world = _asking("b")
    world.cluster.add_node(
        builders.node("a", labels={"agentpool": "np"}, annotations={REQUEST: builders.DRAIN_NOW})
    )
    hold = PersonHold(Word("alice@laptop", NOW, scope=scope), stops)

    def hold_now(call: Call) -> None:
        if (call.what, call.node) == ("patch_node", "b"):
            world.cluster.ledger = replace(world.cluster.ledger, holds=(hold,))

    world.api.after_write = hold_now
    outcomes = _act(world)

    drains = {one.node: one for one in outcomes if one.action == "drain"}
    assert sorted(world.drainer.orders) == begun
    for name in {"a", "b"} - set(begun):
        assert drains[name].result is Result.LATER
        assert "held by alice@laptop" in drains[name].detail


def test_no_drain_begins_while_the_holds_of_all_nodes_can_not_be_read() -> None:
    world = _asking("a")

    def refuse_after_the_cordon(call: Call) -> None:
        if call.what == "ledger" and world.cluster.nodes["a"].unschedulable:
            raise Unreachable("no answer")

    world.api.before_read = refuse_after_the_cordon
    outcomes = _act(world)

    assert [(one.action, one.result) for one in outcomes] == [
        ("cordon", Result.DONE),
        ("drain", Result.FAILED),
    ]
    assert world.drainer.orders == {}


def test_the_holds_of_all_nodes_are_not_read_again_for_drains_that_run() -> None:
    world = _asking("a")
    _act(world)
    reads: list[str] = []
    world.api.before_read = lambda call: reads.append(call.what)
    outcomes = _act(world)

    assert [(outcome.action, outcome.result) for outcome in outcomes] == [("drain", Result.RUNNING)]
    assert reads.count("ledger") == 1


def test_the_ledger_is_written_before_the_start_that_it_records() -> None:
    world = _one_of_two_spaced()
    _act(world, SPACED)

    # The cordon of `b` waits for nothing.
    assert [(write.what, write.node) for write in world.api.done] == [
        ("patch_node", "b"),
        ("write_ledger", ""),
        ("patch_node", "a"),
        ("notify", "b"),
        ("notify", "a"),
    ]


@pytest.mark.parametrize(
    ("error", "result"),
    [
        pytest.param(Conflict("changed"), Result.LATER, id="somebody changed it"),
        pytest.param(NotFound("gone"), Result.LATER, id="it has gone"),
        pytest.param(Forbidden("no"), Result.FAILED, id="it may not be written"),
        pytest.param(Unreachable("no"), Result.FAILED, id="the server is away"),
    ],
)
def test_a_node_that_could_not_be_written_is_not_drained_and_gets_no_event(
    error: ClusterError, result: Result
) -> None:
    world = _asking("a", "b")
    world.api.before_write = _failing("a", error)
    outcomes = _act(world)

    written = next(one for one in outcomes if one.node == "a")
    assert replace(written, lost=(), changed=False) == Outcome("a", "cordon", result, str(error))
    assert list(world.drainer.orders) == ["b"]
    told = [write.subject for write in world.api.done if (write.what, write.node) == ("notify", "a")]
    # A repetition is no help only where the server refuses the write.
    assert told == ([NOT_WRITTEN] if isinstance(error, Forbidden) else [])


def test_a_lost_lock_ends_everything_at_once() -> None:
    world = _asking("a", "b")
    world.api.before_write = _failing("a", LockLost("not renewed"))

    with pytest.raises(LockLost):
        _act(world)
    assert (world.api.done, world.drainer.orders) == ([], {})


def test_without_the_ledger_nothing_starts_that_waits_for_spacing() -> None:
    world = _one_of_two_spaced()
    world.api.before_write = _failing("", Forbidden("no"), "write_ledger")

    assert [(one.node, one.action, one.result) for one in _act(world, SPACED)] == [
        ("b", "cordon", Result.DONE),
        ("", "write ledger", Result.FAILED),
        ("b", "drain", Result.RUNNING),
    ]
    assert list(world.drainer.orders) == ["b"]


@pytest.fixture
def changed() -> Callable[[World, Callable[[], None]], None]:
    """Lets somebody change the node `a` once, between the read of a pass and its write."""

    def before_its_write(world: World, change: Callable[[], None]) -> None:
        waiting = [change]

        def before(write: Call) -> None:
            if (write.what, write.node) == ("patch_node", "a") and waiting:
                waiting.pop()()

        world.api.before_write = before

    return before_its_write


Changed = Callable[[World, Callable[[], None]], None]


def test_a_node_that_somebody_cordons_meanwhile_is_drained_in_the_same_pass(changed: Changed) -> None:
    world = _asking("a", "b")
    changed(world, lambda: world.cluster.cordon("a"))
    plan, outcomes = look(world, builders.settings(TWO))

    assert {(one.node, one.result) for one in outcomes} == {
        (name, result) for name in "ab" for result in (Result.DONE, Result.RUNNING)
    }
    assert sorted(world.drainer.orders) == ["a", "b"]
    node = world.cluster.nodes["a"]
    record = from_annotation(node.annotations[RECORD], node.uid)
    assert record is not None
    assert record.cordon is not None
    assert record.cordon.whose is Cordon.FOREIGN
    # The plan says of each node what was done.
    assert {node.node: node.todo.write is not None for node in plan.nodes} == {"a": True, "b": True}


def test_a_node_that_somebody_holds_meanwhile_is_held_in_the_same_pass(changed: Changed) -> None:
    world = _asking("a", "b")
    hold = hold_text(PersonHold(Word("alice@laptop", NOW)))
    changed(world, lambda: world.cluster.annotate("a", f"{PREFIX}/hold", hold))
    plan, outcomes = look(world, builders.settings(TWO))

    assert not world.cluster.nodes["a"].unschedulable
    assert list(world.drainer.orders) == ["b"]
    assert "notHeld" in {hold.code for node in plan.nodes if node.node == "a" for hold in node.holds}
    assert not [one for one in outcomes if one.notable]


def test_what_others_change_before_each_write_is_no_write_that_did_not_stay() -> None:
    """A pass decides again a few times, and so does the next one, without a pause or a Warning Event."""
    world = _asking("a", "b")
    tries = 0

    def change(write: Call) -> None:
        nonlocal tries
        if (write.what, write.node) == ("patch_node", "a"):
            tries += 1
            raise Conflict("someone changed the keys")

    world.api.before_write = change
    for passes in (1, 2, 3):
        outcomes = _act(world)
        assert [one.result for one in outcomes if one.node == "a"] == [Result.LATER]
        assert tries == passes * (1 + AGAIN)
    assert world.cluster.ledger.undone == ()
    assert NOT_WRITTEN not in {one.notice.reason for one in world.cluster.events}
    assert list(world.drainer.orders) == ["b"]

    world.api.before_write = None
    _act(world)
    assert world.cluster.nodes["a"].unschedulable


def test_what_was_done_is_reported_if_the_nodes_can_not_be_read_again(changed: Changed) -> None:
    world = _asking("a", "b")

    def break_reads() -> None:
        def refuse(call: Call) -> None:
            if call.what == "ledger" and call.number > reads:
                raise Unreachable("no answer")

        world.cluster.cordon("a")
        reads = world.api.reads
        world.api.before_read = refuse

    changed(world, break_reads)
    outcomes = _act(world)

    assert {one.node: one.result for one in outcomes if one.action == "cordon"} == {
        "a": Result.LATER,
        "b": Result.DONE,
    }


def test_a_node_whose_foreign_keys_have_changed_is_still_written() -> None:
    world = _asking("a", "b")
    world.api.before_write = lambda write: (
        world.cluster.annotate(write.node, "example.com/x", "y") if write.what == "patch_node" else None
    )
    outcomes = _act(world)

    assert {one.result for one in outcomes if one.action == "cordon"} == {Result.DONE}
    assert not [one for one in outcomes if one.notable]


def test_drains_are_stopped_before_anything_is_written() -> None:
    held = builders.record(drain=DrainRecord(NOW - minutes(1)))
    world = world_of([builders.held_node(held)])
    order = builders.plan_of(
        builders.planned(
            builders.snapshot(
                *world.cluster.nodes.values(), readings={"a": builders.reported(builders.signal())}
            )
        )
    ).todo.drain
    assert order is not None
    world.drainer.start(order)
    running: list[bool] = []
    world.api.before_write = lambda write: running.append("a" in world.drainer.orders)
    outcomes = _act(world)

    assert [(one.action, one.result) for one in outcomes] == [
        ("stop drain", Result.DONE),
        ("update record", Result.DONE),
    ]
    assert running == [False]


def test_an_empty_plan_writes_nothing() -> None:
    world = world_of()

    assert act(Plan(NOW, "Enforce"), world.outside) == ()
    assert world.api.done == []


def test_nothing_to_write_has_no_name() -> None:
    assert outcome_name(NodePlan("a", "", "", State.OPERATIONAL, State.OPERATIONAL)) == ""


def test_notices_are_sent_after_every_drain_has_begun() -> None:
    world = _asking("a", "b")
    begun: list[list[str]] = []
    world.api.before_write = lambda write: (
        begun.append(sorted(world.drainer.orders)) if write.what == "notify" else None
    )
    _act(world)

    assert begun == [["a", "b"], ["a", "b"]]


def test_after_three_notices_that_fail_a_pass_sends_no_more() -> None:
    world = _asking("a", "b", "c", "d", "e")
    asked: list[str] = []

    def refuse(write: Call) -> None:
        if write.what == "notify":
            asked.append(write.node)
            raise Unreachable("no answer in time")

    world.api.before_write = refuse
    outcomes = _act(world, "budget: {maxUnavailable: 100%}")

    assert asked == ["a", "b", "c"]
    assert [one for one in outcomes if one.notable] == []


@pytest.mark.parametrize(
    ("after", "unschedulable", "annotations", "name"),
    [
        pytest.param(State.IN_MAINTENANCE, True, {}, "cordon", id="cordon"),
        pytest.param(State.OPERATIONAL, False, {}, "uncordon", id="uncordon"),
        pytest.param(State.REQUIRED, None, {RECORD: "{}"}, "move to maintenance-required", id="a step"),
        pytest.param(State.OPERATIONAL, None, {RECORD: "{}"}, "update record", id="no step"),
        pytest.param(State.OPERATIONAL, None, {"other.example/shown": "x"}, "publish", id="only shown"),
    ],
)
def test_an_outcome_names_the_write(
    after: State, unschedulable: bool | None, annotations: dict[str, str | None], name: str
) -> None:
    before = State.OPERATIONAL
    write = node_write(builders.node(), PREFIX, unschedulable=unschedulable, annotations=annotations)
    steps = (Transition("default", before, after, ""),)
    plan = NodePlan("a", "", "", before, after, transitions=steps, todo=Actions(write=write))

    assert outcome_name(plan) == name


class _Outbox:
    """Keeps messages, and notes whether the node was written before."""

    def __init__(self, world: World, error: Exception | None = None) -> None:
        self.world, self.error = world, error
        self.kept: list[tuple[str, bool]] = []

    def keep(self, messages: Sequence[ProfileMessage]) -> None:
        if self.error is not None:
            raise self.error
        self.kept += [(one.id, self.world.cluster.nodes["a"].unschedulable) for one in messages]


@pytest.mark.parametrize("error", [None, ValueError("broken")])
def test_a_message_is_kept_before_its_node_is_written_and_a_failure_stops_nothing(
    error: Exception | None,
) -> None:
    world = _asking("a")
    plan = rehearse(world.outside, builders.settings(TWO), world.now)
    message = ProfileMessage("id", "tell", "a", NOW, "text")
    (node,) = plan.nodes
    plan = replace(plan, nodes=(replace(node, todo=replace(node.todo, messages=(message,))),))
    outbox = _Outbox(world, error)
    act(plan, replace(world.outside, outbox=outbox))

    assert outbox.kept == ([] if error else [("id", False)])
    assert world.cluster.nodes["a"].unschedulable
