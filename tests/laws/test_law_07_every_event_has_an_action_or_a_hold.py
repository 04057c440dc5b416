"""Law 7: an event that asks for a drain, or is Unknown, has an action, or a hold that the report shows."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.calendar.values import in_zone, with_time_left
from reconciler.model.event import Kind
from reconciler.model.snapshot import Self
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.passes.decide import decide
from reconciler.passes.observe import observe
from reconciler.profiles.judging import judge
from reconciler.report.document import to_report
from reconciler.report.text import as_markdown, as_text
from reconciler.run import PARTS
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from tests.laws.hits import Hits
from tests.support import strategies
from tests.support.builders import NOW
from tests.support.searching import examples

MATTERS = Hits()


@MATTERS.at_least(150)
@settings(max_examples=examples(150))
@given(
    strategies.worlds(),
    strategies.policies(),
    st.integers(-60, 360).map(lambda count: NOW + timedelta(minutes=count)),
)
def test_a_node_with_an_event_that_matters_is_acted_upon_or_held_and_the_report_says_so(
    world: World, policy: Settings, now: datetime
) -> None:
    seen = observe(replace(world.outside, itself=Self("n1")), policy, now, PARTS)
    assessment = assess(seen, now)
    plan = decide(seen, assessment, policy, now, PARTS)
    report = to_report(plan, rehearsed=True)
    text, markdown = as_text(report), as_markdown(report)
    plans = {one.node: one for one in plan.nodes}

    for node in seen.nodes:
        matters = any(
            event.kind is Kind.UNKNOWN or judge(event, node, policy, seen.remediator, now).asks
            for event in assessment.of(node.name).events
        )
        if matters:
            MATTERS.count()
            reported = plans[node.name]
            assert reported.acts or reported.holds
            assert f"\n{node.name}" in text
    for one in plan.nodes:
        for hold in one.holds:
            assert hold.node == one.node
            assert hold.reason
            # The label of a row says that the node waits.
            reason = hold.reason.removeprefix("waits ")
            rows = (reason, with_time_left(reason, plan.now))
            assert any(in_zone(row, policy.time_zone) in text for row in rows)
            assert f"(`{hold.code}`)" in markdown
