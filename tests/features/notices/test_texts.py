"""No message has a bad sentence, whatever happens to the nodes."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.calendar.values import in_zone
from reconciler.features.notices.facts import facts_of
from reconciler.settings.schema import Settings
from tests.laws.histories import History, Step, people_steps, platform_steps, small_world, waits
from tests.laws.hits import Hits
from tests.support import strategies
from tests.support.searching import examples
from tests.support.sentences import faults

FACTS = Hits()


@FACTS.at_least(100)
@settings(max_examples=examples(60))
@given(
    st.one_of(strategies.policies(mode="Enforce"), strategies.policies()),
    st.lists(st.tuples(st.one_of(platform_steps, people_steps), waits), max_size=6),
)
def test_no_fact_over_any_history_has_a_bad_sentence(
    policy: Settings, steps: list[tuple[Step, timedelta]]
) -> None:
    history = History(small_world(), policy)
    for happen, wait in steps:
        happen(history)
        history.wait(wait)
        plan, _ = history.look()
        for node in plan.nodes:
            for fact in facts_of(node, (), {}, history.now).values():
                FACTS.count()
                assert list(faults(in_zone(fact.text, ZoneInfo("UTC")))) == []
