"""What `reconciler explain` shows of a workflow."""

from __future__ import annotations

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
