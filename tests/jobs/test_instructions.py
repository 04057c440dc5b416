"""`hold`, `resume` and `defer` on nodes of a stub: what is written and said, and exit codes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.runtime.by_hand import person
from reconciler.model.instructions import said_before, unverified
from reconciler.model.record import Claim, DrainRecord, Record, to_annotation
from tests.jobs.instructing import DEFER, HOLD, Cluster, announced, below, three_nodes
from tests.jobs.stub_cluster import node
from tests.support import builders
from tests.support.builders import NOW, PREFIX


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with closing(three_nodes(tmp_path)) as made:
        yield made


def test_a_hold_has_who_when_and_why_and_ends_with_resume(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("hold", "a", "--now", "--until", "+4h", "--reason", "disk copy") == 0

    hold = cluster.said("a", HOLD)
    assert (set(hold), hold["reason"], hold["now"]) == (
        {"by", "at", "until", "reason", "now"},
        "disk copy",
        True,
    )
    assert "@" in hold["by"]
    assert below(capsys).startswith("a: held by ")
    assert [one["reason"] for one in cluster.events] == ["MaintenanceHeld"]
    assert cluster.said("b", HOLD) is None

    assert cluster.run("resume", "a", "b") == 0
    assert cluster.said("a", HOLD) is None
    told = below(capsys)
    assert told.startswith(f"a: resumed: ended the hold by {hold['by']} since ")
    assert told.endswith("b: neither held nor deferred\n")
    assert hold["by"] in cluster.events[-1]["message"]


def test_an_event_of_a_command_has_its_moments_in_the_zone_of_the_settings(cluster: Cluster) -> None:
    cluster.policy = "mode: Enforce\ntimeZone: Europe/Berlin"
    assert cluster.run("hold", "a", "--until", "2099-07-01T12:00") == 0

    assert cluster.said("a", HOLD)["until"] == "2099-07-01T10:00:00Z"
    message = cluster.events[0]["message"]
    assert "2099-07-01 12:00" in message
    assert "T10:00:00Z" not in message


def _meant(cluster: Cluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    """Run the command; what it says of the case of each node."""
    capsys.readouterr()
    assert cluster.run(*arguments, "--output", "json") == 0
    document = json.loads(capsys.readouterr().out)
    return {one["node"]: one["consequence"] for one in document["consequences"]}


def test_a_deferral_and_a_hold_say_what_they_mean_as_the_plan_does(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in "abc":
        announced(cluster, name, 5)

    soon = _meant(cluster, capsys, "defer", "a", "--until", "+1h")
    late = _meant(cluster, capsys, "defer", "b", "--until", "+30h")
    held = _meant(cluster, capsys, "hold", "c")
    assert cluster.run("plan", "--output", "json") == 0
    cases = {one["name"]: one for one in json.loads(capsys.readouterr().out)["cases"]}

    starts = {name: cases[name]["schedule"]["plannedStart"] for name in "abc"}
    assert soon["a"].startswith(f"its drain starts at {starts['a']}; the platform may start at ")
    assert late["b"].startswith(f"the deadline wins: its drain starts at {starts['b']}, before ")
    assert starts["b"] == cases["b"]["schedule"]["latestStart"]
    words = f"the node will not be drained in time; the platform may start at {cases['c']['notBefore']}"
    assert (held["c"], starts["c"], cases["c"]["status"]) == (words, None, "missed")


def test_a_hold_of_a_pool_says_what_it_means_for_its_cases_and_one_without_a_case_says_nothing(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    announced(cluster, "a", 5)

    assert cluster.run("hold", "--pool", "web") == 0
    first, second = " ".join(below(capsys).split()).split(" a: ")
    assert first.startswith("pool web is held by ")
    assert second.startswith("the node will not be drained in time; the platform may start at ")
    assert _meant(cluster, capsys, "hold", "b", "c").keys() == set()


def test_a_second_hold_replaces_the_first_and_says_whose_it_was(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {HOLD: '{"by": "bob@desk", "at": "2026-11-21T22:00:00Z"}'}
    cluster.annotations("a").update(first)

    assert cluster.run("hold", "a") == 0
    assert "; it was held by bob@desk since " in " ".join(capsys.readouterr().out.split())
    assert cluster.said("a", HOLD)["by"] != "bob@desk"


def test_a_selector_and_all_choose_nodes(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert cluster.run("defer", "--selector", "pool=web", "--until", "+1h", "--output", "json") == 0

    document = json.loads(capsys.readouterr().out)
    assert [(one["node"], one["ok"], one["changed"]) for one in document["nodes"]] == [
        ("a", True, True),
        ("b", True, True),
    ]
    assert cluster.said("c", DEFER) is None
    # Of nodes that nobody named, those without a change are not listed.
    assert cluster.run("resume", "-l", "pool") == 0
    assert [line[:10] for line in capsys.readouterr().out.splitlines() if line[1:2] == ":"] == [
        "a: resumed",
        "b: resumed",
    ]
    assert cluster.run("resume", "-l", "pool") == 0
    assert below(capsys) == "nothing to change on any of these nodes\n"


def test_many_nodes_with_the_same_answer_share_a_line(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.nodes |= {f"n{number:03}": node(f"n{number:03}", pool="web") for number in range(30)}
    assert cluster.run("hold", "--selector", "pool=web") == 0

    (line,) = [line for line in below(capsys).splitlines() if "held by" in line]
    # Without a terminal nothing is shortened.
    assert line.startswith(f"32 nodes (a, b, {', '.join(f'n{number:03}' for number in range(30))}): held by ")

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    assert cluster.run("resume", "--selector", "pool=web") == 0
    (line,) = [line for line in below(capsys).splitlines() if "resumed" in line]
    assert line.startswith("32 nodes (a, b, n000 and 29 more): resumed: ")


def test_a_hold_of_all_nodes_or_of_a_pool_is_in_the_ledger_beside_what_passes_keep_there(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("hold", "--all", "--reason", "incident") == 0
    assert below(capsys).startswith("all nodes are held by ")
    assert cluster.ledger is not None
    cluster.ledger["lastStart"] = "2026-11-21T11:00:00Z"
    assert cluster.run("hold", "--pool", "web") == 0
    assert cluster.run("hold", "--pool", "web", "--now") == 0

    holds = json.loads(cluster.ledger["holds"])
    assert [(one["scope"], one.get("now", False)) for one in holds] == [("all", False), ("pool web", True)]
    assert all(one["metadata"]["annotations"] == {} for one in cluster.nodes.values())
    capsys.readouterr()
    assert cluster.run("resume", "a") == 0
    assert "a: neither held nor deferred itself; all nodes are held by" in capsys.readouterr().out
    assert cluster.run("resume", "--all") == 0
    assert "; pool web is held by" in " ".join(capsys.readouterr().out.split())
    assert cluster.run("resume", "--pool", "web") == 0
    kept = dict(cluster.ledger)
    ended = said_before(kept.pop("endedHolds"))
    assert kept == {"lastStart": "2026-11-21T11:00:00Z"}
    assert [(one.done, one.word.scope, bool(one.by)) for one in ended] == [
        ("resumed", "all", True),
        ("resumed", "pool web", True),
    ]


def test_a_hold_of_many_nodes_is_one_event_about_the_ledger(cluster: Cluster) -> None:
    assert cluster.run("hold", "--pool", "web", "--reason", "incident") == 0
    assert cluster.run("resume", "--all") == 0  # Nothing was held with --all.
    assert cluster.run("resume", "--pool", "web") == 0

    reasons = [(one["involvedObject"]["name"], one["reason"]) for one in cluster.events]
    assert reasons == [
        ("node-maintenance-ledger", "MaintenanceHeld"),
        ("node-maintenance-ledger", "MaintenanceResumed"),
    ]
    assert {one["metadata"]["namespace"] for one in cluster.events} == {"node-maintenance"}
    messages = [one["message"] for one in cluster.events]
    assert messages[0].startswith("pool web is held by ")
    assert messages[1].startswith("resumed: ended the hold by ")


def test_a_hold_of_all_nodes_with_now_is_copied_to_nodes_in_maintenance_until_it_ends(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = builders.held_node(builders.record(), "b")
    cluster.annotations("b").update(begun.annotations)
    cluster.nodes["c"]["metadata"]["annotations"][HOLD] = '{"by": "bob@desk"}'

    assert cluster.run("hold", "--all", "--now") == 0
    copied = f"{PREFIX}/hold-of-many"
    assert [cluster.said(name, copied) is not None for name in "abc"] == [False, True, False]
    capsys.readouterr()
    assert cluster.run("resume", "--all") == 0
    assert cluster.said("b", copied) is None
    assert cluster.said("c", HOLD) == {"by": "bob@desk"}
    assert "c: still held by bob@desk; reconciler resume c ends that" in capsys.readouterr().out


def test_a_hold_with_now_says_that_a_drain_stops_only_where_one_may_run(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = builders.held_node(builders.record(drain=DrainRecord(NOW)), "b")
    cluster.annotations("b").update(begun.annotations)

    assert cluster.run("hold", "a", "b", "--now") == 0

    told = capsys.readouterr().out.splitlines()
    assert ["its drain stops" in line for line in told if line[:3] in ("a: ", "b: ")] == [False, True]


def test_a_hold_of_all_nodes_with_now_finds_a_drain_that_began_before_the_ledger_had_the_hold(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    drained = builders.held_node(builders.record(), "b")
    monkeypatch.setattr(cluster, "at_hold", lambda: cluster.annotations("b").update(drained.annotations))

    assert cluster.run("hold", "--all", "--now") == 0
    assert cluster.said("b", f"{PREFIX}/hold-of-many")["now"] is True


def test_a_hold_of_all_nodes_with_now_stops_the_drains_of_workflows(cluster: Cluster) -> None:
    claim = Claim("crane", "reboot")
    record = to_annotation(Record("uid-b").drained(DrainRecord(builders.NOW), claim))
    cluster.annotations("b")[builders.RECORD] = record

    assert cluster.run("hold", "--all", "--now") == 0
    assert cluster.said("b", f"{PREFIX}/hold-of-many")["now"] is True


def test_a_write_that_fails_harms_its_node_only(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.broken = "b"

    assert cluster.run("hold", "a", "b", "c") == 1
    assert [cluster.said(name, HOLD) is not None for name in "abc"] == [True, False, True]
    assert "b: not written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("hold", "x"), 1, "x: there is no such node"),
        (("hold",), 2, "name the nodes, or give --selector, --pool or --all"),
        (("hold", "a", "--all"), 2, "name the nodes, or give --selector, --pool or --all"),
        (("hold", "--selector", "pool=none"), 1, "no node matches pool=none"),
        (("hold", "--pool", "none"), 1, "no node matches pool none"),
        (("hold", "--pool", "a; b"), 2, "is not the name of a pool"),
        (("hold", "a", "--until", "yesterday"), 2, "--until: "),
        (("hold", "a", "--until", "2020-01-01"), 2, "is not in the future"),
        (("hold", "a", "--reason", "x" * 1025), 2, "write at most 1024"),
        (("defer", "a"), 2, "--until"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    assert cluster.run(*arguments) == code
    assert message in " ".join(capsys.readouterr().err.split())
    assert all(one["metadata"]["annotations"] == {} for one in cluster.nodes.values())


def test_a_hold_says_what_follows_from_it_what_it_does_not_stop_and_what_ends_it(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("hold", "a", "--until", "4h") == 0
    assert cluster.run("hold", "--pool", "web", "--now") == 0

    out = capsys.readouterr().out
    assert re.search(r"\nNo drain of a begins until .* \(in 4h\), not even at a deadline\. ", out)
    assert "To end the hold: reconciler resume a\n" in out
    assert "\nA drain that runs goes on (--now stops it). The maintenance of the platform is not sto" in out
    assert "; reconciler resume --pool web ends that\n" in out
    assert "\nNo drain of any node of pool web begins, not even at a deadline.\n" in out
    assert "\nA drain that runs stops, and its node stays cordoned. " in out


def test_the_command_that_ends_a_hold_names_its_nodes_as_they_were_named(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    document = partial(_document, cluster, capsys)

    assert document("hold", "a", "b")["means"][0].endswith("reconciler resume a b")
    selected = document("defer", "-l", "pool in (web, db)", "--until", "1h")["means"][0]
    assert selected.endswith("reconciler resume --selector 'pool in (web,db)'")
    assert document("hold", "--all")["done"].endswith("reconciler resume --all ends that")


def test_a_hold_of_a_node_in_maintenance_says_that_this_goes_on(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    drains = builders.record(drain=DrainRecord(NOW))
    cluster.annotations("b").update(builders.held_node(drains, "b").annotations)
    cluster.annotations("c").update(builders.held_node(builders.record(), "c").annotations)

    assert cluster.run("hold", "a", "b", "c") == 0
    lines = {line[0]: line for line in capsys.readouterr().out.splitlines() if line[1:2] == ":"}
    assert lines["b"].endswith("; its maintenance has begun, and goes on")
    assert lines["c"].endswith("; it is drained, and stays cordoned")
    assert lines["a"].endswith(" UTC")


def test_on_a_terminal_the_command_that_ends_a_hold_can_be_copied_as_a_line(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")

    assert cluster.run("hold", "a", "b", "c", "--until", "4h") == 0
    assert re.search(r"end\s+the\s+hold:\n  do        reconciler resume a b c\n", capsys.readouterr().out)


def test_a_resume_says_when_the_drain_starts_now(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    announced(cluster, "a", 5)
    cluster.run("hold", "a")

    assert _meant(cluster, capsys, "resume", "a")["a"].startswith("its drain starts at ")


def _document(cluster: Cluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Run the command; the document that it prints."""
    capsys.readouterr()
    assert cluster.run(*arguments, "--output", "json") == 0
    return json.loads(capsys.readouterr().out)


def test_an_instruction_names_the_user_that_the_api_server_sees(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.user = "alice@example.com"

    assert cluster.run("hold", "b") == 0

    assert cluster.said("b", HOLD)["by"] == "alice@example.com"
    assert [event["message"].count("alice@example.com") for event in cluster.events] == [1]
    assert "b: held by alice@example.com since " in capsys.readouterr().out


@pytest.mark.parametrize("user", ["", "x" * 254, "alice\n"], ids=["refused", "long", "two lines"])
def test_without_a_user_an_instruction_names_the_local_one_as_unverified(cluster: Cluster, user: str) -> None:
    cluster.user = user

    assert cluster.run("hold", "b") == 0

    assert cluster.said("b", HOLD)["by"] == unverified(person())


def test_a_release_names_the_hold_of_many_nodes_that_still_holds_the_node(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cluster.run("hold", "--pool", "web") == 0
    capsys.readouterr()

    assert cluster.run("release", "a") == 0
    assert re.search(
        r"still held: pool web is held by .*; reconciler resume --pool web ends that\n",
        capsys.readouterr().out,
    )
    assert cluster.run("release", "c") == 0
    assert "still held" not in capsys.readouterr().out
