"""The signs that others read: pure functions of where a node stands, and true over any history."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.features.publishing.drainsafe import (
    DRAINSAFE_OWNER,
    DRAINSAFE_STATE,
    DRAINSAFE_TYPE,
    Drainsafe,
    value_of,
)
from reconciler.features.publishing.drainsafe import changes as drainsafe
from reconciler.features.publishing.feature import removed_signs
from reconciler.features.publishing.hints import bears_hints, taint_of
from reconciler.features.publishing.node_conditions import changes as lifecycle
from reconciler.features.publishing.settings import HINTS, PUBLISH, Hints
from reconciler.model.errors import SettingsError
from reconciler.model.event import Kind, Status
from reconciler.model.keys import OwnKeys
from reconciler.model.node import DRAINED, DRAINING, IN_PROGRESS, LIFECYCLE, PLANNED, Condition, Node
from reconciler.model.record import CaseRecord, DrainRecord, State
from reconciler.model.snapshot import Snapshot
from reconciler.model.values import replace
from reconciler.model.writes import NodeWrite
from reconciler.passes.decision import CaseDecision, NodeSigns
from reconciler.passes.release import release
from reconciler.profiles.case import CaseView
from reconciler.profiles.checks import CHECKS
from reconciler.profiles.orders import drain_order
from reconciler.run import PARTS
from reconciler.settings.schema import Settings
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.world import World
from tests.laws.histories import History, Step, people_steps, platform_steps, small_world, waits
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import NOW, PREFIX, RECORD, REQUEST, minutes
from tests.support.searching import examples, kills
from tests.support.worlds import maintenances

ALL = """publish: [drainsafe, node-conditions, nodemaintenances]
hints: {taint: true, label: true}"""
KEY = OwnKeys(PREFIX).deadline
ORDER = tuple(Drainsafe)
UNDONE = DrainRecord(NOW)
DONE = DrainRecord(NOW, 1, NOW)


def standing(
    state: State = State.IN_MAINTENANCE,
    *holds: str,
    drain: DrainRecord | None = None,
    draining: bool = False,
    status: Status = Status.SCHEDULED,
    sources: tuple[str, ...] = ("imds",),
    kind: Kind = Kind.REBOOT,
) -> CaseDecision:
    """A node with one event."""
    reported = builders.judged(builders.event(kind, status=status, sources=sources))
    record = replace(builders.record(state, events=(builders.known(kind, sources=sources),)), drain=drain)
    held = tuple(CHECKS[code].type.hold("a", code) for code in holds)
    order = drain_order(builders.node(), (), NOW, builders.settings(), Snapshot(())) if draining else None
    return CaseDecision(state, record, held, view=CaseView((reported,)), drain=order)


def shown(node: Node) -> dict[str, str]:
    return {kind: found.status for kind in LIFECYCLE if (found := node.condition(kind)) is not None}


@pytest.mark.parametrize(
    ("stands", "value"),
    [
        pytest.param(standing(State.REQUIRED, "windowOpen", "budgetLeft"), "MaintenanceScheduled"),
        pytest.param(standing(State.REQUIRED, "startsAllowed"), "MaintenanceScheduled", id="Finish"),
        pytest.param(standing(State.REQUIRED, "leftToUs", "budgetLeft"), "MaintenanceApproved"),
        pytest.param(standing(State.REQUIRED, "budgetLeft", "spacingKept"), "NodeCordoning", id="queued"),
        pytest.param(standing(drain=UNDONE), "NodeCordoned", id="waits for a drain slot"),
        pytest.param(standing(), "NodeCordoned", id="adopted, and nothing asks for a drain"),
        pytest.param(standing(drain=UNDONE, draining=True), "NodeDraining"),
        pytest.param(
            standing(drain=UNDONE, draining=True, status=Status.STARTED),
            "NodeDraining",
            id="a start before the drain's end waits for it",
        ),
        pytest.param(standing(drain=DONE), "NodeDrained"),
        pytest.param(standing(drain=DONE, status=Status.STARTED), "MaintenanceStarted"),
        pytest.param(
            standing(drain=DONE, sources=("request",)), "MaintenanceStarted", id="whoever asked may begin"
        ),
    ],
)
def test_drainsafes_value_says_where_the_case_stands(stands: CaseDecision, value: str) -> None:
    assert value_of(stands, None).value == value


def test_the_value_never_goes_back_except_for_a_drain_that_starts_again() -> None:
    closed_again = standing(State.REQUIRED, "windowOpen")
    held = standing(drain=UNDONE)
    gone = replace(standing(drain=DONE), view=CaseView())
    again = standing(drain=UNDONE, draining=True)

    assert value_of(closed_again, "NodeCordoning") is Drainsafe.CORDONING
    assert value_of(held, "NodeDraining") is Drainsafe.DRAINING
    assert value_of(gone, "MaintenanceStarted") is Drainsafe.STARTED
    assert value_of(again, "NodeDrained") is Drainsafe.DRAINING
    assert value_of(closed_again, "NodeRunning") is Drainsafe.SCHEDULED
    assert value_of(closed_again, "MaintenancePending") is Drainsafe.SCHEDULED


def test_the_type_is_imdss_own_word() -> None:
    node = builders.node()
    reported = {
        kind: drainsafe(node, standing(kind=kind), PREFIX, wanted=True)[DRAINSAFE_TYPE]
        for kind in (Kind.LIVE_MIGRATION, Kind.PREEMPT)
    }

    assert reported == {Kind.LIVE_MIGRATION: "Freeze", Kind.PREEMPT: "Preempt"}


def test_what_is_another_owners_is_left_alone_until_its_node_runs() -> None:
    theirs = builders.node(annotations={DRAINSAFE_STATE: "NodeDraining", DRAINSAFE_OWNER: "Drainsafe"})
    over = builders.node(annotations={DRAINSAFE_STATE: "NodeRunning", DRAINSAFE_OWNER: "Drainsafe"})
    no_case = CaseDecision(State.OPERATIONAL, CaseRecord())

    assert drainsafe(theirs, standing(), PREFIX, wanted=True) == {}
    assert drainsafe(theirs, no_case, PREFIX, wanted=False) == {}
    assert drainsafe(over, no_case, PREFIX, wanted=True) == {}
    assert drainsafe(over, standing(), PREFIX, wanted=True)[DRAINSAFE_OWNER] == PREFIX


@pytest.mark.parametrize(
    ("stands", "true"),
    [
        pytest.param(standing(State.REQUIRED, "windowOpen"), {PLANNED}),
        pytest.param(standing(drain=UNDONE, draining=True), {PLANNED, DRAINING}),
        pytest.param(standing(drain=UNDONE), {PLANNED}, id="a drain that is held goes not on"),
        pytest.param(standing(drain=DONE), {PLANNED, DRAINED}),
        pytest.param(standing(drain=UNDONE, draining=True, status=Status.STARTED), {IN_PROGRESS, DRAINING}),
        pytest.param(standing(drain=DONE, status=Status.STARTED), {IN_PROGRESS, DRAINED}),
        pytest.param(standing(drain=DONE, sources=("request",)), {IN_PROGRESS, DRAINED}),
        pytest.param(
            standing(drain=DONE, sources=("imds", "request")),
            {PLANNED, DRAINED},
            id="where one source reports starts, it is waited for",
        ),
    ],
)
def test_the_conditions_are_true_to_the_state(stands: CaseDecision, true: set[str]) -> None:
    write = lifecycle(builders.node(), stands, NOW, wanted=True)

    assert write is not None
    assert {one.type for one in write.put if one.status == "True"} == true
    assert {one.type for one in write.put} == set(LIFECYCLE)
    assert all(one.transition == NOW for one in write.put)


def test_what_an_unreadable_source_reported_is_neither_planned_nor_gone() -> None:
    blind = replace(standing(drain=DONE), view=CaseView(unknown=("imds reported Reboot and can't be read",)))
    write = lifecycle(builders.node(), blind, NOW, wanted=True)

    assert write is not None
    reported = {one.type: one.status for one in write.put}
    assert reported == {PLANNED: "Unknown", IN_PROGRESS: "Unknown", DRAINING: "False", DRAINED: "True"}


def test_maintenance_goes_on_while_the_node_settles_and_only_then() -> None:
    settling = replace(standing(drain=DONE), view=CaseView())
    before = Condition(IN_PROGRESS, "True", "NodeMaintenanceStarted", transition=NOW - minutes(9))
    begun = lifecycle(builders.node(conditions=(before,)), settling, NOW, wanted=True)
    never_begun = lifecycle(builders.node(), settling, NOW, wanted=True)

    assert begun is not None
    assert never_begun is not None
    reported = {one.type: one for one in begun.put}
    assert (reported[IN_PROGRESS].status, reported[IN_PROGRESS].transition) == ("True", None)
    assert {one.type: one.status for one in never_begun.put}[IN_PROGRESS] == "False"


def test_a_condition_that_another_tool_sets_to_true_belongs_to_that_tool() -> None:
    theirs = Condition(DRAINED, "True", "KarpenterDrained")
    write = lifecycle(builders.node(conditions=(theirs,)), standing(), NOW, wanted=True)
    no_case = CaseDecision(State.OPERATIONAL, CaseRecord())

    assert write is not None
    assert DRAINED not in {one.type for one in write.put}
    assert lifecycle(builders.node(conditions=(theirs,)), no_case, NOW, wanted=True) is None


def test_a_published_condition_can_not_be_a_reason_to_drain() -> None:
    with pytest.raises(SettingsError, match="names Drained, which `publish` writes"):
        builders.settings("publish: [node-conditions]\nconditions: {Drained: {}}")

    assert builders.settings("conditions: {Drained: {}}").condition_types() == {"Drained"}


def test_releasing_takes_the_signs_off() -> None:
    history = History(small_world(), builders.settings(ALL))
    history.cluster.annotate("n0", REQUEST, builders.DRAIN_NOW)
    history.until_still()
    node = history.cluster.nodes["n0"]
    signs = PARTS.removed(node, PREFIX)
    patch = release(node, PREFIX, signs, reset=False)
    assert patch is not None
    assert signs.writes
    history.api.patch_node(patch)
    for sign in signs.writes:
        sign.send(history.world.outside.client)
    after = history.cluster.nodes["n0"]

    assert set(after.annotations) == {REQUEST, builders.UID}
    assert shown(after) == {}
    assert removed_signs(after, PREFIX) == NodeSigns()


# Over whole passes.


def policies() -> st.SearchStrategy[Settings]:
    """Any settings, publishing something."""
    published = st.lists(
        st.sampled_from(("drainsafe", "node-conditions", "nodemaintenances")), min_size=1, unique=True
    ).map(lambda names: PUBLISH.of(builders.settings(f"publish: [{', '.join(names)}]")))
    hints = st.sampled_from((Hints(), Hints(taint=True), Hints(label=True), Hints(taint=True, label=True)))
    return st.tuples(strategies.policies(), published, hints).map(
        lambda chosen: chosen[0].model_copy(update={"publish": chosen[1], "hints": chosen[2]})
    )


def agree(history: History, name: str) -> None:
    """See that all signs say what the record does."""
    node = history.cluster.nodes[name]
    label, taint = KEY in node.labels, taint_of(PREFIX) in node.taints
    assert label is taint
    assert not taint or RECORD in node.annotations
    record = builders.case_of(node) if RECORD in node.annotations else CaseRecord()
    conditions, value = shown(node), node.annotations.get(DRAINSAFE_STATE)
    state, drain = record.state, record.drain
    if state is State.OPERATIONAL:
        assert conditions == {}
        assert value in (None, "NodeRunning")
        return
    drained = state is State.IN_MAINTENANCE and drain is not None and drain.done is not None
    assert set(conditions) == set(LIFECYCLE)
    assert conditions[DRAINED] == ("True" if drained else "False")
    assert not (conditions[PLANNED] == conditions[IN_PROGRESS] == "True")
    assert not (drained and conditions[DRAINING] == "True")
    if state is State.REQUIRED:
        assert value in ("MaintenanceScheduled", "MaintenanceApproved", "NodeCordoning")
        assert conditions[DRAINING] == "False"
    elif drained:
        assert value in ("NodeDrained", "MaintenanceStarted")
    else:
        assert value in ("NodeCordoned", "NodeDraining")


def allowed(before: str | None, after: str | None, *, again: bool) -> bool:
    """Whether the value may change so."""
    if before is None or after is None or before == "NodeRunning":
        return True
    ranks = {value.value: number for number, value in enumerate(ORDER)}
    return ranks[after] >= ranks[before] or (again and after in ("NodeCordoned", "NodeDraining"))


@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    strategies.policies(), st.lists(st.tuples(st.one_of(platform_steps, people_steps), waits), max_size=12)
)
def test_over_any_history_the_signs_agree_with_the_record_and_the_value_keeps_its_order(
    policy: Settings, steps: list[tuple[Step, timedelta]]
) -> None:
    world, every = small_world(), builders.settings(ALL)
    history = History(
        world, policy.model_copy(update={"publish": PUBLISH.of(every), "hints": HINTS.of(every)})
    )
    names = sorted(world.cluster.nodes)
    for happen, wait in steps:
        before = {
            name: (node.uid, node.annotations.get(DRAINSAFE_STATE))
            for name, node in world.cluster.nodes.items()
        }
        happen(history)
        history.wait(wait)
        count = len(world.api.done)
        history.look()
        for name in names:
            agree(history, name)
            node = world.cluster.nodes[name]
            uid, value = before[name]
            again = any(
                write.node == name
                and isinstance(write.content, NodeWrite)
                and '"drain"' in (write.content.annotations.get(RECORD) or "")
                for write in world.api.done[count:]
            )
            if uid == node.uid:
                assert allowed(value, node.annotations.get(DRAINSAFE_STATE), again=again)


HINTED = Hits()

STAYS = {"recordReadable", "lookedAfter", "notClaimed", "internal"}
"""The holds of nodes that must not be changed at all."""


@HINTED.at_least(20)
@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@given(strategies.worlds(), policies(), st.floats(0, 1, exclude_max=True))
def test_publishing_comes_to_rest_stays_so_and_leaves_nothing_behind_once_it_is_off(
    world: World, policy: Settings, part: float
) -> None:
    history = History(world, policy)
    plan = history.until_still(most=20)
    HINTED.count(any(bears_hints(node, PREFIX) for node in world.cluster.nodes.values()))
    until = plan.next_change or NOW + timedelta(days=2)
    # Not until then: a part of 0.9999999999999999 would be rounded to the very moment.
    world.clock.advance(max(NOW, min(NOW + (until - NOW) * part, until - timedelta.resolution)))
    writes = list(world.api.done)
    history.look()
    assert world.api.done == writes

    history.settings = policy.model_copy(update={"publish": (), "hints": Hints()})
    history.until_still(most=20)
    for node in world.cluster.nodes.values():
        assert shown(node) == {}
        assert DRAINSAFE_STATE not in node.annotations
    left = {name for name, node in world.cluster.nodes.items() if bears_hints(node, PREFIX)}
    assert left <= {
        node.node for node in history.look()[0].nodes if {hold.code for hold in node.holds} & STAYS
    }


# Killed between any two writes.


def story(kill_at: int) -> tuple[int, object]:
    """Cases from request to end, killed at one write; how many writes there were, and what is left."""
    world = small_world()
    history = History(world, builders.settings(f"{ALL}\nbudget: {{maxUnavailable: 1}}"))
    count = 0

    def maybe(write: Call) -> None:
        nonlocal count
        del write
        count += 1
        if count == kill_at:
            raise ProcessKilled

    world.api.after_write = maybe
    for happen in (builders.DRAIN_NOW, None):
        for name in ("n0", "n1"):
            world.cluster.annotate(name, REQUEST, happen)
        for _ in range(4):
            try:
                history.look()
            except ProcessKilled:
                world.restart()
                history.look()
            history.wait(minutes(3))
    left = {
        name: (dict(node.annotations), dict(node.labels), node.taints, shown(node), node.unschedulable)
        for name, node in world.cluster.nodes.items()
    }
    views = sorted((one.node, one.state, one.name) for one in maintenances(world.cluster).values())
    return count, (left, views)


def test_killed_after_any_write_the_signs_end_the_same() -> None:
    total, expected = story(kill_at=0)
    ends = [story(kill_at=number)[1] for number in kills(total)]

    assert total > 10
    assert [number for number, end in enumerate(ends, start=1) if end != expected] == []
