"""What `reconciler explain` shows of a workflow."""

from __future__ import annotations

import json

from reconciler.report.people import people
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.worlds import world_of


def test_a_workflow_shows_its_transitions_and_the_answers_of_their_checks() -> None:
    settings = """profiles:
  instances:
    check:
    - {type: hasLabel, name: asked, config: {key: asked}}
    - {type: timeWindow, name: night, config: {start: "22:00", end: "05:00", weekdays: [sat]}}
    - {type: anyLabel, name: bad, config: {key: stop, value: "\\u001b[31m"}}
  profiles:
  - name: web
    operational: {transitions: [{check: asked && night && !bad, next: maintenance-required}]}
"""
    labels = {f"{builders.PREFIX}/maintenance-profile": "web", "asked": "yes"}
    text = Explained(world_of([builders.node(labels=labels)]), settings).text(wide=True)

    assert "  step      web to maintenance-required, if asked && night && !bad: failed\n" in text
    assert "  passed    web asked: the label asked is 'yes'\n" in text
    assert "  failed    web night: " in text
    assert "Sat 2026-11-21 22:00" in text
    assert "  failed    web bad: no node has the label stop=\\x1b[31m\n" in text


def test_a_workflow_that_waits_says_who_can_change_what_its_check_reads() -> None:
    settings = """profiles:
  instances:
    check:
    - {type: hasLabel, name: agreed, config: {key: agreed}}
    - {type: timeWindow, name: night, config: {start: "22:00", end: "05:00", weekdays: [sat]}}
  profiles:
  - name: os
    maintenance-required: {transitions: [{check: agreed && night, next: in-maintenance}]}
"""
    kept = {"Transition": "2026-11-21T11:00:00Z", "Current": "maintenance-required", "Previous": ""}
    node = builders.node(
        labels={f"{builders.PREFIX}/maintenance-profile": "os"},
        annotations={
            f"{builders.PREFIX}/maintenance-data": json.dumps({"Profiles": {"os": kept}, "Notifications": {}})
        },
    )
    explained = Explained(world_of([node]), settings)

    label, window = explained.node().obstacles
    assert (label.who, label.by_itself) == ("whoever labels nodes: `kubectl label node a KEY=VALUE`", False)
    assert (window.who.partition(";")[0], window.by_itself) == (
        "nobody: it ends by itself when the window opens",
        True,
    )
    assert [ask.who for ask in people(explained.found.plan)] == [label.who]


def test_a_check_without_an_answer_does_not_end_by_itself() -> None:
    settings = """profiles:
  instances:
    check: [{type: scheduledEvent, name: announced, config: {}}]
  profiles:
  - name: os
    operational: {transitions: [{check: announced, next: maintenance-required}]}
"""
    silent = builders.condition("VMEventScheduled", "Unknown", "IMDS query failed, exit code: 28")
    node = builders.node(labels={f"{builders.PREFIX}/maintenance-profile": "os"}, conditions=(silent,))
    explained = Explained(world_of([node]), settings)

    (hold,) = [each for each in explained.node().obstacles if each.code == "workflow"]
    assert not hold.by_itself
    assert "nobody" not in hold.who
