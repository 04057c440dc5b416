"""A report of some nodes: their rows only, and the counts of the whole fleet."""

from __future__ import annotations

import pytest

from reconciler.model.plan import BudgetUse, Plan
from reconciler.report.document import to_document
from reconciler.report.limited import Limit, Only, limited
from reconciler.report.markdown import as_markdown
from reconciler.report.text import as_text
from reconciler.report.values import Document
from tests.report import scene
from tests.support import builders
from tests.support.builders import NOW

PLAN = scene.plan()
WHOLE = to_document(PLAN, rehearsed=True)


def rows(document: Document) -> set[str]:
    return {node["name"] for node in document["nodes"]}


def test_without_a_limit_the_report_is_as_it_was() -> None:
    assert limited(WHOLE, PLAN, Limit()) == WHOLE
    assert WHOLE["filter"] is None


def test_only_the_named_rows_are_left_and_everything_else_is_that_of_the_fleet() -> None:
    found = limited(WHOLE, PLAN, Limit(("over", "late", "over", "fine")))

    assert rows(found) == {"late", "over"}
    assert {key for key in WHOLE if found[key] != WHOLE[key]} == {"filter", "nodes"}
    assert found["filter"] == {
        "nodes": ["over", "late", "fine"],
        "selector": None,
        "only": None,
        "shown": 2,
        "of": len(WHOLE["nodes"]),
        "quiet": ["fine"],
    }


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (Only.HELD, {"draining", "over", "waiting", "odd"}),
        (Only.PLANNED, {"late", "waiting"}),
        (Only.DRAINING, {"draining"}),
    ],
)
def test_only_shows_the_nodes_in_that_situation(only: Only, expected: set[str]) -> None:
    assert rows(limited(WHOLE, PLAN, Limit(only=only))) == expected


def test_a_node_that_is_drained_by_hand_is_being_drained() -> None:
    node = builders.held_node(builders.record(), "a", claimed_by="kim@laptop")
    plan = builders.planned(builders.snapshot(node))
    document = to_document(plan, rehearsed=True)

    assert rows(limited(document, plan, Limit(only=Only.DRAINING))) == {"a"}


def test_names_and_a_situation_limit_together() -> None:
    assert rows(limited(WHOLE, PLAN, Limit(("over", "draining"), Only.DRAINING))) == {"draining"}


@pytest.mark.parametrize("form", [as_text, as_markdown])
def test_people_are_told_which_rows_they_see(form: object) -> None:
    assert callable(form)
    shown = form(limited(WHOLE, PLAN, Limit(("late", "fine"), Only.PLANNED)))

    assert f"ows: 1 of {len(WHOLE['nodes'])} shown (only planned; late, fine)" in shown
    assert "othing to report: fine" in shown
    assert "waiting" not in shown.partition("shown (")[2]


@pytest.mark.parametrize("form", [as_text, as_markdown])
def test_an_empty_choice_does_not_say_that_the_cluster_is_quiet(form: object) -> None:
    assert callable(form)
    quiet = Plan(NOW, "Observe", budget=BudgetUse(0, 3))

    assert "o node has an event" not in form(limited(WHOLE, PLAN, Limit(("fine",))))
    assert "o node has an event" in form(limited(to_document(quiet, rehearsed=True), quiet, Limit(("a",))))


def test_many_names_are_counted_after_the_fifth() -> None:
    names = tuple(f"n{number}" for number in range(9))

    assert "(n0, n1, n2, n3, n4 and 4 more)" in as_text(limited(WHOLE, PLAN, Limit(names)))
