"""The end of a history: everything that is wrong is put right, and every event goes away."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from reconciler.model.content import CalendarText
from reconciler.model.event import Kind
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.node import MECHANIC_LABEL, UPGRADE_ANNOTATIONS, Condition
from reconciler.model.record import Record, Unreadable, record_of
from reconciler.model.snapshot import Agents, Remediator
from reconciler.model.steps import HeldStep
from reconciler.model.values import replace
from reconciler.simulation.clock import at_once
from reconciler.simulation.platform import VmEvent, quiet_conditions
from tests.explore.laws import KEYS
from tests.laws.histories import MAIN
from tests.support.builders import IMDS

if TYPE_CHECKING:
    from tests.explore.play import Play


def end(play: Play) -> None:
    """Let events end, sources be known, faults cease, and people take their hands off."""
    cluster = play.cluster
    play.faults.end()
    play.world.skew(timedelta())
    play.world.api.stale = None
    play.world.api.silent_since.clear()
    cluster.delivery = at_once
    cluster.agents = Agents(installed=True)
    cluster.remediator = Remediator()
    for cloud in play.clouds:
        cloud.problem = ""
        cloud.over()
    if play.world.machines is not None:
        play.world.machines.refuse = False
        play.world.machines.out_of_order = ""
    if "budget" in play.scene.pods:
        play.tighten(3)
    play.blocks(on=False)
    play.webhook.does = ""
    play.calendars.found = CalendarText("[]")
    cluster.ledger = replace(cluster.ledger, holds=())
    for name in sorted(cluster.nodes):
        _let_go(play, name)
    for laws in play.laws.of_plugins:
        laws.end(play)
    if play.settings.mode.value == "Observe":
        play.set_line("mode: Enforce")
    play.set_line("nodeSelector: {}")
    play.wake()


def _let_go(play: Play, name: str) -> None:
    cluster = play.cluster
    for event in play.world.platform.reported(name):
        _over(play, event)
    said = [key for key in cluster.nodes[name].annotations if _is_said(key)]
    for key in (KEYS.request, IMDS, *UPGRADE_ANNOTATIONS, *said):
        cluster.annotate(name, key, None)
    cluster.taint(name, ())
    cluster.label(name, KEYS.ignore, None)
    cluster.label(name, MECHANIC_LABEL, None)
    if cluster.nodes[name].condition("KernelDeadlock") is not None:
        cluster.set_condition(name, Condition("KernelDeadlock", "False"))
    if cluster.nodes[name].condition(MAIN) is not None and not play.world.platform.reported(name):
        for quiet in quiet_conditions():
            cluster.set_condition(name, quiet)
    # A reboot that has begun brings the VM back itself. A pause does not.
    stopped = any(event.kind in (Kind.REBOOT, Kind.REDEPLOY) for event in play.world.platform.reported(name))
    if not cluster.nodes[name].ready and not stopped:
        cluster.node_up(name)
    node = cluster.nodes[name]
    record = record_of(node, DEFAULT_PREFIX)
    if isinstance(record, Unreadable):
        play.release(name, reset=True)
    elif isinstance(record, Record) and record.claimed_by and node.unschedulable:
        play.release(name)


def _is_said(key: str) -> bool:
    """Whether an annotation is an instruction of a person, or a hook."""
    return key in KEYS.instructions or any(key.startswith(f"{KEYS.prefix}/{step}.") for step in HeldStep)


def _over(play: Play, event: VmEvent) -> None:
    """Cancel an event that has not begun; one that has ends by itself."""
    play.world.platform.cancel(event)
