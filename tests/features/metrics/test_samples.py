"""The samples of a pass: what its plan says, and nothing about nodes that have neither a case nor a hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobs.runtime.metrics import Family
from reconciler.features.metrics import catalogue
from reconciler.features.metrics.samples import BUDGETS, PassView, count_answers, held_since, pass_samples
from reconciler.model.drains import Blocker, DrainProgress, Phase
from reconciler.model.event import Kind
from reconciler.model.instructions import Instructions, PersonHold, Word
from reconciler.model.plan import Hold, NodePlan, NodeStatus, Plan
from reconciler.model.polling import Memory, ScopeAnswer
from reconciler.model.record import DrainRecord, State
from reconciler.model.snapshot import ReadForSettings
from reconciler.model.values import replace
from reconciler.settings.schema import Settings
from tests.features.metrics import everything
from tests.support.builders import (
    NOW,
    held_node,
    known,
    minutes,
    node,
    planned,
    reading,
    record,
    reported,
    settings,
    signal,
    snapshot,
)
from tests.support.golden import assert_as_in

HOUR = timedelta(hours=1)


def values(view: PassView, family: Family) -> dict[tuple[str, ...], float]:
    return {one.labels: one.value for one in pass_samples(view) if one.family is family}


def plan_with_event(
    not_before: datetime | None = NOW + HOUR, chosen: Settings | None = None, *, nodes: int = 2
) -> Plan:
    """The first node has a reboot ahead."""
    fleet = [node(name, pool="batch", zone="west-1") for name in "abcdefgh"[:nodes]]
    event = reported(signal(Kind.REBOOT, not_before=not_before))
    return planned(snapshot(*fleet, readings={"a": event}), chosen)


def test_a_hold_of_a_person_has_the_moment_at_which_it_was_given_also_without_an_event() -> None:
    given = NOW - timedelta(days=8)
    hold = PersonHold(Word(by="alice@laptop", at=given))
    status = NodeStatus(instructions=Instructions(hold=hold))
    held, free = (NodePlan(name, "", "", State.OPERATIONAL, State.OPERATIONAL) for name in "ab")
    plan = Plan(NOW, "Enforce", nodes=(replace(held, status=status), free), managed=2)

    found = PassView(plan, holds_since=held_since({}, plan))

    assert values(found, catalogue.NODE_HOLD) == {("a", "notHeld"): 1}
    assert values(found, catalogue.NODE_HOLD_SINCE) == {("a", "notHeld"): given.timestamp()}


def test_a_hold_of_a_person_without_a_moment_is_there_since_the_first_pass_that_saw_it() -> None:
    status = NodeStatus(instructions=Instructions(hold=PersonHold(Word())))
    held = NodePlan("a", "", "", State.OPERATIONAL, State.OPERATIONAL, status=status)
    plan = Plan(NOW, "Enforce", nodes=(held,), managed=1)

    found = PassView(plan, holds_since=held_since({}, plan))

    assert values(found, catalogue.NODE_HOLD_SINCE) == {("a", "notHeld"): NOW.timestamp()}


def draining(*blockers: Blocker, phase: Phase = Phase.RUNNING) -> PassView:
    """A node in maintenance, and the progress of its drain."""
    plan = planned(snapshot(held_node(record(drain=None), "a"), node("b")))
    progress = DrainProgress("a", "uid-a", phase, total=9, blockers=blockers)
    return PassView(plan, {"a": progress})


def test_the_samples_of_a_pass_are_as_in_the_golden_file() -> None:
    """One node waits, one drains, one has been drained, and one has neither a case nor a hold."""
    blockers = (
        Blocker("shop/web-1", "waits", "shop/web"),
        Blocker("shop/web-2", "waits", "shop/web"),
        Blocker("shop/job", "is unmanaged"),
        Blocker("shop/vm", "moves", leaving=True),
    )
    drains = {
        "drains": DrainProgress("drains", "u", Phase.RUNNING, blockers=blockers),
        "done": DrainProgress("done", "u", Phase.DRAINED),
    }
    shown = everything.plan()
    view = PassView(shown, drains, held_since({("waits", "windowOpen"): NOW - HOUR}, shown))

    lines = [
        f"{sample.family} {dict(zip(sample.family.labels, sample.labels, strict=True))} {sample.value:g}\n"
        if sample.value < 1e6
        else f"{sample.family} {sample.labels} {datetime.fromtimestamp(sample.value, UTC)}\n"
        for sample in pass_samples(view)
    ]
    assert_as_in(Path(__file__).parent / "golden" / "samples.txt", "".join(lines))


def test_a_drain_that_has_begun_keeps_the_deadline_of_its_event() -> None:
    case = record(drain=DrainRecord(NOW - minutes(1)), events=(known(Kind.REDEPLOY, not_before=NOW + HOUR),))
    event = reported(signal(Kind.REDEPLOY, not_before=NOW + HOUR))
    view = PassView(planned(snapshot(held_node(case, "a"), node("b"), readings={"a": event})))

    schedule = view.plan.nodes[0].schedule
    assert schedule is not None
    assert schedule.started
    assert values(view, catalogue.LATEST_START) == {("a", "Redeploy"): (NOW + minutes(45)).timestamp()}


def test_an_event_without_a_date_has_no_moment_of_the_platform() -> None:
    view = PassView(plan_with_event(None))

    assert values(view, catalogue.PLATFORM_TIME) == {}
    assert values(view, catalogue.WILL_BE_MISSED).keys() == {("a", "Reboot")}


def test_a_case_that_can_not_be_served_is_shown_as_a_miss() -> None:
    never = settings(f"notAllowed: [{{name: x, start: {NOW:%Y-%m-%d}, end: 2027-01-01, absolute: true}}]")

    assert values(PassView(plan_with_event(chosen=never)), catalogue.WILL_BE_MISSED) == {("a", "Reboot"): 1}


def test_a_node_that_the_plan_only_mentions_has_no_series() -> None:
    quiet = NodePlan(
        "a", "", "", State.OPERATIONAL, State.OPERATIONAL, status=NodeStatus(unread=(("imds", "silent"),))
    )

    samples = pass_samples(PassView(Plan(NOW, "Enforce", nodes=(quiet,), managed=1)))

    assert [one.family.name for one in samples if "node" in one.family.labels] == []


def test_a_hold_is_shown_once_with_since_when_it_is_there() -> None:
    holds = tuple(Hold("a", code, "because") for code in ("windowOpen", "windowOpen", "budgetLeft"))
    waiting = NodePlan("a", "", "", State.REQUIRED, State.REQUIRED, holds=holds)
    plan = Plan(NOW, "Enforce", nodes=(waiting,), managed=1)

    view = PassView(plan, holds_since=held_since({("a", "windowOpen"): NOW - HOUR, ("z", "x"): NOW}, plan))

    assert values(view, catalogue.NODE_HOLD) == {("a", "windowOpen"): 1, ("a", "budgetLeft"): 1}
    assert values(view, catalogue.NODE_HOLD_SINCE) == {
        ("a", "windowOpen"): (NOW - HOUR).timestamp(),
        ("a", "budgetLeft"): NOW.timestamp(),
    }
    assert ("z", "x") not in view.holds_since


def test_one_node_can_not_have_any_number_of_budgets() -> None:
    view = draining(*(Blocker(f"ns{n}/p", "waits", f"ns{n}/b") for n in range(BUDGETS + 5)))

    found = values(view, catalogue.BLOCKED_PODS)
    assert len(found) == BUDGETS + 1
    assert found["a", "", ""] == 5


def test_a_source_shows_its_last_answer_and_the_nodes_that_it_knows_nothing_about() -> None:
    old, new = (reading(source="imds", as_of=NOW - minutes(count)) for count in (5, 2))
    silent = reading(source="imds", unknown="no agent", as_of=NOW - 9 * HOUR)
    ahead = reading(signal(source="request"), as_of=NOW + HOUR)
    plan = planned(
        snapshot(node("a"), node("b"), node("c"), readings={"a": (old,), "b": (silent, ahead), "c": (new,)})
    )

    view = PassView(plan)
    last = values(view, catalogue.SOURCE_LAST_ANSWER)
    assert last["imds",] == (NOW - minutes(2)).timestamp()
    assert last["request",] == NOW.timestamp(), "a node can not write a moment in the future"
    assert values(view, catalogue.SOURCE_UNREADABLE_NODES)["imds",] == 1
    answers = dict(count_answers(plan))
    assert answers["imds", "no_event"] == 2
    assert answers["imds", "unknown"] == 1
    assert answers["request", "event"] == 1
    # A source that is enabled, and answers about no node, is there, too.
    assert answers["condition:VMEventScheduled", "no_event"] == 0


def test_a_polled_source_was_last_asked_when_its_memory_says() -> None:
    seen = snapshot(node("a"), readings={"a": (reading(source="arm"),)})
    failed: ScopeAnswer[str, str] = ScopeAnswer("s2", NOW, NOW + HOUR, problem="no answer")
    asked: ScopeAnswer[str, str] = ScopeAnswer("s1", NOW - minutes(7), NOW + HOUR)
    seen = replace(seen, memories={"arm": Memory((asked, failed))})

    view = PassView(planned(seen, settings("sources: {arm: {enabled: true}}")))

    assert values(view, catalogue.SOURCE_LAST_ANSWER)["arm",] == (NOW - minutes(7)).timestamp()


def test_a_source_without_an_agent_gives_no_answer() -> None:
    absent = reading(source="imds", unknown="not installed", installed=False)

    plan = planned(snapshot(node("a"), readings={"a": (absent,)}))

    assert values(PassView(plan), catalogue.SOURCE_UNREADABLE_NODES)["imds",] == 0
    assert ("imds",) not in values(PassView(plan), catalogue.SOURCE_LAST_ANSWER)


def test_one_node_that_can_not_be_shown_harms_no_other(caplog: pytest.LogCaptureFixture) -> None:
    plan = plan_with_event(nodes=1)
    broken = replace(plan.nodes[0], node="x", schedule="broken")  # type: ignore[arg-type]

    view = PassView(replace(plan, nodes=(broken, *plan.nodes)))

    assert {labels[0] for labels in values(view, catalogue.NODE_STATE)} == {"a"}
    assert "node x has no metrics" in caplog.text


def test_a_forecast_without_what_it_needs_has_no_samples() -> None:
    seen = snapshot(node("a"), readings={"a": reported(signal(Kind.REBOOT, not_before=NOW + HOUR))})
    view = PassView(planned(replace(seen, for_settings=ReadForSettings())))

    assert values(view, catalogue.LATEST_START).keys() == {("a", "Reboot")}
    assert values(view, catalogue.WILL_BE_MISSED) == values(view, catalogue.AT_RISK) == {}
