"""Acknowledging killed at any of its writes: the next process goes on, and the end is the same."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from reconciler.model.event import Kind
from reconciler.model.values import replace
from reconciler.simulation.api import Call, ProcessKilled
from reconciler.simulation.clock import Actor
from reconciler.simulation.platform import Reporter, VmEvent
from reconciler.simulation.world import World
from tests.laws.checked import wrongly_acknowledged
from tests.support.builders import NOW, minutes, node, on_vm, pod, settings
from tests.support.searching import kills
from tests.support.worlds import carry_on, look, world_of

POLICY = settings(
    "events: {Reboot: {acknowledge: true}}\nbudget: {maxUnavailable: 2}\nuncordon: {settle: 10m}"
)
NAMES = ("a", "b")
END = 60
"""Minutes that a run takes; the event itself is due days later."""


class Run:
    """Two nodes that share an event of Azure, over an hour of passes, with one process killed at a write."""

    def __init__(self, kill: int | None = None, moment: str = "after") -> None:
        """Play it: the process dies at the write of the number `kill`, before or after it."""
        self.world = world_of(
            [replace(on_vm(node(name), number), boot_id=f"{name}-1") for number, name in enumerate(NAMES)],
            [pod(f"web-{name}", name) for name in NAMES],
        )
        self.writes = 0
        self.wrong: list[str] = []
        self._kill = kill
        setattr(self.world.api, f"{moment}_write", self._at)
        for name in NAMES:
            reboot = VmEvent(name, Kind.REBOOT, NOW + timedelta(days=3), id="E1", reported_by=Reporter.AGENT)
            self.world.platform.announce(reboot)
        for minute in range(END):
            self._survive(partial(self.world.clock.advance, NOW + minutes(minute)))
            self._survive(lambda: look(self.world, POLICY))
            self._survive(lambda: carry_on(self.world))

    def _at(self, call: Call) -> None:
        del call
        self.writes += 1
        if not self.platform_says("started"):
            self.wrong += wrongly_acknowledged(self.world.cluster, POLICY, self.world.now)
        if self.writes == self._kill:
            raise ProcessKilled

    def _survive(self, go_on: Callable[[], object]) -> None:
        try:
            go_on()
        except ProcessKilled:
            self.world.restart()

    def platform_says(self, what: str) -> list[str]:
        """Return the nodes of which the platform has said this of the event."""
        return [entry.node for entry in self.world.log.of(Actor.PLATFORM) if entry.what == f"Reboot {what}"]


def ended(world: World) -> list[tuple[bool, set[str]]]:
    """Return of each node whether it is cordoned, and which annotations of ours it still has."""
    kept = "node-maintenance.dev/imds"
    return [
        (seen.unschedulable, {key for key in seen.annotations if "node-maintenance" in key} - {kept})
        for seen in (world.cluster.nodes[name] for name in NAMES)
    ]


def test_undisturbed_azure_is_asked_once_and_both_nodes_come_back() -> None:
    whole = Run()

    assert len(whole.platform_says("acknowledged")) == 1
    assert sorted(whole.platform_says("started")) == sorted(whole.platform_says("over")) == list(NAMES)
    assert ended(whole.world) == [(False, set()), (False, set())]
    assert whole.wrong == []


@pytest.mark.heavy
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_any_write_azure_is_asked_once_and_both_nodes_come_back(moment: str) -> None:
    writes = Run(moment=moment).writes
    assert writes >= 8
    for kill in kills(writes):
        killed = Run(kill, moment)

        assert len(killed.platform_says("acknowledged")) == 1, kill
        assert sorted(killed.platform_says("started")) == sorted(killed.platform_says("over")) == list(NAMES)
        assert ended(killed.world) == [(False, set()), (False, set())], kill
        assert killed.wrong == [], kill
