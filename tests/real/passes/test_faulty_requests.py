"""A cordon waits for no request but those of nodes and the ledger, whatever becomes of all others."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import budget
from tests.support.fakes.faulty import ANSWERS, BESIDE, NEEDED, Faulty
from tests.support.fakes.proxy import Proxy

pytestmark = pytest.mark.slow

SOON = 10.0
"""Seconds in which each notice is cordoned; a read that has no answer ends after 30 of them."""

NOTICES = 3

SETTINGS = """
mode: Enforce
budget: {maxUnavailable: 100%}
publish: [node-conditions, nodemaintenances]
drain:
  rules:
  - {name: kept, namespaces: {matchLabels: {keep: "yes"}}, behavior: Skip}
"""

KINDS = {
    **BESIDE,
    "the ledger": NEEDED["the ledger"],
    "NodeMaintenances": ".* /apis/node-maintenance.dev/",
    "volumes": "GET .*/volumeattachments",
}
"""What has a fault."""

ASKED = KINDS.keys() - {"writes of the ledger", "evictions", "NodeMaintenances", "volumes"}
"""What this process asks for again within some seconds."""


class Blocked:
    """A process that asks for all of this in each pass, because the drain of a node is blocked."""

    def __init__(self, scene: Scene, programs: Programs, proxy: Proxy, nodes: int) -> None:
        """Start it, and have so many nodes that are left alone."""
        self._scene = scene
        programs.configure(SETTINGS)
        blocked = scene.node(0)
        scene.workload("web", blocked)
        scene.api.create("poddisruptionbudgets", budget("web", max_unavailable=0))
        self._left = iter([scene.node(1 + number) for number in range(nodes)])
        kubeconfig = proxy.write_kubeconfig(programs.folder / "proxy.kubeconfig")
        self.serving = programs.start("serve", "--every", "5s", kubeconfig=kubeconfig)
        self.serving.wait_for("leading")
        scene.condition_tells(blocked)
        wait_for("the first cordon", lambda: scene.cordoned(blocked), seconds=60)

    def notice(self) -> float:
        """Announce that a node goes, and return the seconds until it is cordoned."""
        node, began = next(self._left), time.monotonic()
        self._scene.condition_tells(node, kind="Preempt", minutes=0.5)
        wait_for("a cordon", partial(self._scene.cordoned, node), seconds=60)
        return round(time.monotonic() - began, 1)


def test_each_of_three_notices_is_cordoned_soon_whatever_other_request_hangs(
    scene: Scene, programs: Programs
) -> None:
    faults, slow = Faulty(), {}
    with Proxy(programs.kubeconfig) as proxy:
        proxy.instead = faults.instead
        passes = Blocked(scene, programs, proxy, NOTICES * len(KINDS))
        for kind, pattern in KINDS.items():
            faults.begin(pattern, ANSWERS["silent"])
            took = []
            for _ in range(NOTICES):
                took.append(passes.notice())
                if kind in ASKED:
                    wait_for(f"a request: {kind}", lambda: faults.met, seconds=40)
            faults.end()
            if max(took) > SOON:
                slow[kind] = took
        assert passes.serving.said("pass failed") == []
    assert slow == {}


@pytest.mark.parametrize("fault", sorted(ANSWERS.keys() - {"silent"}))
def test_each_of_three_notices_is_cordoned_soon_while_all_other_requests_fail(
    scene: Scene, programs: Programs, fault: str
) -> None:
    faults = {kind: Faulty() for kind in KINDS}
    with Proxy(programs.kubeconfig) as proxy:
        proxy.instead = lambda method, path: next(
            (answer for each in faults.values() if (answer := each.instead(method, path))), None
        )
        passes = Blocked(scene, programs, proxy, NOTICES)
        for kind, pattern in KINDS.items():
            faults[kind].begin(pattern, ANSWERS[fault])
        # What is published has one thread, so one kind of it may wait a minute for the answer to another. The
        # Events of the first cordon may have been sent before.
        asked = ASKED - {"conditions of nodes", "Events"}
        wait_for(
            "a request of each kind",
            lambda: all(faults[kind].met for kind in asked),
            seconds=40,
            instead=lambda: {kind: each.met for kind, each in faults.items()},
        )
        took = [passes.notice() for _ in range(NOTICES)]
        wait_for("an Event about a notice", lambda: faults["Events"].met, seconds=40)
        for each in faults.values():
            each.end()
        assert passes.serving.said("pass failed") == []
    assert max(took) <= SOON


@pytest.mark.parametrize("fault", ["silent", "a byte a second"])
def test_a_write_of_one_node_that_hangs_holds_neither_other_nodes_nor_the_pass(
    scene: Scene, programs: Programs, tmp_path: Path, fault: str
) -> None:
    programs.configure(SETTINGS)
    hanging, *others = (scene.node(number) for number in range(1 + NOTICES))
    faults = Faulty()
    with Proxy(programs.kubeconfig) as proxy:
        proxy.instead = faults.instead
        serving = programs.start(
            "serve", "--every", "5s", kubeconfig=proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig")
        )
        serving.wait_for("leading")
        faults.begin(f"PATCH /api/v1/nodes/{hanging}[?]", ANSWERS[fault])
        scene.condition_tells(hanging, kind="Preempt", minutes=0.5)
        wait_for("its write", lambda: faults.met, seconds=60)
        took = []
        for node in others:
            began = time.monotonic()
            scene.condition_tells(node, kind="Preempt", minutes=0.5)
            wait_for("a cordon", partial(scene.cordoned, node), seconds=60)
            took.append(round(time.monotonic() - began, 1))
        assert max(took) <= SOON
        said = [line["because"] for line in serving.said("later") if line.get("node") == hanging]
        assert "no answer yet" in said[0]
        assert not scene.cordoned(hanging)
        faults.end()
        wait_for("the cordon, written again", lambda: scene.cordoned(hanging), seconds=60)
        assert serving.said("pass failed") == []


ALL_ELSE = (
    "(?!.* /api/v1/nodes)(?!.*/configmaps/node-maintenance-ledger)"
    "(?!.*/namespaces/node-maintenance/(leases|configmaps))"
)
"""All requests but those of nodes, the ledger, and the own lock."""


@pytest.mark.parametrize(
    "command", [("serve", "--every", "1h"), ("sweep", "--for", "1s")], ids=lambda each: each[0]
)
def test_a_process_that_begins_cordons_soon_though_nothing_else_answers(
    scene: Scene, programs: Programs, tmp_path: Path, command: tuple[str, ...]
) -> None:
    programs.configure(SETTINGS)
    by_condition, by_agent = scene.node(0), scene.node(1)
    scene.condition_tells(by_condition, kind="Preempt", minutes=0.5)
    scene.imds_tells(1, scene.event(1, "Preempt", minutes=0.5))
    scene.api.create_namespace("node-maintenance")
    faults = Faulty()
    faults.begin(ALL_ELSE, ANSWERS["silent"])
    with Proxy(programs.kubeconfig) as proxy:
        proxy.instead = faults.instead
        kubeconfig = proxy.write_kubeconfig(tmp_path / "proxy.kubeconfig")
        began = time.monotonic()
        process = programs.start(*command, kubeconfig=kubeconfig)
        for node in (by_condition, by_agent):
            process.does("a cordon", partial(scene.cordoned, node), seconds=60)
        took = time.monotonic() - began
        faults.end()
        if command[0] == "sweep":
            assert process.wait().code == 0
    # With the start of the process, and its lock.
    assert took < SOON
    assert faults.met
