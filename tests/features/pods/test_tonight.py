"""Which pods are to be moved until the next morning, when, why, and what keeps the others."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.pods.coming import end_of_night
from reconciler.features.pods.tonight import TonightReport, as_text, tonight
from reconciler.model.errors import Forbidden
from reconciler.model.selector import parse_selector_text
from reconciler.model.values import replace
from reconciler.simulation.workloads import BudgetSpec
from reconciler.simulation.world import World
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.builders import DRAIN_NOW, PREFIX, REQUEST
from tests.support.worlds import world_of

HOLD = f"{PREFIX}/hold"
UTC_ZONE = ZoneInfo("UTC")


def fleet() -> World:
    """Nodes that are drained now, this night, later, when a person permits it, and not at all."""

    def requested(date: str) -> dict[str, str]:
        return {REQUEST: f'{{"kind":"Reboot","notBefore":"{date}"}}'}

    nodes = [
        builders.node("now", annotations={REQUEST: DRAIN_NOW}),
        builders.node("night", annotations=requested("2026-11-21T22:15:00Z")),
        builders.node("later", annotations=requested("2026-11-23T22:15:00Z")),
        builders.node("held", annotations={REQUEST: DRAIN_NOW, HOLD: '{"by":"alice"}'}),
        builders.node("quiet"),
    ]
    pods = [
        builders.pod("web-1", "now"),
        replace(builders.pod("ledger", "night"), labels={"app": "ledger"}),
        builders.pod("web-2", "night"),
        builders.pod("agent", "night", owner="DaemonSet"),
        builders.pod("web-3", "later"),
        builders.pod("web-4", "quiet"),
        replace(builders.pod("done", "night"), phase="Succeeded"),
        builders.pod("etl", "night", namespace="team"),
        builders.pod("gpu", "held", namespace="lab"),
    ]
    world = world_of(nodes, pods)
    ledger = parse_selector_text("app=ledger")
    world.cluster.add_budget(BudgetSpec("shop", "ledger", ledger, max_unavailable=0))
    return world


def report(namespace: str | None = "shop", settings: str = "") -> TonightReport:
    explained = Explained(fleet(), settings)
    return tonight(explained.found, namespace, explained.settings)


def test_only_pods_on_nodes_that_are_drained_this_night_are_named_with_when_and_why() -> None:
    document = report().document

    rows = [(pod["pod"], pod["node"], pod["answer"], pod["why"]) for pod in document["pods"]]
    assert rows == [
        ("shop/ledger", "night", "blocked", "Reboot at 2026-11-21T22:15:00Z"),
        ("shop/web-1", "now", "moves", "Reboot without a date"),
        ("shop/web-2", "night", "moves", "Reboot at 2026-11-21T22:15:00Z"),
    ]
    assert document["pods"][2]["start"] == "2026-11-21T21:00:00Z"
    assert document["until"] == "2026-11-22T08:00:00Z"


def test_a_text_says_what_keeps_a_pod_and_who_can_change_that() -> None:
    lines = as_text(report(), UTC_ZONE).splitlines()

    assert lines[0] == (
        "pods of shop on nodes that are drained until Sun 22 08:00 UTC: 1 blocked, 2 will move"
    )
    assert lines[2].startswith("21:00 ledger (ReplicaSet shop/")
    assert "on night: Reboot at 22:15; does not move: " in lines[2]
    assert "kubectl describe pdb ledger -n shop" in lines[2]
    assert [line.partition(" (")[0] for line in lines[3:]] == ["12:00 web-1", "21:00 web-2"]


def test_pods_of_all_namespaces_have_theirs_in_the_name() -> None:
    assert "shop/web-1" in as_text(report(None), UTC_ZONE)
    assert [pod.pod for pod in report("team").pods] == ["team/etl"]


def test_a_namespace_of_which_nothing_moves_is_told_so() -> None:
    assert as_text(report("other"), UTC_ZONE) == (
        "until Sun 22 08:00 UTC no node is drained that runs a pod of other\n"
    )


def test_in_mode_observe_each_pod_says_that_nobody_moves_it() -> None:
    assert {pod.answer.value for pod in report("team", "mode: Observe").pods} == {"stays"}


def test_pods_on_nodes_without_a_known_start_are_counted() -> None:
    found = report("lab")

    assert (found.pods, found.undated) == ((), 1)
    assert "1 pod is on nodes with maintenance for which no start is known: `reconciler plan -n lab`" in (
        as_text(found, UTC_ZONE)
    )


def test_pods_that_may_not_be_read_are_not_taken_for_none() -> None:
    explained = Explained(fleet(), refused=("pods",))

    with pytest.raises(Forbidden, match="needs list pods"):
        tonight(explained.found, None, explained.settings)


@pytest.mark.parametrize(
    ("now", "zone", "end"),
    [
        (datetime(2026, 11, 21, 12, tzinfo=UTC), "UTC", datetime(2026, 11, 22, 8, tzinfo=UTC)),
        (datetime(2026, 11, 21, 2, tzinfo=UTC), "UTC", datetime(2026, 11, 22, 8, tzinfo=UTC)),
        (datetime(2026, 11, 21, 23, 30, tzinfo=UTC), "Europe/Berlin", datetime(2026, 11, 23, 7, tzinfo=UTC)),
        (datetime(2026, 3, 28, 12, tzinfo=UTC), "Europe/Berlin", datetime(2026, 3, 29, 6, tzinfo=UTC)),
    ],
    ids=["noon", "night", "the date of the zone", "the clocks change"],
)
def test_a_night_ends_at_eight_of_the_next_day_in_the_zone(now: datetime, zone: str, end: datetime) -> None:
    assert end_of_night(now, ZoneInfo(zone)) == end


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_text_is_folded_and_obeys_no_name(width: int) -> None:
    found = report()
    evil = replace(found.pods[0], pod="shop/\x1b[2J\nweb", because="\r" * 9)
    text = as_text(replace(found, pods=(evil,)), UTC_ZONE, width)

    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert "\r" not in text
