"""A report of some nodes: their rows only, and the counts of the whole fleet."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.model.instructions import PersonHold, Word, hold_text
from reconciler.model.plan import BudgetUse, NodePlan, Plan
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.record import State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from reconciler.report.document import Limit, Only, Report, limited, to_report
from reconciler.report.text import as_markdown, as_text
from tests.report import scene
from tests.support import builders
from tests.support.builders import NOW

WHOLE = to_report(scene.plan(), rehearsed=True)
FORMS = pytest.mark.parametrize("form", [as_text, as_markdown])
Form = Callable[[Report], str]


def rows(report: Report) -> set[str]:
    return {node.name for node in report.nodes}


def test_only_the_named_rows_are_left_and_everything_else_is_that_of_the_fleet() -> None:
    whole, document = WHOLE.document, limited(WHOLE, Limit(("over", "late", "over", "fine"))).document

    assert limited(WHOLE, Limit()) == WHOLE
    assert [node["name"] for node in document["nodes"]] == ["late", "over"]
    assert {key for key in whole if document[key] != whole[key]} == {"filter", "nodes"}
    assert document["filter"] == {
        "nodes": ["over", "late", "fine"],
        "selector": None,
        "namespace": None,
        "only": None,
        "shown": 2,
        "of": len(whole["nodes"]),
        "quiet": ["fine"],
    }


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (Limit(only=Only.MISSED), {"draining"}),
        (Limit(only=Only.BLOCKED), {"draining", "odd"}),
        (Limit(only=Only.HELD), set()),
        (Limit(only=Only.WAITS), {"over", "waiting"}),
        (Limit(only=Only.DRAINED), {"over"}),
        (Limit(only=Only.PLANNED), {"late", "waiting"}),
        (Limit(only=Only.DRAINING), {"draining"}),
        (Limit(("over", "draining"), Only.DRAINING), {"draining"}),
    ],
)
def test_only_shows_the_nodes_in_that_situation(limit: Limit, expected: set[str]) -> None:
    assert rows(limited(WHOLE, limit)) == expected


def test_a_node_that_is_drained_by_hand_is_being_drained() -> None:
    node = builders.held_node(builders.record(), "a", claimed_by="kim@laptop")
    report = to_report(builders.planned(builders.snapshot(node)), rehearsed=True)

    assert rows(limited(report, Limit(only=Only.DRAINING))) == {"a"}


@FORMS
def test_people_are_told_which_rows_they_see(form: Form) -> None:
    shown = form(limited(WHOLE, Limit(("late", "fine"), Only.PLANNED)))

    assert f"ows: 1 of {len(WHOLE.nodes)} shown (only planned; late, fine)" in shown
    assert "othing to report: fine" in shown
    assert "waiting" not in shown.partition("shown (")[2]


@FORMS
def test_an_empty_choice_does_not_say_that_the_cluster_is_quiet(form: Form) -> None:
    quiet = to_report(Plan(NOW, "Observe", budget=BudgetUse(0, 3)), rehearsed=True)

    assert "o node has an event" not in form(limited(WHOLE, Limit(("fine",))))
    assert "o node has an event" in form(limited(quiet, Limit(("a",))))


def test_many_names_are_counted_after_the_fifth() -> None:
    names = tuple(f"n{number}" for number in range(9))

    assert "(n0, n1, n2, n3, n4 and 4 more)" in as_text(limited(WHOLE, Limit(names)))


@pytest.mark.parametrize("only", [None, Only.HELD])
@pytest.mark.parametrize("form", [as_text, as_markdown])
def test_a_node_that_a_person_holds_is_shown_also_without_an_event(only: Only | None, form: Form) -> None:
    hold = hold_text(PersonHold(Word("alice@laptop", NOW, reason="disk copy")))
    node = builders.node(annotations={f"{builders.PREFIX}/hold": hold})
    report = to_report(builders.planned(builders.snapshot(node)), rehearsed=True)

    shown = form(limited(report, Limit(only=only)))
    assert "disk copy" in shown
    assert "reconciler resume a" in shown


@FORMS
def test_a_filter_changes_nothing_of_what_is_said_of_the_whole_fleet(form: Form) -> None:
    begin = "would be out of service: "

    assert begin in form(WHOLE)
    assert begin in form(limited(WHOLE, Limit(only=Only.HELD)))


def test_what_is_missed_comes_first() -> None:
    calm = NodePlan("a", "", "", State.REQUIRED, State.REQUIRED)
    lost = replace(calm, node="b", schedule=CaseSchedule(missed=True))
    plan = replace(scene.plan(), nodes=(calm, lost))

    assert [node.name for node in to_report(plan, rehearsed=True).nodes] == ["b", "a"]


def test_beside_a_reconciler_that_acts_no_command_says_dry_run() -> None:
    alive = Reconciler(Running.RUNNING, holder="serve-1", mode="Enforce")
    report = to_report(replace(scene.plan(), reconciler=alive), rehearsed=True)

    assert "this command writes nothing, the reconciler acts" in as_text(report)
    assert "dry run" not in as_text(report)
    assert "dry run: no node is changed" in as_text(WHOLE)


@pytest.mark.parametrize("form", [as_text, as_markdown])
def test_a_row_says_whether_the_reconciler_that_runs_does_it(form: Form) -> None:
    alive = Reconciler(Running.RUNNING, holder="serve-1", mode="Enforce")
    enforced = replace(scene.plan(), reconciler=alive)
    text = form(to_report(enforced, rehearsed=True))

    assert "operational, becomes in-maintenance in the next pass" in text
    assert "out of service after the next pass: 3 of at most 5" in text
    assert "would" not in text
    if form is as_text:
        assert "  does      cordon, drain (by the reconciler, in its next pass)\n" in text
    else:
        assert "what the reconciler does in its next pass" in text
    # With other settings than those of the reconciler, nobody does it.
    for other in (replace(alive, mode="Finish"), replace(alive, running=Running.UNKNOWN)):
        unsure = form(to_report(replace(enforced, reconciler=other), rehearsed=True))
        assert "operational, would become in-maintenance" in unsure
