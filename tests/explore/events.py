"""Who announces maintenance: the platform, requests, conditions; and the agents that report it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from reconciler.model.event import Kind
from reconciler.model.moments import to_text
from reconciler.model.node import Condition
from reconciler.model.snapshot import Agents, Remediator
from reconciler.simulation.platform import Reporter, VmEvent
from tests.explore.history import move
from tests.explore.laws import KEYS
from tests.laws.histories import MAIN
from tests.support.builders import IMDS, IN_UPGRADE

_VM_KINDS = ("Reboot", "Redeploy", "Freeze", "LiveMigration", "Preempt", "Terminate")
_DATES = ("15", "0", "5", "60", "600", "20160")
_VM_EVENTS = tuple(
    f"{kind} in {date} by {reporter}"
    for date in _DATES
    for kind in _VM_KINDS
    for reporter in ("both", "agent", "condition")
)

if TYPE_CHECKING:
    from tests.explore.play import Play


@move("platform", 16, values=_VM_EVENTS)
def vm_event(play: Play, name: str, value: str) -> None:
    """Let Azure announce an event of one VM."""
    if play.scene.cloud == "azure":
        play.world.platform.announce(_vm_event(play, name, value))


@move("platform", 4, values=_VM_EVENTS[: len(_VM_KINDS) * 3])
def wide_event(play: Play, name: str, value: str) -> None:
    """Let Azure announce one event of all VMs."""
    if play.scene.cloud == "azure":
        shared = f"WIDE-{len(play.world.log.happenings)}"
        for one in sorted(play.cluster.nodes):
            event = _vm_event(play, one, value, event_id=shared)
            play.world.platform.announce(event)
        del name


@move("platform", 2, values=("Reboot", "Redeploy", "Freeze"))
def strike(play: Play, name: str, value: str) -> None:
    """Let Azure begin an event without notice."""
    if play.scene.cloud == "azure":
        play.world.platform.strike(_vm_event(play, name, f"{value} in 0 by both"))


@move("platform", 4)
def cancel(play: Play, name: str, _: str) -> None:
    """Let Azure cancel what it announced for a VM."""
    for event in play.world.platform.reported(name):
        play.world.platform.cancel(event)


def _vm_event(play: Play, name: str, value: str, *, event_id: str = "") -> VmEvent:
    kind, date, reporter = value.replace(" in ", " by ").split(" by ")
    return VmEvent(
        name,
        Kind(kind),
        play.now.replace(microsecond=0) + timedelta(minutes=int(date)),
        reported_by=Reporter(reporter),
        id=event_id,
    )


_REQUESTS = (
    "",
    "Reboot",
    "Redeploy",
    "Preempt",
    "Terminate",
    "Freeze",
    "Rebalance",
    "Reboot id CHG-1",
    "Reboot id CHG-2",
    "Redeploy id CHG-3",
    "Reboot in 30",
    "Reboot in 600",
    "Redeploy in 120",
    "Terminate in 20160",
    "nonsense",
)


@move("request", 18, values=_REQUESTS)
def request(play: Play, name: str, value: str) -> None:
    """Request maintenance in the annotation, or withdraw the request."""
    document: dict[str, str] | None = None
    if " in " in value:
        kind, _, date = value.partition(" in ")
        document = {"kind": kind, "notBefore": to_text(play.now + timedelta(minutes=int(date)))}
    elif " id " in value:
        kind, _, number = value.partition(" id ")
        document = {"kind": kind, "id": number}
    elif value:
        document = {"kind": value}
    play.cluster.annotate(name, KEYS.request, json.dumps(document) if document else None)


@move("request", 8)
def withdraw(play: Play, name: str, _: str) -> None:
    """Withdraw the request of a node."""
    play.cluster.annotate(name, KEYS.request, None)


@move("condition", 4, values=("False", "True", "Unknown"))
def kernel_deadlock(play: Play, name: str, value: str) -> None:
    """Set a condition that the settings may name."""
    play.cluster.set_condition(name, Condition("KernelDeadlock", value, "Explored", "it was set"))


@move("condition", 3)
def condition_unknown(play: Play, name: str, _: str) -> None:
    """Let the detector lose its IMDS."""
    if play.cluster.nodes[name].condition(MAIN) is not None:
        play.cluster.set_condition(name, Condition(MAIN, "Unknown", "", "IMDS query failed"))


@move("condition", 2, values=("", "silent"))
def detector(play: Play, name: str, value: str) -> None:
    """Let the detector of a node write no heartbeats any more, or write them again."""
    if value:
        play.world.api.silent_since.setdefault(name, play.now)
    else:
        play.world.api.silent_since.pop(name, None)
    play.wake()


@move("agent", 4, values=("", "not ready", "unknown", "gone"))
def agent(play: Play, name: str, value: str) -> None:
    """Let the node agents be well, one of them not ready, unknown as a whole, or uninstalled."""
    found = {
        "": Agents(installed=True),
        "not ready": Agents(installed=True, not_ready=frozenset({name})),
        "unknown": Agents(installed=True, problem="403"),
        "gone": Agents(),
    }
    play.cluster.agents = found[value]
    play.wake()


@move("agent", 1, values=("", "{", "[]", '{"version":1,"events":[{}]}'))
def imds_annotation(play: Play, name: str, value: str) -> None:
    """Break what an agent published."""
    play.cluster.annotate(name, IMDS, value or None)


@move("agent", 1, values=("", "config", "freeze"))
def remediator(play: Play, _: str, value: str) -> None:
    """Change AKS's remediator."""
    play.cluster.remediator = Remediator(bool(value), on_freeze=value == "freeze")
    play.wake()


@move("platform", 3, values=("begins", "ends"))
def upgrade(play: Play, name: str, value: str) -> None:
    """Let AKS begin or end the upgrade of a node."""
    for key, text in IN_UPGRADE.items():
        play.cluster.annotate(name, key, text if value == "begins" else None)


@move("machines", 3, values=("", "refuse", "out of order"), on_node=False)
def machines(play: Play, _: str, value: str) -> None:
    """Let the provider of machines refuse requests, or be unreadable."""
    found = play.world.machines
    if found is not None:
        found.refuse = value == "refuse"
        found.out_of_order = "503" if value == "out of order" else ""
        play.wake()


@move("platform", 2, values=("up", "down"))
def kubelet(play: Play, name: str, value: str) -> None:
    """Let a node be NotReady for no reason, or Ready again."""
    if value == "down":
        play.cluster.node_down(name, "no reason")
    elif not play.cluster.nodes[name].ready:
        play.cluster.node_up(name)
