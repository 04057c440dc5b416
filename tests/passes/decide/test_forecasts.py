"""What the schedule knows of a case: it says once that a node will be missed, and it keeps its date."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from reconciler.model.event import Kind
from reconciler.model.schedule import CaseSchedule
from reconciler.passes.decide import scheduling
from reconciler.passes.decide.facts import WARNED_AFTER
from reconciler.simulation.platform import VmEvent
from tests.laws.histories import History
from tests.laws.test_law_14_the_forecast_comes_true import Announced, begin, run_on
from tests.support import builders
from tests.support.builders import NOW, REQUEST, event, judged, minutes

ONE = builders.settings("budget: {maxUnavailable: 1}")
RESERVE = builders.settings("budget: {maxUnavailable: 2, reserve: 1}")


def reboot(within: int, seconds: int = 600, *, requested: bool = False) -> Announced:
    return Announced(Kind.REBOOT, within, seconds, requested)


def scheduled(history: History, node: str) -> CaseSchedule:
    """Run passes until nothing is written, and return what the last one plans for the node."""
    (plan,) = (one for one in history.until_still().nodes if one.node == node)
    assert plan.schedule is not None
    return plan.schedule


def foretold(history: History) -> list[str]:
    """The nodes of all forecasts so far, in the order in which they were sent."""
    events = history.cluster.events
    return [one.node for one in events if one.notice.reason == "MaintenanceWillBeMissed"]


def ask(history: History, node: str, date: datetime) -> None:
    text = f'{{"kind":"Reboot","notBefore":"{date:%Y-%m-%dT%H:%M:%SZ}"}}'
    history.cluster.annotate(node, REQUEST, text)


def test_a_forecast_is_sent_again_only_with_another_cause() -> None:
    history = begin([reboot(120, requested=True), reboot(120, requested=True)], ONE)
    assert scheduled(history, "n1").missed
    history.wait(WARNED_AFTER)
    assert scheduled(history, "n1").missed
    assert foretold(history) == ["n1"]

    # The record changes, and the cause does not.
    history.world.platform.announce(VmEvent("n1", Kind.REDEPLOY, NOW + minutes(400)))
    writes = history.api.writes
    assert scheduled(history, "n1").missed
    assert history.api.writes > writes
    assert foretold(history) == ["n1"]

    ask(history, "n1", NOW + minutes(125))
    assert scheduled(history, "n1").missed
    assert foretold(history) == ["n1", "n1"]


def test_a_place_is_expected_back_as_before_once_azure_has_emptied_the_date() -> None:
    history = begin([reboot(20, seconds=1200), reboot(60)], ONE)
    back = NOW + minutes(20) + minutes(20) + ONE.uncordon.settle
    assert scheduled(history, "n1").planned_start == back

    history.wait(minutes(21))

    assert scheduled(history, "n1").planned_start == back


@pytest.mark.parametrize("notice", [10, 15])
def test_a_notice_that_is_no_longer_than_its_lead_time_uses_the_reserve(notice: int) -> None:
    # The planned drain starts as soon as it may, while the node of the short notice is out of service.
    events = [reboot(notice, seconds=3600), reboot(80)]
    history = begin(events, RESERVE)
    _, began = run_on(history, events)

    assert began == {"n0": NOW, "n1": NOW + minutes(80 - 15) - timedelta(hours=1)}


def test_a_notice_as_long_as_its_lead_time_finds_the_place_of_the_reserve() -> None:
    history = begin([reboot(45)], RESERVE)
    history.until_still()
    history.world.platform.announce(VmEvent("n1", Kind.REBOOT, history.now + minutes(15)))
    history.until_still()

    assert all(history.cluster.nodes[name].unschedulable for name in ("n0", "n1"))


@pytest.mark.parametrize(
    ("kind", "ahead", "source", "down"),
    [
        (Kind.REBOOT, 60, "imds", True),
        (Kind.REDEPLOY, 60, "imds", True),
        (Kind.FREEZE, 60, "imds", False),
        (Kind.LIVE_MIGRATION, 60, "imds", False),
        (Kind.PREEMPT, 60, "imds", False),
        (Kind.TERMINATE, 60, "imds", False),
        (Kind.REBOOT, 0, "imds", False),
        (Kind.REBOOT, None, "imds", False),
        # Nobody but us begins what a person asks for.
        (Kind.REBOOT, 60, "request", False),
    ],
)
def test_the_platform_takes_a_node_down_at_a_date_that_lies_ahead(
    kind: Kind, ahead: float | None, source: str, down: bool
) -> None:
    date = NOW + minutes(ahead) if ahead is not None else None
    found = scheduling.taken_down(judged(event(kind, not_before=date, sources=(source,))), NOW)

    assert found == (date if down else None)
