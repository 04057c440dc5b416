"""A dry run says "would", and a pass reports as done only what was done."""

from __future__ import annotations

import re

from reconciler.model.outcome import Outcome, Result
from reconciler.model.record import State
from reconciler.report.document import to_document
from reconciler.report.markdown import as_markdown
from reconciler.report.text import as_text
from reconciler.report.values import Document
from tests.report.scene import document, plan
from tests.support import builders


def block(text: str, node: str) -> str:
    """The part of the text report about a node."""
    return next(part for part in text.split("\n\n") if part.startswith(node))


def test_no_line_of_a_dry_run_says_that_something_happens() -> None:
    text, markdown = (form(document(rehearsed=True)) for form in (as_text, as_markdown))

    assert not re.search(r"^  (does|not done) ", text, re.MULTILINE)
    assert "→" not in text + markdown
    assert "\nlate (zone 3): operational, would become in-maintenance\n" in text
    assert "| operational, would become in-maintenance |" in markdown
    assert "| would cordon, drain |" in markdown
    assert "| what would happen |" in markdown
    assert "  pods      would evict 1, keep 1\n" in text


def test_a_place_that_would_be_taken_is_not_reported_as_taken() -> None:
    for form in (as_text, as_markdown):
        assert "would be out of service: 3 of at most 5" in form(document(rehearsed=True))
        assert "would" not in form(document())


def test_a_dry_run_that_starts_nothing_reports_the_places_as_they_are() -> None:
    seen = builders.snapshot(builders.held_node(builders.record(), "a"))
    shown = as_text(to_document(builders.planned(seen), rehearsed=True))

    assert "\nout of service: 1 of at most 1" in shown


def shown(*outcomes: Outcome) -> str:
    """The text about the node `late`, which is cordoned and drained, after these outcomes."""
    reported: Document = to_document(plan(), outcomes, rehearsed=False)
    return block(as_text(reported), "late")


def test_an_action_that_failed_and_those_after_it_are_not_reported_as_done() -> None:
    text = shown(Outcome("late", "cordon", Result.FAILED, "the server is away"))

    assert "  not done  cordon, drain\n" in f"{text}\n"
    assert "  does " not in text
    assert text.startswith(f"late (zone 3): operational, would become {State.IN_MAINTENANCE}")


def test_what_was_done_before_an_action_failed_is_reported_as_done() -> None:
    text = shown(Outcome("late", "cordon", Result.DONE), Outcome("late", "drain", Result.FAILED, "no pods"))

    assert "  does      cordon\n" in text
    assert "  not done  drain" in text


def test_an_outcome_of_another_node_changes_nothing() -> None:
    assert "  does      cordon, drain\n" in shown(Outcome("over", "uncordon", Result.FAILED, "no"))
