"""Who must do something, and what no report or plan may look quiet beside."""

from __future__ import annotations

from reconciler.model.event import Kind, Status
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import Plan
from reconciler.model.problems import Unseen
from reconciler.model.values import replace
from reconciler.report.commands import commands_in
from reconciler.report.document import to_report
from reconciler.report.people import people
from reconciler.report.text import as_text
from tests.support import builders
from tests.support.builders import NOW, minutes, node, plan_of, planned, reported, signal, snapshot

REDEPLOY = reported(signal(Kind.REDEPLOY, not_before=NOW + minutes(60)))


def pass_with(text: str = "", mode: str = "Enforce") -> Plan:
    """A pass over two nodes; the first one has a Redeploy in an hour."""
    seen = snapshot(node(), node("b"), readings={"a": REDEPLOY})
    return planned(seen, builders.settings(text, mode=mode))


TYPO = "nodeSelector: {agentpol: pool0}"


def test_a_report_of_settings_that_select_no_node_says_so_above_its_rows() -> None:
    printed = as_text(to_report(pass_with(TYPO), rehearsed=True))

    assert "NO NODE: the settings select none of the 2 nodes" in printed
    assert "UNGUARDED: a: Redeploy: nodeSelector does not select it" in printed


def test_what_is_wrong_with_a_pass_has_a_person_and_a_command() -> None:
    plan = replace(planned(snapshot(node())), unseen=(Unseen("the ledger", "get configmaps", "none", "403"),))
    failed = Outcome("a", "cordon", Result.FAILED, "the server is away")

    asked = people(plan, (failed,), ("it is stuck",))
    assert [commands_in(ask.who)[0].split()[0] for ask in asked] == ["kubectl"] * 3
    assert people(planned(snapshot(node()))) == ()


def test_a_maintenance_that_has_started_is_unguarded_too() -> None:
    started = reported(signal(Kind.REDEPLOY, status=Status.STARTED))
    plan = planned(snapshot(node(), readings={"a": started}), builders.settings(mode="Observe"))
    assert plan_of(plan).unguarded is not None
