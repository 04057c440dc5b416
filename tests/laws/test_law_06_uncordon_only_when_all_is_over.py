"""Law 6: uncordon only when the event is gone from all its sources and the node is Ready, both for long."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.node import Condition
from reconciler.model.snapshot import Agents
from reconciler.model.writes import NodeWrite
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.laws import checked
from tests.laws.histories import MAIN, History
from tests.laws.hits import Hits
from tests.support import builders
from tests.support.builders import IMDS, NOW, REQUEST, minutes
from tests.support.searching import QUARTER, examples
from tests.support.worlds import carry_on, in_pool, look, world_of

STARTED = {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Started", "NotBefore": ""}
SCHEDULED = {**STARTED, "EventStatus": "Scheduled", "NotBefore": "Sat, 21 Nov 2026 12:10:00 GMT"}
THINGS = (
    "request",
    "withdraw",
    "imds scheduled",
    "imds started",
    "imds gone",
    "condition scheduled",
    "condition started",
    "condition gone",
    "condition unknown",
    "agent dies",
    "agent lives",
    "node down",
    "node up",
    "upgrade begins",
    "upgrade ends",
    "nothing",
    "nothing",
)

END = [("all over", 30), *[("nothing", 150)] * 3]
"""What ends any case, and enough passes after it."""


def _happen(world: World, what: str, now: datetime) -> None:
    match what.split():
        case ["all", "over"]:
            for each in ("withdraw", "imds gone", "condition gone", "agent lives", "node up"):
                _happen(world, each, now)
        case ["request"]:
            world.cluster.annotate("a", REQUEST, builders.DRAIN_NOW)
        case ["withdraw"]:
            world.cluster.annotate("a", REQUEST, None)
        case ["imds", word]:
            document = {"scheduled": SCHEDULED, "started": STARTED}.get(word)
            world.cluster.annotate("a", IMDS, builders.published(document) if document else None)
        case ["condition", "scheduled"]:
            message = "Reboot Scheduled: Sat, 21 Nov 2026 12:10:00 GMT. EventId: A1"
            world.cluster.set_condition("a", builders.condition(MAIN, "True", message, at=now))
        case ["condition", "started"]:
            world.cluster.set_condition(
                "a", builders.condition(MAIN, "True", "Reboot Started. EventId: A1", at=now)
            )
        case ["condition", word]:
            status = {"gone": "False"}.get(word, "Unknown")
            world.cluster.set_condition("a", builders.condition(MAIN, status, "IMDS failed", at=now))
        case ["agent", word]:
            blind = frozenset(("a",)) if word == "dies" else frozenset[str]()
            world.cluster.agents = Agents(installed=True, not_ready=blind)
        case ["upgrade", word]:
            for key, value in builders.IN_UPGRADE.items():
                world.cluster.annotate("a", key, value if word == "begins" else None)
        case ["node", word]:
            up = "True" if word == "up" else "False"
            world.cluster.set_condition("a", Condition("Ready", up, transition=now))


def _reported_and_restless(world: World, reported: set[str]) -> bool:
    """Whether any source that has reported the event still reports it, or can't be read."""
    node = world.cluster.nodes["a"]
    if REQUEST in node.annotations:
        reported.add("request")
    if IMDS in node.annotations and not world.cluster.agents.not_ready:
        reported.add("imds")
    main = node.condition(MAIN)
    assert main is not None
    if main.status == "True":
        reported.add("condition")
    blind = bool(world.cluster.agents.not_ready)
    return (
        REQUEST in node.annotations
        or ("imds" in reported and (blind or IMDS in node.annotations))
        or ("condition" in reported and main.status != "False")
    )


OPENED = Hits()


@OPENED.at_least(50, QUARTER)
@settings(max_examples=examples(300, QUARTER))
@given(
    st.sampled_from((0, 1, 2, 5)),
    st.lists(
        st.tuples(st.sampled_from(THINGS), st.sampled_from((0, 30, 60, 120, 300, 900))),
        min_size=4,
        max_size=25,
    ),
    st.booleans(),
)
def test_over_any_history_an_uncordon_comes_after_a_quiet_and_ready_settle_time(
    settle: int, steps: list[tuple[str, int]], ends: bool
) -> None:
    steps = [*steps, *END] if ends else steps
    policy = builders.settings(f"uncordon: {{settle: {settle}m}}\nbudget: {{maxUnavailable: 100%}}")
    history = History(world_of([builders.node("a", conditions=(builders.quiet(),))]), policy)
    reported: set[str] = set()
    quiet_since: list[datetime] = []

    def check(write: Call) -> None:
        if isinstance(write.content, NodeWrite) and write.content.unschedulable is False:
            node = history.cluster.nodes["a"]
            OPENED.count()
            assert quiet_since, "a source reports the event, or can't say"
            assert history.now - quiet_since[0] >= policy.uncordon.settle
            assert not checked.in_upgrade(node), "AKS upgrades the node, and uncordons it itself"
            assert node.ready
            assert node.ready_changed is not None
            assert history.now - node.ready_changed >= policy.uncordon.settle
            reported.clear()

    history.api.before_write = check
    _happen(history.world, "request", NOW)
    for what, wait in (("nothing", 0), *steps):
        _happen(history.world, what, history.now)
        if _reported_and_restless(history.world, reported):
            quiet_since.clear()
        elif not quiet_since:
            quiet_since.append(history.now)
        history.look()
        if REQUEST in history.cluster.nodes["a"].annotations:
            assert history.cluster.nodes["a"].unschedulable, "what asks for a drain is cordoned"
        history.wait(timedelta(seconds=wait))


def test_once_all_is_over_the_node_does_come_back() -> None:
    history = History(world_of([builders.node("a", conditions=(builders.quiet(),))]), builders.settings())
    _happen(history.world, "imds started", NOW)
    history.until_still()
    assert history.cluster.nodes["a"].unschedulable
    _happen(history.world, "imds gone", NOW)
    plan = history.until_still()
    assert plan.next_change == NOW + timedelta(minutes=2)
    history.wait(timedelta(minutes=2))
    history.look()

    node = history.cluster.nodes["a"]
    assert not node.unschedulable
    assert node.annotations == {}
    assert builders.STATE not in node.labels


def _waiting_for_its_uncordon() -> History:
    """A node that is drained, its event gone and reported as gone just now."""
    history = History(world_of([builders.node("a", conditions=(builders.quiet(),))]), builders.settings())
    for what in ("imds started", "imds gone"):
        _happen(history.world, what, NOW)
        history.until_still()
    return history


def _pass_after(history: History, minutes: float) -> bool:
    """Let time pass and have one pass; whether the node is still closed."""
    history.wait(timedelta(minutes=minutes))
    history.look()
    return history.cluster.nodes["a"].unschedulable


def test_a_node_that_has_only_just_become_ready_settles_though_the_event_has_long_gone() -> None:
    history = _waiting_for_its_uncordon()
    _happen(history.world, "node down", history.now)
    assert _pass_after(history, 60)
    _happen(history.world, "node up", history.now)
    assert _pass_after(history, 1.9)
    assert not _pass_after(history, 0.1)


def test_an_event_that_comes_back_and_goes_settles_again() -> None:
    history = _waiting_for_its_uncordon()
    assert _pass_after(history, 1)
    _happen(history.world, "imds started", history.now)
    assert _pass_after(history, 1)
    _happen(history.world, "imds gone", history.now)
    assert _pass_after(history, 1)
    assert _pass_after(history, 1.9)
    assert not _pass_after(history, 0.1)


def test_a_node_whose_machine_is_being_deleted_stays_cordoned_though_its_event_has_gone() -> None:
    world = world_of()
    machines, _ = in_pool(world, "a", "b")
    policy = builders.settings("events: {Reboot: {replace: true}}")
    world.cluster.annotate("a", REQUEST, builders.DRAIN_NOW)
    for _ in range(4):
        look(world, policy)
        carry_on(world)
    assert machines.deleting == ["a"]
    world.cluster.annotate("a", REQUEST, None)
    for _ in range(5):
        look(world, policy)
        world.advance(minutes(10))

    assert world.cluster.nodes["a"].unschedulable


def test_a_source_that_said_gone_while_the_other_was_silent_has_to_be_heard_again_once_it_is_silent() -> None:
    reported = builders.condition(MAIN, "True", "Reboot Scheduled. EventId: A1")
    annotations = {IMDS: builders.published({"EventId": "A1", "EventType": "Reboot"})}
    history = History(
        world_of([builders.node("a", conditions=(reported,), annotations=annotations)]), builders.settings()
    )
    history.until_still()
    history.cluster.annotate("a", IMDS, builders.published())
    history.cluster.set_condition("a", builders.condition(MAIN, "Unknown", "IMDS query failed"))
    history.until_still()
    history.cluster.set_condition("a", builders.quiet(history.now))
    history.cluster.agents = Agents(installed=True, not_ready=frozenset({"a"}))
    for _ in range(4):
        history.wait(minutes(5))
        history.look()

    assert history.cluster.nodes["a"].unschedulable
    history.cluster.agents = Agents(installed=True)
    for _ in range(3):
        history.wait(minutes(5))
        history.look()
    assert not history.cluster.nodes["a"].unschedulable
