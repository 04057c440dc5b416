"""What the page shows of a case agrees with the report."""

from __future__ import annotations

from datetime import timedelta

from jobs.runtime.process import Passed
from reconciler.calendar.values import without_times
from reconciler.features.page.facts import Cell, History, cell_of
from reconciler.features.page.html import as_html
from reconciler.features.page.live import page_facts
from reconciler.features.page.top import wrong
from reconciler.model.case_outcome import CaseResult
from reconciler.model.ended_case import EndedCase
from tests.features.page.reading import parsed
from tests.laws.agreement import ShownNode
from tests.support import builders
from tests.support.builders import NOW


def agrees(shown: ShownNode) -> None:
    """The page names what will be missed and what is at risk, with the reason."""
    name, schedule = shown.node.node, shown.schedule
    page = page_facts(Passed(shown.plan, shown.history.settings, shown.outcomes, False), History())
    entries = [each.text for each in wrong(page).entries]
    # Nodes with one cause share an entry, which has the earliest of their dates.
    named = without_times(f"{schedule.forecast}: {schedule.forecast_words.replace(name, 'NODE')}")
    causes = [each.replace(name, "NODE").partition(" (the first of ")[0] for each in entries]

    assert (named in map(without_times, causes)) is (shown.missed or shown.at_risk)
    assert (cell_of(shown.node, page) is Cell.MISSED) is shown.missed


def names_outcome(case: EndedCase, outcome: CaseResult) -> None:
    """The timeline says what became of a case."""
    plan = builders.planned(builders.snapshot(builders.node("n1")))
    facts = page_facts(Passed(plan, builders.settings()), History(NOW - timedelta(days=1), (case,)))
    page = as_html(facts)

    assert parsed(page).by_id("timeline")
    assert f"ended: {outcome.value}" in page
    said = {each for each in (CaseResult.LATE, CaseResult.MISSED) if f"; {each.value} Sat 21" in page}
    assert said == (set() if outcome.good else {outcome})
