"""A rehearsal needs read permissions on nodes only; it says what else it could not see, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from reconciler.model.errors import Forbidden, Unauthorized
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Agents, Remediator
from reconciler.report.document import Report, to_report
from reconciler.report.text import as_markdown, as_text
from reconciler.run import examine, rehearse, run_pass
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.builders import REQUEST, codes, plan_of
from tests.support.worlds import look, world_of

NOW_DUE = '{"kind":"Reboot"}'
BY_NAMESPACE = "drain: {rules: [{name: batch, namespaces: {team: batch}, behavior: Skip}]}"
READS = ("ledger", "agents", "remediator", "pods", "budgets", "namespaces")


def forbid(world: World, refused: Collection[str]) -> None:
    """Let the API server refuse these reads, as the client reports it for what a pass needs or not."""

    def refuse(call: Call) -> None:
        if call.what in refused:
            kind = Forbidden if call.what == "ledger" else Unauthorized
            raise kind(f"403 {call.what}", status=403, needs=f"list {call.what}")

    world.api.before_read = refuse


def asking_world() -> World:
    return world_of(
        [builders.node("a", annotations={REQUEST: NOW_DUE}), builders.node("b")],
        [builders.pod(on="a"), builders.pod("other", on="b")],
    )


def rehearsed(refused: Collection[str], settings: str = "") -> Plan:
    world = asking_world()
    forbid(world, refused)
    return examine(world.outside, builders.settings(settings), world.now, with_preview=True).plan


def test_with_permissions_on_nodes_and_pods_alone_the_drain_has_its_preview() -> None:
    plan = rehearsed(set(READS) - {"pods"})

    assert plan_of(plan, "a").todo.drain is not None
    preview = plan_of(plan, "a").draining.preview
    assert preview is not None
    assert [pod.action for pod in preview.pods] == ["evict"]
    assert {one.needs for one in plan.unseen} == {f"list {what}" for what in READS if what != "pods"}
    assert [one.what for one in preview.unknown] == ["PodDisruptionBudgets", "the namespaces"]


@pytest.mark.parametrize("form", [as_text, as_markdown])
def test_each_form_lists_what_was_not_seen_and_what_it_needs(form: Callable[[Report], str]) -> None:
    report = to_report(rehearsed(("budgets", "ledger")), rehearsed=True)
    shown = form(report)

    assert len(report.plan.unseen) == 2
    for one in report.plan.unseen:
        assert f"ould not see: {one.what} (needs {one.needs}): {one.follows}" in shown
    assert shown.count("PodDisruptionBudgets (needs list budgets)") == 2


def test_without_permissions_on_pods_there_is_no_preview_and_the_report_says_so() -> None:
    plan = rehearsed(READS)

    assert plan_of(plan, "a").todo.drain is not None
    assert plan_of(plan, "a").draining.preview is None
    assert "the pods" in {one.what for one in plan.unseen}


def test_agents_that_may_not_be_read_make_their_events_unknown() -> None:
    world = asking_world()
    world.cluster.agents = Agents(installed=True, problem="403 daemonsets", needs="get daemonsets.apps in x")
    plan = rehearse(world.outside, builders.settings(), world.now)

    assert any("needs get daemonsets.apps in x" in text for text in plan_of(plan, "b").unknowns)
    assert [one.needs for one in plan.unseen] == ["get daemonsets.apps in x"]


def test_a_remediator_that_may_not_be_read_is_in_the_list_and_not_in_the_notes() -> None:
    world = asking_world()
    world.cluster.remediator = Remediator(problem="403 configmaps", needs="get configmaps in kube-system")
    plan = rehearse(world.outside, builders.settings(), world.now)

    assert [one.needs for one in plan.unseen] == ["get configmaps in kube-system"]
    assert [note for note in plan.notes if "remediator" in note] == []


def test_no_start_is_shown_where_the_last_one_may_not_be_read_and_matters() -> None:
    plan = rehearsed(("ledger",), "budget: {spacing: 1h}")

    assert "spacingKept" in codes(plan_of(plan, "a"))
    assert "needs list ledger" in " ".join(plan.notes)


def test_a_rule_that_selects_unseen_namespaces_holds_its_drains() -> None:
    plan = rehearsed(("namespaces",), BY_NAMESPACE)

    assert "namespacesReadable" in codes(plan_of(plan, "a"))


def test_pods_of_a_running_drain_that_may_not_be_read_are_no_error() -> None:
    world = asking_world()
    look(world, builders.settings())
    # Another process drains it.
    world.restart()
    forbid(world, ("pods",))
    plan = examine(world.outside, builders.settings(), world.now, with_preview=True).plan

    assert "podsReadable" in codes(plan_of(plan, "a"))
    assert [one.what for one in plan.unseen] == ["the pods"]


@pytest.mark.parametrize("refused", ["ledger", "agents", "namespaces"])
def test_a_pass_that_acts_needs_all_its_permissions(refused: str) -> None:
    world = asking_world()
    forbid(world, (refused,))

    with pytest.raises((Forbidden, Unauthorized)):
        run_pass(world.outside, builders.settings(BY_NAMESPACE), world.now)


def test_credentials_that_are_refused_end_a_rehearsal_too() -> None:
    world = asking_world()

    def refuse(call: Call) -> None:
        if call.what == "budgets":
            raise Unauthorized("401", status=401)

    world.api.before_read = refuse
    with pytest.raises(Unauthorized):
        examine(world.outside, builders.settings(), world.now, with_preview=True)
