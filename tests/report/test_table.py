"""The report as a table: a head of three lines, and one line a node, the most urgent first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.model.plan import NodePlan, PlanSettings
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.record import DrainRecord, State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.values import replace
from reconciler.report.document import Limit, Only, Report, limited, to_report
from reconciler.report.table import as_table
from tests.report import scene
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST, minutes
from tests.support.golden import assert_as_in
from tests.support.worlds import world_of

GOLDEN = Path(__file__).parent / "golden"
NAMES = ("draining", "odd", "late", "waiting", "over", "freeze", "mine")
"""The nodes of the scene with a row, the most urgent first."""


def text(report: Report, width: int | None = None) -> str:
    return "".join(f"{line.text}\n" for line in as_table(report, width))


def rows(report: Report) -> list[str]:
    """The rows of nodes, as in a pipe."""
    return text(report).partition("NODE ")[2].partition("\n\n")[0].splitlines()[1:]


@pytest.mark.parametrize(
    ("name", "width"), [("table.txt", None), ("table-80.txt", 80), ("table-130.txt", 130)]
)
def test_the_table_is_as_in_the_golden_file(name: str, width: int | None) -> None:
    assert_as_in(GOLDEN / name, text(scene.report(rehearsed=True, zone="Europe/Berlin"), width))


def test_each_node_with_news_is_one_line_in_the_order_of_urgency() -> None:
    assert [row.split()[0] for row in rows(scene.report(rehearsed=True))] == list(NAMES)


def test_what_will_be_missed_comes_before_what_was_missed() -> None:
    lost = NodePlan("z", "", "", State.REQUIRED, State.REQUIRED, schedule=CaseSchedule(missed=True))
    planned = scene.plan()

    assert rows(to_report(replace(planned, nodes=(*planned.nodes, lost)), rehearsed=True))[0].startswith("z ")


def test_the_head_counts_the_nodes_and_says_what_comes_next() -> None:
    first, counts, following, *_ = text(scene.report(rehearsed=True)).splitlines()

    assert first == "Sat 2026-11-21 12:00 UTC · mode Enforce · dry run: no node is changed"
    assert counts == (
        "10 nodes managed: 1 missed, 1 blocked, 2 planned, 1 drained, 2 no drain"
        " · would be out of service: 3 of at most 5"
    )
    assert following == "next: Redeploy of late in 10m, at 12:10"


@pytest.mark.parametrize("width", [60, 80, 130, 200])
def test_no_line_is_wider_than_the_terminal_and_no_reason_is_lost(width: int) -> None:
    report = scene.report(rehearsed=True)
    whole, folded = text(report), text(report, width)

    assert max(map(len, folded.splitlines())) <= width
    lost = set(whole.split()) - set(folded.split())
    assert lost <= {"WHY"}


def test_a_node_that_a_person_holds_has_its_row_also_without_an_event() -> None:
    hold = json.dumps({"by": "ada@laptop", "at": "2026-11-21T09:00:00Z", "reason": "disk copy"})
    plan = builders.planned(builders.snapshot(builders.node(annotations={f"{PREFIX}/hold": hold})))
    report = to_report(plan, rehearsed=True)

    for shown in (report, limited(report, Limit(only=Only.HELD))):
        (row,) = rows(shown)
        assert row.split()[:3] == ["a", "held", "none"]
        assert "it is held by ada@laptop since 09:00 (3h ago): disk copy" in row


def test_what_a_person_must_end_is_red() -> None:
    red = {line.text.split()[0] for line in as_table(scene.report(rehearsed=True)) if line.alarm}

    assert red == {"draining", "odd"}


def test_a_moment_names_its_zone_once() -> None:
    about = scene.report(rehearsed=True)
    shown = text(replace(about, plan=replace(about.plan, settings=PlanSettings(time_zone="Asia/Kolkata"))))

    assert shown.count("IST (Asia/Kolkata)") == 1
    assert "2026-11-2" not in shown.partition("\n")[2]


def test_nobody_guards_a_node_without_a_reconciler_and_the_line_says_for_how_long() -> None:
    asked = {REQUEST: json.dumps({"kind": "Reboot", "notBefore": "2026-11-21T13:00:00Z"})}
    dead = Reconciler(Running.OVERDUE, last_pass=NOW - minutes(9))
    plan = Explained(world_of([builders.node(annotations=asked)]), reconciler=dead).found.plan

    shown = text(to_report(plan, rehearsed=True))
    assert "\nUNGUARDED: a: Reboot: no reconciler runs\n" in shown
    assert "  no reconciler runs (since 11:51, 9m ago)\n" in shown


def test_a_drained_node_says_since_when_and_what_it_waits_for() -> None:
    held = builders.record(
        drain=DrainRecord(NOW - minutes(15), done=NOW - minutes(5)),
        events=(builders.known(sources=("request",)),),
    )
    node = builders.held_node(held, annotations={REQUEST: '{"kind":"Reboot"}'})

    (row,) = rows(to_report(Explained(world_of([node])).found.plan, rehearsed=True))
    assert row.split()[:3] == ["a", "drained", "Reboot"]
    assert "5m ago; waits for " in row


def test_a_filter_that_leaves_no_row_leaves_the_head() -> None:
    shown = text(limited(scene.report(rehearsed=True), Limit(only=Only.HELD)))

    assert shown.endswith("\nrows: 0 of 9 shown (only held)\n")
    assert "NODE" not in shown


def test_a_quiet_cluster_has_no_table() -> None:
    shown = text(to_report(builders.planned(builders.snapshot(builders.node())), rehearsed=True))

    assert shown.endswith("\nno node has an event, and none is in maintenance\n")
    assert "NODE" not in shown
