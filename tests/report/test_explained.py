"""An explanation as one screen of text and as JSON, at any width, without what a terminal obeys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.model.pod import Owner
from reconciler.model.record import CaseRecord, DrainRecord, PlatformStart
from reconciler.model.selector import EVERYTHING
from reconciler.model.values import replace
from reconciler.report.document import as_json
from reconciler.simulation.workloads import BudgetSpec, Workload
from reconciler.simulation.world import World
from tests.report.explaining import Explained
from tests.report.scene import OF_FEATURES
from tests.support import builders
from tests.support.builders import DRAIN_NOW, NOW, PREFIX, REQUEST, known, minutes, record
from tests.support.golden import assert_as_in
from tests.support.worlds import world_of

NIGHT = 'timeZone: Europe/Berlin\nwindows: [{name: night, start: "22:00", end: "05:00"}]'
NEVER = 'notAllowed: [{name: freeze, start: "11:00", end: "15:00", absolute: true}]'
HOSTILE = "\x1b[31mred\r\n  passed    budgetLeft: free\u202e"


def explained(settings: str = NIGHT, refused: tuple[str, ...] = ()) -> Explained:
    """A node with a request in a closed window, a budget that never allows, and more pods than fit."""
    asked = {REQUEST: json.dumps({"kind": "Reboot", "reason": HOSTILE})}
    pods = [builders.pod(f"web-{number}") for number in range(3)]
    pods += [builders.pod(f"cache-{number}", empty_dir=True) for number in range(12)]
    labels = {"pod-template-hash": "5c84", "team": "shop"}
    pods.append(
        replace(builders.pod("front"), owner=Owner("ReplicaSet", "front-5c84", "apps/v1"), labels=labels)
    )
    world = world_of([builders.node(annotations=asked), builders.node("b")], pods)
    world.cluster.add_budget(BudgetSpec("shop", "web", EVERYTHING, max_unavailable=0))
    return Explained(world, settings, refused)


GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("name", "pod", "wide"), [("node", "", False), ("node-wide", "", True), ("pod", "front", False)]
)
def test_an_explanation_is_as_in_the_golden_file(name: str, pod: str, wide: bool) -> None:
    lines = explained().text(pod=pod, wide=wide).splitlines(keepends=True)
    of_core = [
        line for line in lines if not line.startswith(tuple(f"  passed    {one}:" for one in OF_FEATURES))
    ]

    assert_as_in(GOLDEN / f"explain-{name}.txt", "".join(of_core))


def test_the_moments_of_an_explanation_say_how_far_away_they_are() -> None:
    later = {REQUEST: '{"kind":"Reboot","notBefore":"2026-11-21T14:30:00Z"}'}
    text = Explained(world_of([builders.node(annotations=later)])).text()

    first, planned, *_ = text.splitlines()
    assert first == "a: planned: its drain starts in 1h15m, at 13:15 UTC, for the Reboot in 2h30m, at 14:30"
    assert planned == "  planned   1h before its latest start (latest start: 14:15, in 2h15m)"
    assert text.count("UTC") == 1


def test_only_a_wide_explanation_has_each_check() -> None:
    world = world_of([builders.node(annotations={REQUEST: DRAIN_NOW})], [builders.pod()])
    found = Explained(world, NIGHT)
    shown = {line.split()[0] for line in found.text().splitlines() if line.startswith("  ")}

    assert shown == {"planned", "waits", "then"}
    assert "  passed    budgetLeft: the budget has a place for the node\n" in found.text(wide=True)
    assert "  source    imds: no event\n" in found.text(wide=True)


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("pod", ["", "front"])
def test_a_line_fits_into_the_terminal_and_nothing_is_lost(width: int, pod: str) -> None:
    found = explained()
    whole, folded = found.text(pod=pod), found.text(width, pod=pod)

    assert folded.split() == whole.split()
    # A command stays whole, so that it can be copied.
    assert max(len(line) for line in folded.splitlines() if not line.startswith("  do ")) <= width
    assert len(found.text(200, pod=pod).splitlines()) <= 50


def test_a_node_without_an_event_says_so_and_what_would_stay() -> None:
    world = world_of([builders.node()], [builders.pod("cache", empty_dir=True)])

    text = Explained(world).text()

    assert "  event     none: no source announces maintenance of this node\n" in text
    assert "  drain     a drain for a Reboot now would keep 1\n" in text
    assert "  blocks    shop/cache: has local storage" in text
    assert "blocked" not in text


@pytest.mark.parametrize(
    ("drain", "said"),
    [
        (DrainRecord(NOW - minutes(5)), "draining, begun 5m ago, at 11:55 UTC; Reboot without a date"),
        (
            DrainRecord(NOW - minutes(15), done=NOW - minutes(5)),
            "drained 5m ago, at 11:55 UTC, in 10m; Reboot without a date",
        ),
    ],
)
def test_a_drain_says_since_when_it_runs_or_when_it_was_done(drain: DrainRecord, said: str) -> None:
    held = record(drain=drain, events=(known(sources=("request",)),))
    pods = [] if drain.done else [builders.pod()]
    world = world_of([builders.held_node(held, annotations={REQUEST: DRAIN_NOW})], pods)
    found = Explained(world)

    assert f"a: {said}\n" in found.text()
    assert "  event     none: no source announces" not in found.text()


def test_a_drained_node_in_mode_observe_is_drained_and_its_event_is_over() -> None:
    held = record(drain=DrainRecord(NOW - minutes(15), done=NOW - minutes(5)), events=(known(),))
    text = Explained(world_of([builders.held_node(held)]), "mode: Observe").text()

    assert text.startswith("a: UNGUARDED: drained 5m ago, at 11:55 UTC, in 10m; its event is over\n")
    assert row_of(text, "do") == ["reconciler release a"]
    # Two reasons have the same person to ask.
    assert row_of(text, "ask") == ["the owner of the settings: `mode: Finish` lets it act"]


def test_an_event_of_a_source_that_can_not_be_read_is_not_said_to_be_over() -> None:
    events = (known(sources=("condition:VMEventScheduled",)),)
    held = record(drain=DrainRecord(NOW - minutes(15), done=NOW - minutes(5)), events=events)
    text = Explained(world_of([builders.held_node(held)])).text()

    assert text.startswith("a: UNGUARDED: Reboot")
    assert "its event is over" not in text


def test_a_node_that_a_person_drains_by_hand_is_held_until_its_release() -> None:
    by_hand = builders.held_node(CaseRecord(), claimed_by="ada@laptop", annotations={REQUEST: DRAIN_NOW})
    text = Explained(world_of([by_hand])).text()

    assert text.startswith("a: held: Reboot")
    (held,) = row_of(text, "held")
    assert held.startswith(
        "it is drained by hand by ada@laptop, and stays out of service until it is released"
    )
    assert row_of(text, "do") == ["reconciler release a"]


def test_a_miss_names_a_command_that_shows_the_pods_and_not_the_one_that_was_typed() -> None:
    drain = DrainRecord(NOW - minutes(15), done=NOW - minutes(5))
    held = record(drain=drain, events=(known(not_before=NOW - minutes(10), sources=("request",)),))
    text = Explained(world_of([builders.held_node(held)])).text()

    assert row_of(text, "why") == ["late: drained at 11:55 (5m ago), after the date of its event [missed]"]
    assert row_of(text, "do")[0] == "kubectl get pods -A --field-selector spec.nodeName=a"
    assert not any(command.startswith("reconciler explain") for command in row_of(text, "do"))


def test_a_miss_names_its_pods_once() -> None:
    event = known(sources=("request",))
    case = record(events=(event,), drain=DrainRecord(NOW))
    met = PlatformStart(event, NOW - minutes(1), 1, "shop/ledger-0")
    held = replace(case, facts=replace(case.facts, starts=(met,)))
    text = Explained(world_of([builders.held_node(held)], [builders.pod("ledger-0")])).text()

    assert text.startswith("a: MISSED")
    assert text.partition("\n")[0].count("shop/ledger-0") == 1
    assert row_of(text, "why") == ["pods were on the node when the platform started [missed]"]


def test_a_wide_explanation_says_which_attempt_a_drain_is() -> None:
    drain = DrainRecord(NOW - minutes(5), attempt=2)
    held = record(drain=drain, events=(known(sources=("request",)),))
    world = world_of([builders.held_node(held, annotations={REQUEST: DRAIN_NOW})], [builders.pod()])

    assert "  drain     began at Sat 2026-11-21 11:55 UTC (5m ago), attempt 2\n" in Explained(world).text(
        wide=True
    )


def test_a_node_that_the_reconciler_leaves_alone_says_so() -> None:
    node = builders.node(labels={"node-maintenance.dev/ignore": "true"}, unschedulable=True)

    text = Explained(world_of([node])).text()

    assert "  unmanaged no pass acts on it: its label node-maintenance.dev/ignore excludes it\n" in text
    assert "  out       it takes no new pods: cordoned by others\n" in text


def test_a_source_that_can_not_be_read_blocks_nothing_by_itself() -> None:
    stale = builders.quiet(at=NOW - minutes(60))

    text = Explained(world_of([builders.node(conditions=(stale,))])).text()

    assert "  unknown   condition:VMEventScheduled can't be read: " in text
    assert "  do        kubectl describe node a\n" in text
    assert "  blocked" not in text


def test_a_pod_under_many_budgets_does_not_fill_the_screen() -> None:
    world = world_of([builders.node()], [builders.pod()])
    for number in range(20):
        world.cluster.add_budget(BudgetSpec("shop", f"b{number:02}", EVERYTHING, max_unavailable=1))
    found = Explained(world)

    text = found.text(pod="web-1")

    assert text.count("  budget    shop/b") == 8
    assert "            and 12 more; --output json has all\n" in text
    assert len(found.document(pod="web-1")["pod"]["budgets"]) == 20


@pytest.mark.parametrize(
    ("annotations", "settings", "said"),
    [
        ({}, "", "stays: its node has no maintenance that requires a drain"),
        ({REQUEST: '{"kind":"Freeze"}'}, "", "stays: its node has no maintenance that requires a drain"),
        (
            {REQUEST: DRAIN_NOW},
            "mode: Finish",
            "does not move: nobody drains its node: mode Finish begins no drain",
        ),
        ({REQUEST: DRAIN_NOW}, "", "moves now\n"),
        (
            {REQUEST: DRAIN_NOW},
            "mode: Observe",
            "stays: in mode Observe nobody drains its node; `mode: Enforce` lets the reconciler do it; else",
        ),
        (
            {REQUEST: '{"kind":"Reboot","notBefore":"2026-11-21T22:15:00Z"}'},
            "",
            "moves in 9h, at 21:00 UTC\n",
        ),
        (
            {REQUEST: '{"kind":"Reboot","notBefore":"2026-11-21T12:10:00Z"}'},
            NEVER,
            "moves in 3h, at 15:00 UTC; too late for the date of the maintenance\n",
        ),
    ],
)
def test_a_pod_says_whether_and_when_it_moves(annotations: dict[str, str], settings: str, said: str) -> None:
    world = world_of([builders.node(annotations=annotations)], [builders.pod()])

    assert f"shop/web-1 on a {said}" in Explained(world, settings).text(pod="web-1")


def test_a_pod_that_was_left_on_a_drained_node_stays() -> None:
    held = record(drain=DrainRecord(NOW - minutes(5), done=NOW), events=(known(sources=("request",)),))
    pods = [builders.pod("agent", owner="DaemonSet")]
    world = world_of([builders.held_node(held, annotations={REQUEST: DRAIN_NOW})], pods)

    said = "shop/agent on a stays: the drain of its node ended at 12:00 UTC and left it there"
    assert said in Explained(world).text(pod="agent")


def test_what_could_not_be_seen_is_not_taken_for_nothing() -> None:
    no_pods, no_budgets = explained(refused=("pods",)), explained(refused=("budgets",))

    assert "could not see: the pods (needs list pods)" in no_pods.text()
    assert (
        "  drain     what a drain would do is not known, because the pods could not be seen\n"
        in no_pods.text()
    )
    assert "could not see: PodDisruptionBudgets (needs list budgets)" in no_budgets.text(pod="front")
    assert "  budget    not known, because the PodDisruptionBudgets could not be seen\n" in no_budgets.text(
        pod="front"
    )
    assert no_budgets.document(pod="front")["pod"]["budgets"] is None


def test_text_from_outside_does_not_reach_the_terminal_as_it_is() -> None:
    text = explained().text(wide=True)

    assert "\\x1b[31mred" in text
    assert text.replace("\n", "").isprintable()
    assert [line for line in text.splitlines() if line.startswith("  passed    budgetLeft: free")] == []


def test_the_json_has_everything_and_moments_are_utc() -> None:
    found = explained()
    document = found.document(pod="front")

    assert json.loads(as_json(document)) == document
    node = document["node"]
    assert len([one for one in node["obstacles"] if one["code"] == "pod"]) == 12
    assert node["obstacles"][0]["until"] == "2026-11-21T21:00:00Z"
    assert {one["check"]: one["holds"] for one in node["checks"]}["drainAsked"] is False
    assert [one["budget"] for one in document["pod"]["budgets"]] == ["shop/web"]
    assert found.document()["pod"] is None


def row_of(text: str, label: str) -> list[str]:
    """The rows with this label."""
    return [line[12:] for line in text.splitlines() if line.startswith(f"  {label:<10}")]


def refused_by_a_budget() -> World:
    """A reboot by Azure in 14 minutes, and a pod of somebody's that its budget never lets go."""
    message = (
        "Reboot Scheduled: Sat, 21 Nov 2026 12:15:00 GMT. DurationInSeconds: -1. Host server is undergoing"
    )
    announced = builders.condition("VMEventScheduled", "True", message)
    node = replace(builders.node("a", conditions=(announced,)), provider_id="azure:///vm/0")
    world = world_of([node, builders.node("b")])
    labels = {"app": "ledger", "example.com/owner": "alice"}
    world.cluster.add_workload(Workload("shop", "ledger", "StatefulSet", labels=labels))
    world.cluster.clear_node("b")
    world.cluster.add_budget(BudgetSpec("shop", "ledger", EVERYTHING, min_available=1))
    world.advance(minutes(1))
    return world


def test_what_blocks_is_said_with_its_owner_a_command_for_each_remedy_and_what_comes() -> None:
    text = Explained(refused_by_a_budget()).text()

    assert text.splitlines() == [
        "a: WILL BE MISSED: Reboot in 14m, at 12:15 UTC",
        (
            "  blocked   shop/ledger-0 (StatefulSet shop/ledger, owner alice) can't be evicted: "
            "PodDisruptionBudget shop/ledger requires 1 healthy pod, and there is only 1 in all, so it never "
            "allows an eviction [forecast]"
        ),
        "  do        kubectl -n shop scale statefulset ledger --replicas 2",
        (
            "  do        kubectl -n shop patch pdb ledger --type merge -p "
            """'{"spec":{"minAvailable":null,"maxUnavailable":1}}'"""
        ),
        "  then      if nobody acts, Azure reboots it at 12:15 (in 14m), with 1 pod on it",
    ]


def test_a_command_is_one_line_on_each_terminal() -> None:
    text = Explained(refused_by_a_budget()).text(40)

    assert row_of(text, "do")[1].endswith("""'{"spec":{"minAvailable":null,"maxUnavailable":1}}'""")


def test_a_full_budget_waits_and_names_the_command_that_makes_room() -> None:
    world = world_of(
        [builders.node(annotations={REQUEST: DRAIN_NOW}), builders.node("b", unschedulable=True)]
    )
    text = Explained(world, "budget: {maxUnavailable: 1}").text()

    assert row_of(text, "waits")[0].startswith("maxUnavailable is 1, taken by b (cordoned by others)")
    assert row_of(text, "do") == ["kubectl uncordon b"]
    assert "held" not in text


def test_a_node_that_a_person_holds_says_who_and_how_that_ends_also_without_an_event() -> None:
    hold = json.dumps({"by": "ada@laptop", "at": "2026-11-21T09:00:00Z", "reason": "disk copy"})
    text = Explained(world_of([builders.node(annotations={f"{PREFIX}/hold": hold})])).text()

    assert text.startswith("a: held\n")
    assert row_of(text, "held") == ["it is held by ada@laptop since 09:00 UTC (3h ago): disk copy"]
    assert row_of(text, "do") == ["reconciler resume a"]


def test_what_starts_by_itself_asks_nobody() -> None:
    later = {REQUEST: '{"kind":"Reboot","notBefore":"2026-11-21T14:30:00Z"}'}
    text = Explained(world_of([builders.node(annotations=later)], [builders.pod()])).text()

    (then,) = row_of(text, "then")
    assert then.startswith("nobody has to act: its drain starts at 13:15 (in 1h15m), and ")
    assert row_of(text, "do") == row_of(text, "ask") == []
