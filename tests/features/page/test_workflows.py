"""The page about workflows: a node with its pods is not draining, and each thing to do has an entry."""

from __future__ import annotations

from jobs.runtime.process import Passed
from reconciler.features.page.facts import Cell, History, PageFacts, cell_of, profiles
from reconciler.features.page.html import as_html
from reconciler.features.page.live import page_facts
from reconciler.features.page.top import asks
from reconciler.model.record import State
from reconciler.passes.store import Store
from reconciler.report.document import to_report
from reconciler.report.text import as_text
from reconciler.run import PARTS, rehearse, run_pass
from reconciler.simulation.world import World
from tests.examples.playing import MINUTE, WEB
from tests.examples.test_maintenance_controller import FLATCAR, OUTDATED, PROFILE, SETTINGS, passes
from tests.simulation.building import name, world


def _fleet() -> World:
    """The first node is drained for its kubelet, the second reboots with its pods, two wait for approval."""
    there = world(5, WEB)
    there.cluster.label(name(0), PROFILE, "kubelet")
    there.cluster.label(name(0), OUTDATED, "true")
    for number in range(1, 4):
        there.cluster.label(name(number), PROFILE, "flatcar")
        there.cluster.annotate(name(number), f"{FLATCAR}/reboot-needed", "true")
    passes(there)
    there.cluster.annotate(name(1), "cloud.sap/maintenance-approved", "true")
    passes(there)
    return there


def _facts(there: World) -> PageFacts:
    plan = rehearse(there.outside, SETTINGS, there.now)
    return page_facts(Passed(plan, SETTINGS, rehearsed=True), History())


def test_a_node_whose_workflow_neither_cordons_nor_drains_it_is_not_draining() -> None:
    facts = _facts(_fleet())
    cells = {plan.node: cell_of(plan, facts) for plan in facts.plan.nodes}

    assert cells[name(1)] is Cell.MAINTAINED
    assert cells[name(2)] is Cell.ANNOUNCED


def test_what_waits_for_an_approval_has_an_entry_of_its_own() -> None:
    entries = {frozenset(entry.nodes.first): entry.text for entry in asks(_facts(_fleet())).entries}

    assert "no annotation cloud.sap/maintenance-approved" in entries[frozenset((name(2), name(3)))]
    assert "reboot-needed is 'true'" in entries[frozenset((name(1),))]


def test_a_misspelt_profile_is_said_with_the_command_that_corrects_it() -> None:
    there = _fleet()
    there.cluster.label(name(4), PROFILE, "kubelet--flatcra")
    passes(there)
    facts = _facts(there)
    (entry,) = [entry for entry in asks(facts).entries if entry.nodes.first == (name(4),)]

    assert f"label {PROFILE} names flatcra" in entry.text
    assert f"kubectl label node {name(4)} {PROFILE}=kubelet--flatcar --overwrite" in entry.text


def test_nodes_are_counted_by_profile_and_state_on_the_page_and_in_the_report() -> None:
    facts = _facts(_fleet())
    report = to_report(facts.plan, rehearsed=True)
    counted = {"kubelet": {"in-maintenance": 1}, "flatcar": {"in-maintenance": 1, "maintenance-required": 2}}
    counted["default"] = {"operational": 1}

    assert {name: dict(counts) for name, counts in profiles(facts.plan).items()} == counted
    assert "profile flatcar: 2 maintenance-required, 1 in-maintenance" in as_text(report)
    assert {"profile": "kubelet", "state": "in-maintenance", "count": 1} in report.document["profiles"]
    assert "Nodes by profile and state" in as_html(facts)


def test_nodes_that_rest_are_counted_as_operational() -> None:
    there = world(5, WEB)
    for number in range(3):
        there.cluster.label(name(number), PROFILE, "flatcar")
    store = Store(PARTS)
    for _ in range(4):
        plan, _ = run_pass(there.outside, SETTINGS, there.now, store)
        there.advance(MINUTE)

    assert {(one.profile, one.state, one.count) for one in plan.profiles} == {
        ("flatcar", State.OPERATIONAL, 3),
        ("default", State.OPERATIONAL, 2),
    }
