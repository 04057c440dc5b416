"""What messages say of a case agrees with the report."""

from __future__ import annotations

from reconciler.features.notices.facts import facts_of
from reconciler.features.notices.messages import Topic
from tests.laws.agreement import ShownNode
from tests.support.builders import case_of


def agrees(shown: ShownNode) -> None:
    """A message says that the case will be missed, once that is due."""
    history, schedule = shown.history, shown.schedule
    recorded = case_of(history.cluster.nodes[shown.node.node]).facts.will_be_missed
    # A miss that may go away by itself is no message at once.
    warned = recorded is not None and recorded.is_due(history.now)
    facts = facts_of(shown.node, shown.outcomes, {}, history.now).values()

    assert [fact.text for fact in facts if fact.topic is Topic.WILL_BE_MISSED] == (
        [f"the node will not be drained in time: {schedule.forecast_words}"] if warned else []
    )
