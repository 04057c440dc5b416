"""Law 21: "nobody must do something" is said only if nothing is wrong, missed or unguarded."""

from __future__ import annotations

import re
from datetime import timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from jobs.runtime.process import Passed
from reconciler.features.page.facts import History as Ended
from reconciler.features.page.live import page_facts
from reconciler.features.page.top import asks, wrong
from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.outcome import Outcome
from reconciler.model.plan import NodePlan, Plan
from reconciler.report.document import to_report
from reconciler.settings.schema import Settings
from tests.laws.histories import History, Step, people_steps, platform_steps, small_world, waits
from tests.laws.hits import Hits
from tests.support import builders
from tests.support.builders import PREFIX, minutes
from tests.support.searching import examples

MISSED, UNGUARDED, WRONG = Hits(), Hits(), Hits()
"""Nodes that will be missed, nodes that are unguarded, and plans whose page says that something is wrong."""

COMMAND = re.compile(r"`[a-zA-Z.]+|\b(?:reconciler|kubectl) [a-z]")
TEXTS = (
    "",
    "nodeSelector: {agentpool: typo}",
    "budget: {maxUnavailable: 1}",
    'windows: [{days: [Mon], start: "22:00", end: "23:00"}]\nevents: {Redeploy: {outsideWindow: Never}}',
    "notAllowed: [{name: freeze, start: 2026-11-20, end: 2026-11-24, absolute: true}]",
    "events: {Redeploy: {approval: true}}",
)
policies = st.builds(
    lambda text, mode: builders.settings(text, mode=mode),
    st.sampled_from(TEXTS),
    st.sampled_from(("Enforce", "Enforce", "Observe", "Finish")),
)


def _held(history: History, ends: int | None) -> None:
    until = history.now + minutes(ends) if ends is not None else None
    hold = hold_text(PersonHold(Word("ann", history.now, until, "a test"), stops=True))
    history.cluster.annotate("n0", f"{PREFIX}/hold", hold)


def _dated(history: History, after: int) -> None:
    date = history.now + minutes(after)
    text = f'{{"kind":"Redeploy","notBefore":"{date:%Y-%m-%dT%H:%M:%SZ}"}}'
    history.cluster.annotate("n0", builders.REQUEST, text)


steps: st.SearchStrategy[Step] = st.one_of(
    platform_steps,
    people_steps,
    st.sampled_from((None, 30, 600)).map(lambda ends: lambda history: _held(history, ends)),
    *[st.sampled_from((20, 90, 900)).map(lambda after: lambda history: _dated(history, after))] * 2,
)


@MISSED.at_least(20)
@UNGUARDED.at_least(60)
@WRONG.at_least(100)
@settings(max_examples=examples(200))
@given(st.lists(policies, min_size=1, max_size=2), st.lists(st.tuples(steps, waits), max_size=8))
@example([builders.settings(TEXTS[3])], [(lambda history: _dated(history, 20), timedelta())])
def test_what_is_wrong_missed_or_unguarded_has_a_person_and_a_command(
    policies: list[Settings], happened: list[tuple[Step, timedelta]]
) -> None:
    history = History(small_world(), policies[0])
    _asked(*history.look(), history)
    for number, (happen, wait) in enumerate(happened):
        if number == len(happened) // 2:
            history.settings = policies[-1]
        happen(history)
        history.wait(wait)
        _asked(*history.look(), history)


def _asked(plan: Plan, outcomes: tuple[Outcome, ...], history: History) -> None:
    page = page_facts(Passed(plan, history.settings, outcomes, False), Ended())
    is_wrong, entries = wrong(page).count, asks(page).entries
    people = to_report(plan, outcomes, rehearsed=False).document["people"]
    WRONG.count(bool(is_wrong))
    for entry in entries:
        assert COMMAND.search(entry.who), entry
        assert not entry.who.startswith("nobody"), entry
    assert bool(entries) is bool(people)
    assert entries or not is_wrong, wrong(page).entries
    for node in plan.nodes:
        UNGUARDED.count(node.unguarded is not None)
        MISSED.count(_is_missed(node))
        if node.unguarded is not None or _is_missed(node):
            assert any(node.node in each["nodes"] for each in people), node


def _is_missed(node: NodePlan) -> bool:
    return (node.schedule is not None and node.schedule.missed) or (
        node.outcome is not None and not node.outcome.result.good
    )
