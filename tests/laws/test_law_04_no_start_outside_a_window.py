"""Law 4: no drain starts outside a window, or where it is not allowed, but by the deadline rule."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.calendar.values import in_zone
from reconciler.model.record import CaseRecord, Record, record_of
from reconciler.profiles.case import covers
from reconciler.report.document import to_report
from reconciler.report.text import as_text
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws import checked
from tests.laws.hits import Hits
from tests.support import strategies
from tests.support.builders import NOW, PREFIX
from tests.support.searching import QUARTER, examples
from tests.support.worlds import look

OVERRULED = Hits()


@OVERRULED.at_least(24, QUARTER)
@settings(max_examples=examples(250, QUARTER))
@given(
    strategies.worlds(more=strategies.late_nodes),
    st.one_of(
        strategies.policies(),
        strategies.policies(
            mode="Enforce", windows=strategies.WINDOWS[3:], not_allowed=strategies.NOT_ALLOWED[:3]
        ),
    ),
    st.integers(-60, 360).map(lambda count: NOW + timedelta(minutes=count)),
)
def test_every_start_has_an_open_window_or_the_deadline_rule_behind_it_and_the_report_says_which(
    world: World, policy: Settings, now: datetime
) -> None:
    before = dict(world.cluster.nodes)
    plan, outcomes = look(world, policy, now)
    text = as_text(to_report(plan, outcomes, rehearsed=False))

    for node in plan.nodes:
        seen = before.get(node.node)
        if seen is None or not node.drain_begins:
            continue
        # A drain that starts again, on a node that is cordoned already, is for events that it was not for, or
        # for a known event that is of another kind now.
        held = record_of(seen, PREFIX)
        drained_for = held.case("default") if isinstance(held, Record) else CaseRecord()
        kinds = {(old.kind, old.condition) for old in drained_for.events if not old.waits}
        asking = [
            one
            for one in node.events
            if one.asks
            and one.starts
            and (not covers(drained_for, one.event) or (one.event.kind, one.event.condition) not in kinds)
        ]
        assert asking
        if policy.calendar.at(now, seen.labels).open:
            continue
        overruling = [one for one in asking if checked.deadline_lets(one, seen, policy, now)]
        OVERRULED.count()
        assert overruling
        said = [step.because for step in node.transitions if in_zone(step.because, policy.time_zone) in text]
        assert any(
            one.opening.overruled and f"which overrules: {one.opening.overruled}" in because
            for one in overruling
            for because in said
        )


FORBIDDEN = Hits()


@FORBIDDEN.at_least(60, QUARTER)
@settings(max_examples=examples(120, QUARTER))
@given(
    strategies.worlds(more=strategies.asking_nodes), st.sampled_from(("Never", "AtDeadline", "Immediately"))
)
def test_nothing_at_all_starts_while_it_is_absolutely_not_allowed(world: World, outside: str) -> None:
    from tests.support.builders import settings as policy_of

    meanings = ", ".join(f"{kind}: {{outsideWindow: {outside}}}" for kind in strategies.ASKING)
    policy = policy_of(f"{strategies.NOT_ALLOWED[-1]}\nevents: {{{meanings}}}")
    plan, _ = look(world, policy)

    FORBIDDEN.count(sum("windowOpen" in {hold.code for hold in node.holds} for node in plan.nodes))
    assert [node.node for node in plan.nodes if node.drain_begins or node.todo.deletes_node] == []


CLOSED = Hits()


@CLOSED.at_least(60, QUARTER)
@settings(max_examples=examples(120, QUARTER))
@given(strategies.worlds(fresh=True, more=strategies.asking_nodes))
def test_where_the_kind_says_never_nothing_starts_while_no_window_is_open(world: World) -> None:
    from tests.support.builders import settings as policy_of

    meanings = ", ".join(f"{kind}: {{outsideWindow: Never}}" for kind in strategies.ASKING)
    policy = policy_of(f"{strategies.WINDOWS[3]}\nevents: {{{meanings}}}\nbudget: {{maxUnavailable: 100%}}")
    assert not any(policy.calendar.at(NOW, node.labels).open for node in world.cluster.nodes.values())
    plan, _ = look(world, policy)

    CLOSED.count(sum("windowOpen" in {hold.code for hold in node.holds} for node in plan.nodes))
    assert [node.node for node in plan.nodes if node.drain_begins or node.todo.deletes_node] == []
