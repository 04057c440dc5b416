"""What every report must show, in each format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler import __version__, plugins
from reconciler.calendar.values import in_zone
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import PlanSettings, PodVerdict, Preview
from reconciler.model.record import State
from reconciler.model.values import replace
from reconciler.report.columns import OF_THE_CORE, Column, columns, for_people
from reconciler.report.document import Report, as_json, summed, to_report
from reconciler.report.kinds import action_kinds
from reconciler.report.text import as_markdown, as_text
from tests.report.scene import OF_FEATURES, plan, report
from tests.support import builders
from tests.support.golden import assert_as_in


def _of_the_core() -> str:
    """Return the report as JSON, without columns and checks of features."""
    document = {**report().document, "program": "VERSION"}
    nodes = [
        {column.key: node[column.key] for column in OF_THE_CORE}
        | {"checks": [answer for answer in node["checks"] if answer["check"] not in OF_FEATURES]}
        for node in document["nodes"]
    ]
    return as_json({**document, "nodes": nodes})


GOLDEN = Path(__file__).parent / "golden"
FILES: dict[str, Callable[[], str]] = {
    "pass.txt": lambda: as_text(report()),
    "rehearsal.txt": lambda: as_text(report(rehearsed=True)),
    "pass.json": _of_the_core,
    "rehearsal.md": lambda: as_markdown(report(rehearsed=True)),
}
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
LOCAL = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d")
BOTH = pytest.mark.parametrize("rehearsed", [False, True])


@pytest.mark.parametrize("name", FILES)
def test_the_report_is_as_in_the_golden_file(name: str) -> None:
    assert_as_in(GOLDEN / name, FILES[name]())


@BOTH
def test_every_hold_unknown_note_and_reason_is_in_the_text_and_in_the_markdown(rehearsed: bool) -> None:
    about = report(rehearsed=rehearsed)
    text, markdown = as_text(about), as_markdown(about)
    wanted = list(about.plan.notes)
    for node in about.plan.nodes:
        wanted += [hold.reason for hold in node.holds]
        wanted += node.unknowns
        wanted += [step.because for step in node.transitions]

    assert len(wanted) > 8
    without_times_left = re.sub(r" \((in \w+|\w+ ago|now)\)", "", text)
    for each in wanted:
        assert in_zone(each) in without_times_left
        assert in_zone(each) in markdown


@BOTH
def test_the_json_is_the_document_in_the_order_of_the_columns(rehearsed: bool) -> None:
    document = report(rehearsed=rehearsed).document

    assert document["program"] == __version__
    assert json.loads(as_json(document)) == document
    for node in document["nodes"]:
        assert list(node) == list(columns())


def test_the_log_and_the_table_of_nodes_name_each_thing_once() -> None:
    of_the_core = [column for column in for_people() if column in OF_THE_CORE]
    logged = [column.log for column in of_the_core if column.log]
    headers = [column.cell.header for column in of_the_core if column.cell is not None]

    assert " ".join(logged) == (
        "state outcome unguarded events actions deadline plannedStart instructions because holds unknown"
        " stays"
    )
    assert headers == ["node", "zone", "state", "outcome", "event", "what happens"]


def test_a_wide_report_also_has_a_row_for_each_pod() -> None:
    about = report(rehearsed=True)

    assert set(as_text(about, wide=True).splitlines()) - set(as_text(about).splitlines()) == {
        "  pod       shop/web-1: evict",
        "  pod       shop/cache: keep: Pods with local storage",
    }


def test_a_pod_that_is_waited_for_has_its_row_once() -> None:
    about = report(rehearsed=True, preview=Preview((PodVerdict("shop/job", "u", "wait", ("its label",)),)))

    assert as_text(about, wide=True) == as_text(about)


def block(text: str, node: str) -> str:
    """The part of the text report about a node."""
    return next(part for part in text.split("\n\n") if part.startswith(node))


def test_no_line_of_a_dry_run_says_that_something_happens() -> None:
    text, markdown = (form(report(rehearsed=True)) for form in (as_text, as_markdown))

    assert not re.search(r"^  (does|not done) ", text, re.MULTILINE)
    assert "→" not in text + markdown


def test_a_place_that_would_be_taken_is_not_reported_as_taken() -> None:
    seen = builders.snapshot(builders.held_node(builders.record(), "a"))

    assert "\nout of service: 1 of at most 1" in as_text(to_report(builders.planned(seen), rehearsed=True))
    for form in (as_text, as_markdown):
        assert "would be out of service: 3 of at most 5" in form(report(rehearsed=True))
        assert "would" not in form(report())


def shown(*outcomes: Outcome) -> str:
    """The text about the node `late`, which is cordoned and drained, after these outcomes."""
    return block(as_text(to_report(plan(), outcomes, rehearsed=False)), "late")


def test_an_action_that_failed_and_those_after_it_are_not_reported_as_done() -> None:
    text = shown(Outcome("late", "cordon", Result.FAILED, "the server is away"))

    assert "  not done  cordon, drain\n" in f"{text}\n"
    assert "  does " not in text
    assert text.startswith(f"late (zone 3): operational, would become {State.IN_MAINTENANCE}")


def test_what_was_done_before_an_action_failed_is_reported_as_done() -> None:
    text = shown(Outcome("late", "cordon", Result.DONE), Outcome("late", "drain", Result.FAILED, "no pods"))

    assert "  does      cordon\n" in text
    assert "  not done  drain" in text
    assert "  does      cordon, drain\n" in shown(Outcome("over", "uncordon", Result.FAILED, "no"))


def test_several_passes_have_one_report() -> None:
    first, last = report(), report()
    (late,) = (node for node in first.nodes if node.name == "late")
    quiet = replace(late, actions=(), plan=replace(late.plan, before=State.IN_MAINTENANCE, transitions=()))

    both = summed(first, replace(last, nodes=(quiet,)))

    (joined, past, *_) = both.nodes
    assert (joined.actions, joined.plan.before) == (late.actions, State.OPERATIONAL)
    assert joined.plan.transitions == late.plan.transitions
    assert summed(first, replace(last, nodes=(late,))).nodes[0] == late
    # What held a node in an earlier pass no longer counts.
    assert (past.plan.holds, past.plan.checks, past.plan.status.unread) == ((), (), ())
    assert {node.name for node in both.nodes} == {"late", "waiting", "draining"}


@BOTH
@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(width: int, rehearsed: bool) -> None:
    whole = as_text(report(rehearsed=rehearsed))
    folded = as_text(report(rehearsed=rehearsed), width)

    assert max(map(len, folded.splitlines())) <= width
    assert folded.split() == whole.split()


def test_a_row_goes_on_below_its_own_text_and_a_terminal_of_a_few_columns_gets_readable_lines() -> None:
    folded = as_text(report(), 60)

    assert "  waits     no maintenance window is open; waits for night,\n            which opens at" in folded
    assert as_text(report(), 1) == as_text(report(), 40)
    assert as_text(report(), 1).split() == as_text(report()).split()


def texts(value: Any) -> Iterator[str]:
    """Every text in a document."""
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(each)


@BOTH
@pytest.mark.parametrize("form", [as_text, as_markdown])
def test_every_line_for_people_has_its_moments_in_the_settings_zone_and_names_it_once(
    form: Callable[[Report], str], rehearsed: bool
) -> None:
    about = report(rehearsed=rehearsed)
    text = form(replace(about, plan=replace(about.plan, settings=PlanSettings(time_zone="Asia/Kolkata"))))

    assert len(LOCAL.findall(text)) > 5
    for line in text.splitlines():
        assert not RFC3339.search(line), line
        assert line.count("IST (Asia/Kolkata)") == bool(LOCAL.search(line)), line


def test_every_moment_of_the_document_is_utc() -> None:
    found = list(texts(report(zone="Asia/Kolkata").document))

    assert sum(bool(RFC3339.search(text)) for text in found) > 5
    assert [text for text in found if LOCAL.search(text)] == []
    for text in found:
        for moment in re.findall(r"\d{4}-\d\d-\d\dT\S*?(?=[\s,;)]|$)", text):
            assert moment.endswith("Z"), text


def test_every_action_about_a_node_has_words() -> None:
    words = [kind.words for kind in action_kinds().values()]

    assert all(words)
    assert len(set(words)) == len(words)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (Column("zone", str), "toys/hoist.py: reconciler/report/columns.py has another column zone"),
        (Column("crane", str), "toys/hoist.py: toys/crane.py has another column crane"),
        (Column("hoist", str, log="load"), "toys/hoist.py: toys/crane.py has another field of the log load"),
        (Column("hoist", str, after="lift"), "toys/hoist.py: the column hoist is after lift: no such column"),
    ],
)
def test_a_column_of_a_feature_that_fits_nowhere_is_refused_with_its_file(
    column: Column, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys = [
        SimpleNamespace(__name__="toys.crane", COLUMNS=(Column("crane", str, log="load", after="zone"),)),
        SimpleNamespace(__name__="toys.hoist", COLUMNS=(column,)),
    ]
    monkeypatch.setattr(plugins, "modules", lambda stage: iter(toys if stage == "columns" else []))
    columns.cache_clear()
    try:
        with pytest.raises(ValueError, match=said):
            columns()
        toys.pop()
        assert list(columns())[:4] == ["name", "zone", "crane", "pool"]
    finally:
        columns.cache_clear()
