"""What every report must show, in each format."""

from __future__ import annotations

import json

import pytest

from reconciler.calendar.values import in_zone
from reconciler.model.plan import BudgetUse, Plan
from reconciler.report.document import as_json, to_document
from reconciler.report.markdown import as_markdown
from reconciler.report.text import as_text, as_wide_text
from tests.report.scene import document
from tests.support import builders
from tests.support.builders import NOW

BOTH = pytest.mark.parametrize("rehearsed", [False, True])


@BOTH
def test_every_hold_unknown_note_and_reason_is_in_the_text_and_in_the_markdown(rehearsed: bool) -> None:
    reported = document(rehearsed=rehearsed)
    text, markdown = as_text(reported), as_markdown(reported)
    wanted = list(reported["notes"])
    for node in reported["nodes"]:
        wanted += [hold["reason"] for hold in node["holds"]]
        wanted += node["unknown"]
        wanted += [step["because"] for step in node["transitions"]]

    assert len(wanted) > 8
    for each in wanted:
        assert in_zone(each) in text
        assert in_zone(each) in markdown


@BOTH
def test_the_json_is_the_document(rehearsed: bool) -> None:
    reported = document(rehearsed=rehearsed)

    assert json.loads(as_json(reported)) == reported


def test_what_failed_is_said() -> None:
    text = as_text(document())

    assert "FAILED: draining: update record: the server is away" in text
    assert "retried by the next pass: over: uncordon: changed since it was seen" in text
    assert "cordon: done" not in text


def test_nodes_with_only_unknown_sources_share_a_line() -> None:
    assert "unknown: imds: its agent is not ready: hushed, silent" in as_text(document())


def test_a_rehearsal_says_would_and_a_pass_says_does() -> None:
    assert "would     cordon, drain" in as_text(document(rehearsed=True))
    assert "nothing is written" in as_text(document(rehearsed=True))
    assert "does      cordon, drain" in as_text(document())


def test_a_wide_report_also_has_a_row_for_each_pod() -> None:
    reported = document(rehearsed=True)

    more = set(as_wide_text(reported).splitlines()) - set(as_text(reported).splitlines())

    assert more == {
        "  pod       shop/web-1: evict",
        "  pod       shop/cache: keep: Pods with local storage",
    }


def test_a_pod_that_is_waited_for_has_its_row_once() -> None:
    reported = document(rehearsed=True)
    for node in reported["nodes"]:
        if node["preview"] is not None:
            node["preview"]["pods"] = [{"pod": "shop/job", "action": "wait", "reasons": ["its label"]}]

    assert as_wide_text(reported) == as_text(reported)


def test_a_quiet_cluster_is_said_in_a_line() -> None:
    reported = to_document(Plan(NOW, "Observe", managed=3, budget=BudgetUse(1, 3)), rehearsed=True)

    assert "no node has an event; none cordoned or draining by us" in as_text(reported)
    assert "No node has an event" in as_markdown(reported)
    assert "out of service: 0 of at most 1" in as_text(reported)


def test_many_holders_are_counted_after_the_fifth() -> None:
    holders = tuple((f"n{number}", "NotReady") for number in range(7))
    reported = to_document(Plan(NOW, "Enforce", budget=BudgetUse(9, 20, holders)), rehearsed=False)

    assert "n4 (NotReady) and 2 more" in as_text(reported)


def test_what_a_cluster_says_does_not_become_markdown_of_its_own() -> None:
    event = builders.signal(description="<b>|\n")
    seen = builders.snapshot(
        builders.node("a|b"), readings={"a|b": builders.reported(event)}, skew=builders.minutes(9)
    )
    text = as_markdown(to_document(builders.planned(seen), rehearsed=True))

    assert "a\\|b" in text
    assert "<b>" not in text
