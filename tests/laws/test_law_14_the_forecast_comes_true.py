"""Law 14: the forecast comes true. Nothing changes from outside, and the simulation runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.model.event import Kind
from reconciler.model.instructions import Deferral, PersonHold, Word, deferral_text, hold_text
from reconciler.model.node import AUTOSCALER_TAINT, Taint
from reconciler.model.plan import Plan
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from reconciler.simulation.platform import Reporter, VmEvent
from reconciler.simulation.world import World
from tests.laws.histories import History
from tests.laws.hits import Hits
from tests.support import builders, strategies
from tests.support.builders import NOW, REQUEST
from tests.support.searching import QUARTER, examples
from tests.support.worlds import look, world_of

KINDS = (Kind.REBOOT, Kind.REDEPLOY)
ZONES = ("westeurope-1", "westeurope-2")
MOST_PASSES = 400

TEXTS = (
    "budget: {maxUnavailable: 1}",
    "budget: {maxUnavailable: 2}",
    "budget: {maxUnavailable: 3, reserve: 1}",
    "budget: {maxUnavailable: 2, perZone: 1}",
    "budget: {maxUnavailable: 3, spacing: 20m}",
    "budget: {maxUnavailable: 4}\nevents: {Reboot: {start: Early}, Redeploy: {ahead: 20m}}",
    """
budget: {maxUnavailable: 2}
windows: [{name: short, start: "13:00", end: "14:30"}, {name: late, start: "16:00", end: "16:20"}]
""",
    """
budget: {maxUnavailable: 2}
notAllowed: [{name: sale, start: 2026-11-21T12:30, end: 2026-11-21T15:10, absolute: true}]
""",
    "budget: {maxUnavailable: 2}\nnotAllowed: [{name: talk, start: 2026-11-21T13:30, end: 2026-11-21T14:10}]",
)


@dataclass(frozen=True, slots=True)
class Announced:
    """One event: which kind, in how many minutes, for how many seconds, and whether a person requests it."""

    kind: Kind
    within: int
    seconds: int
    requested: bool


announced = st.builds(
    Announced,
    st.sampled_from(KINDS),
    st.sampled_from((5, 20, 45, 60, 65, 90, 120, 125, 150, 240, 300)),
    st.sampled_from((300, 540, 1800)),
    st.booleans(),
)


def begin(events: list[Announced], policy: Settings, groups: Sequence[str] = ()) -> History:
    """Return a world in which one node each has these events, and one more node has none.

    The first nodes run a pod of these JobSets each, none where the name is empty.
    """
    nodes = []
    for number in range(len(events) + 1):
        node = builders.node(f"n{number}", zone=ZONES[number % 2], conditions=(builders.quiet(),))
        nodes.append(replace(builders.on_vm(node, number), boot_id="boot-1"))
    history = History(world_of(nodes), policy)
    for number, group in enumerate(groups[: len(events)]):
        pod = replace(builders.pod(f"p{number}", f"n{number}"), phase="Running")
        labels = {"jobset.sigs.k8s.io/jobset-name": group} if group else {}
        history.cluster.add_pod(replace(pod, labels=labels))
    for number, one in enumerate(events):
        name, at = f"n{number}", NOW + timedelta(minutes=one.within)
        if one.requested:
            text = f'{{"kind":"{one.kind}","notBefore":"{at:%Y-%m-%dT%H:%M:%SZ}"}}'
            history.cluster.annotate(name, REQUEST, text)
        else:
            lasts = timedelta(seconds=one.seconds)
            event = VmEvent(
                name, one.kind, at, seconds=one.seconds, lasts=lasts, down=lasts, reported_by=Reporter.BOTH
            )
            history.world.platform.announce(event)
    return history


def withdraw(history: History, name: str, events: list[Announced]) -> None:
    """Let a request last for as long as the forecast takes it to last, once its drain has begun."""
    one = events[int(name[1:])]
    lasts, settle = history.settings.drain.timeout, history.settings.uncordon.settle
    over = NOW + timedelta(minutes=one.within) + lasts
    if over + settle <= history.now:
        over = history.now + lasts
    if one.requested:
        history.world.clock.at(over, lambda: history.cluster.annotate(name, REQUEST, None))


def run_on(history: History, events: list[Announced]) -> tuple[Plan, Mapping[str, datetime]]:
    """Run passes whenever something changes; return the first plan, and when each drain began."""
    first: Plan | None = None
    began: dict[str, datetime] = {}
    for _ in range(MOST_PASSES):
        writes = history.api.writes
        plan, _ = history.look()
        first = first or plan
        for node in plan.nodes:
            if node.drain_begins and node.node not in began:
                began[node.node] = history.now
                withdraw(history, node.node, events)
        if history.api.writes > writes:
            # A write wakes the next pass.
            continue
        changes = (plan.next_change, history.world.clock.next())
        later = [one for one in changes if one is not None and one > history.now]
        if not later or history.now > NOW + timedelta(hours=12):
            break
        history.wait(min(later) - history.now)
    assert first is not None
    return first, began


FORETOLD = Hits()


@FORETOLD.at_least(150, QUARTER)
@settings(max_examples=examples(60, QUARTER))
@given(
    st.lists(announced, min_size=1, max_size=6),
    st.sampled_from(TEXTS),
    st.lists(st.sampled_from(("", "train", "serve")), max_size=6),
)
@example(
    # The second one is missed. Its date has passed when the place of the first one is free again.
    [
        Announced(Kind.REBOOT, 5, 300, False),
        Announced(Kind.REBOOT, 5, 300, True),
        Announced(Kind.REBOOT, 45, 300, False),
    ],
    "budget: {maxUnavailable: 1}",
    [],
)
@example(
    # The third one has a place two minutes after its latest start, and goes before those that are too late.
    [
        Announced(Kind.REBOOT, 45, 300, True),
        Announced(Kind.REBOOT, 5, 300, False),
        Announced(Kind.REBOOT, 90, 300, False),
        Announced(Kind.REBOOT, 125, 300, False),
        Announced(Kind.REBOOT, 5, 300, False),
        Announced(Kind.REBOOT, 5, 300, False),
    ],
    "budget: {maxUnavailable: 1}",
    [],
)
def test_each_drain_starts_at_its_planned_moment_and_exactly_the_told_misses_happen(
    events: list[Announced], text: str, groups: list[str]
) -> None:
    first, began = run_on(begin(events, builders.settings(text), groups), events)
    FORETOLD.count(comes_true(events, first, began))


def comes_true(events: list[Announced], first: Plan, began: Mapping[str, datetime]) -> int:
    """Check each forecast of the first plan against what happened; return how many there were."""
    found = 0
    for node in first.nodes:
        told = node.schedule
        if told is None:
            continue
        found += 1
        event = events[int(node.node[1:])]
        strikes = NOW + timedelta(minutes=event.within)
        deadline = strikes - timedelta(minutes=15)
        start = began.get(node.node)
        if told.planned_start is not None:
            assert start == max(told.planned_start, NOW), (node.node, told)
        else:
            assert start is None or start >= strikes, (node.node, told)
        # A short notice is in time before its maintenance begins.
        last = deadline if deadline >= NOW else strikes - timedelta(seconds=1)
        in_time = start is not None and start <= last
        assert in_time is not told.missed, (node.node, told, start)
    return found


APPROVALS = (
    "budget: {maxUnavailable: 4}\nevents: {Reboot: {approval: true}}",
    "budget: {maxUnavailable: 1}\nevents: {Redeploy: {approval: true, approvalMissing: Proceed}}",
)
INSTRUCTIONS: tuple[tuple[str, int | None], ...] = (
    ("", None),
    ("hold", None),
    ("hold", 30),
    ("hold", 100),
    ("defer", 60),
    ("defer", 600),
)
KEPT = Hits()


@KEPT.at_least(30, QUARTER)
@settings(max_examples=examples(25, QUARTER))
@given(
    st.lists(st.tuples(announced, st.sampled_from(INSTRUCTIONS)), min_size=1, max_size=4),
    st.sampled_from((*TEXTS, *APPROVALS)),
)
def test_the_forecast_of_nodes_that_people_keep_from_a_start_comes_true(
    told: list[tuple[Announced, tuple[str, int | None]]], text: str
) -> None:
    events = [event for event, _ in told]
    history = begin(events, builders.settings(text))
    for number, (_, (name, within)) in enumerate(told):
        until = NOW + timedelta(minutes=within) if within is not None else None
        word = Word("alice@laptop", NOW, until)
        said = deferral_text(Deferral(word)) if name == "defer" else hold_text(PersonHold(word))
        if name:
            history.cluster.annotate(f"n{number}", f"{builders.PREFIX}/{name}", said)
    first, began = run_on(history, events)
    KEPT.count(comes_true(events, first, began))


UPGRADED = Hits()


@UPGRADED.at_least(30, QUARTER)
@settings(max_examples=examples(25, QUARTER))
@given(st.lists(st.tuples(announced, st.booleans()), min_size=1, max_size=4), st.sampled_from(TEXTS))
def test_the_forecast_of_nodes_in_a_pool_that_aks_upgrades_comes_true(
    planned: list[tuple[Announced, bool]], text: str
) -> None:
    """Some of the nodes are in the pool. The node in upgrade is not of the fleet, so it takes no place."""
    events = [event for event, _ in planned]
    history = begin(events, builders.settings(f"{text}\nnodeSelector: {{matchLabels: {{served: 'yes'}}}}"))
    for number, (_, upgraded) in enumerate(planned):
        history.cluster.label(f"n{number}", "served", "yes")
        history.cluster.label(f"n{number}", "agentpool", "np" if upgraded else "other")
    last = f"n{len(events)}"
    history.cluster.label(last, "agentpool", "np")
    for key, value in builders.IN_UPGRADE.items():
        history.cluster.annotate(last, key, value)
    first, began = run_on(history, events)
    UPGRADED.count(comes_true(events, first, began))
    for number, (event, upgraded) in enumerate(planned):
        # Without windows and freezes, the latest start is the deadline.
        if upgraded and f"n{number}" in began and "name:" not in text:
            assert began[f"n{number}"] >= NOW + timedelta(minutes=event.within) - timedelta(minutes=15)


LATEST = Hits()
EXEMPT = """
budget: {maxUnavailable: 1, exempt: [Reboot]}
events: {Reboot: {outsideWindow: Never}}
windows: [{start: "15:00", end: "15:30"}]
"""


@LATEST.at_least(30, QUARTER)
@settings(max_examples=examples(60, QUARTER))
@given(
    st.lists(announced, min_size=1, max_size=6),
    st.sampled_from((*TEXTS, EXEMPT)),
    st.sampled_from(("Enforce", "Observe", "Finish")),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.lists(st.sampled_from((0, 3, 16, 40, 100)), max_size=4),
)
def test_no_start_is_planned_after_the_latest_start_or_for_now_while_it_is_held(
    events: list[Announced], text: str, mode: str, told: tuple[bool, bool, bool], waits: list[int]
) -> None:
    """Somebody else may have a place, the clock may be wrong, and the autoscaler may have a node."""
    history = begin(events, builders.settings(text, mode=mode))
    taken, skewed, tainted = told
    if taken:
        history.cluster.cordon(f"n{len(events)}")
    if skewed:
        history.cluster.skew = timedelta(minutes=10)
    if tainted:
        history.cluster.taint("n0", (Taint(AUTOSCALER_TAINT, "", "NoSchedule"),))
    for later in (0, *waits):
        history.wait(timedelta(minutes=later))
        looked = history.until_still(most=20)
        for node in looked.nodes:
            plan = node.schedule
            if plan is None or plan.started or plan.planned_start is None:
                continue
            LATEST.count()
            assert plan.missed or plan.latest_start is None or plan.planned_start <= plan.latest_start, plan
            assert plan.planned_start > looked.now, (plan, node.holds)


PLANNED = Hits()


@PLANNED.at_least(20, QUARTER)
@settings(max_examples=examples(60, QUARTER))
@given(strategies.worlds(most=6, more=strategies.asking_nodes), strategies.policies(), st.booleans())
def test_in_any_world_nothing_that_is_held_is_planned_for_now_and_no_start_too_late(
    world: World, policy: Settings, skewed: bool
) -> None:
    if skewed:
        world.cluster.skew = timedelta(minutes=10)
    plan, _ = look(world, policy)

    for node in plan.nodes:
        told = node.schedule
        if told is None or told.started or told.planned_start is None:
            continue
        PLANNED.count()
        # After the end of a case, the next one begins with the next pass.
        assert told.planned_start > plan.now or not node.holds, (node.holds, told)
        assert told.missed or told.latest_start is None or told.planned_start <= told.latest_start, told
