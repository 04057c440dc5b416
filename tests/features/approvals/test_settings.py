"""`approval` and `approvalMissing` of a kind: what is explained, what is warned of, and what they do."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from reconciler.model.node import Node
from reconciler.model.schedule import CaseForecast
from reconciler.report.document import to_report
from reconciler.report.standing import Standing, standing
from reconciler.report.table import as_table
from reconciler.settings.explain import explain_settings
from reconciler.settings.load import parse_settings
from reconciler.settings.warnings import warnings
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.builders import REQUEST
from tests.support.worlds import world_of

APPROVAL = "events: {Reboot: {approval: true}}"
SOON = {REQUEST: json.dumps({"kind": "Reboot", "notBefore": "2026-11-21T13:00:00Z"})}


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("Hold", "after a person has approved it;"),
        ("Proceed", "after a person has approved it, or at the deadline;"),
    ],
)
def test_an_approval_is_explained(missing: str, words: str) -> None:
    text = explain_settings(
        parse_settings(f"events: {{Reboot: {{approval: true, approvalMissing: {missing}}}}}", "policy.yaml")
    )

    assert text.count(words) == 1


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        (
            "events: {Terminate: {approval: true}}",
            "events.Terminate.approval: is true: without an approval in time the node is lost with its pods",
        ),
        (
            "events: {Reboot: {approvalMissing: Proceed}}",
            "events.Reboot.approvalMissing: has no effect, because no approval is required",
        ),
    ],
)
def test_an_approval_that_can_not_help_is_warned_of(settings: str, warning: str) -> None:
    (said,) = warnings(parse_settings(settings, "f"), datetime(2026, 11, 21, 12, 0, tzinfo=UTC))

    assert str(said).startswith(warning)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (builders.node(annotations=SOON), Standing.WILL_BE_MISSED),
        (builders.node(annotations={REQUEST: '{"kind":"Reboot"}'}), Standing.WAITS),
    ],
)
def test_a_node_that_waits_for_an_approval_has_one_word(node: Node, expected: Standing) -> None:
    assert standing(Explained(world_of([node]), APPROVAL).node().plan) is expected


def test_a_missing_approval_is_a_start_that_is_too_late_and_says_what_ends_it() -> None:
    schedule = Explained(world_of([builders.node(annotations=SOON)]), APPROVAL).node().plan.schedule

    assert schedule is not None
    assert (schedule.forecast, schedule.by_pods) == (CaseForecast.WILL_BE_MISSED, False)
    assert "approve" in schedule.forecast_words


def test_on_a_narrow_terminal_nodes_with_one_reason_share_it() -> None:
    nodes = [builders.node(f"aks-np-12345678-vmss00000{number}", annotations=SOON) for number in range(3)]
    plan = Explained(world_of(nodes), APPROVAL).found.plan
    shown = "".join(f"{line.text}\n" for line in as_table(to_report(plan, rehearsed=True), 80))

    assert shown.count("nobody has approved the drain for Reboot yet") == 1
    assert shown.count("WILL BE MISSED  Reboot  in 1h, 13:00\n") == 3
