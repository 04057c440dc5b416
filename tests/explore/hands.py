"""What people do to nodes, records, pods and settings."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from reconciler.model.errors import RecordUnreadable
from reconciler.model.node import AUTOSCALER_TAINT, MECHANIC_LABEL, REMEDIATOR_TAINT, Taint
from tests.explore.choices import LINES
from tests.explore.laws import KEYS
from tests.explore.moves import move

if TYPE_CHECKING:
    from tests.explore.play import Play


@move("hand", 5)
def cordon(play: Play, name: str, _: str) -> None:
    """Cordon a node; one that is closed stays whose it is."""
    node = play.cluster.nodes[name]
    if not node.unschedulable:
        play.laws.cordoned_by_hand(node)
        play.cluster.cordon(name)


@move("hand", 6)
def uncordon(play: Play, name: str, _: str) -> None:
    """Uncordon a node."""
    node = play.cluster.nodes[name]
    if node.unschedulable:
        play.laws.opened_by_hand(node)
        play.cluster.cordon(name, on=False)


@move("hand", 3, values=("", AUTOSCALER_TAINT, REMEDIATOR_TAINT, "someone.io/theirs"))
def taint(play: Play, name: str, value: str) -> None:
    """Set the one taint of a node, or remove it."""
    play.cluster.taint(name, (Taint(value, effect="NoSchedule"),) if value else ())


@move("hand", 3, values=("", "true"))
def ignore(play: Play, name: str, value: str) -> None:
    """Exclude a node by its label, or include it again."""
    play.cluster.label(name, KEYS.ignore, value or None)


@move("hand", 2, values=("", "true"))
def mechanic(play: Play, name: str, value: str) -> None:
    """Set mechanic's label, or remove it."""
    play.laws.unclear.add(play.cluster.nodes[name].uid)
    play.cluster.label(name, MECHANIC_LABEL, value or None)


@move("hand", 2)
def delete_node(play: Play, name: str, _: str) -> None:
    """Delete a node; another one comes."""
    play.cluster.delete_node(name)


@move("hand", 2)
def recreate(play: Play, name: str, _: str) -> None:
    """Delete a node, and create another one with its name."""
    play.cluster.recreate_node(name)


@move("hand", 4, values=("anna", "ben"))
def drain_by_hand(play: Play, name: str, value: str) -> None:
    """Begin `reconciler drain`."""
    play.claim(name, value)


@move("hand", 4)
def release(play: Play, name: str, _: str) -> None:
    """Run `reconciler release`; a record that can't be read stays."""
    try:
        play.release(name)
    except RecordUnreadable:
        return


@move("hand", 2)
def reset(play: Play, name: str, _: str) -> None:
    """Run `reconciler release --reset`."""
    play.release(name, reset=True)


@move("hand", 3, values=("", "{", "null", '{"version":3}', "[]", '{"version":2,"uid":"other"}'))
def record(play: Play, name: str, value: str) -> None:
    """Remove the record of a node, or break it."""
    node = play.cluster.nodes[name]
    if KEYS.record in node.annotations or value:
        play.laws.record_lost(node)
        play.cluster.annotate(name, KEYS.record, value or None)


@move("hand", 2, values=("", "operational", "in-maintenance", "nonsense"))
def state_label(play: Play, name: str, value: str) -> None:
    """Change the label that shows the state."""
    play.cluster.label(name, KEYS.state, value or None)


@move("hand", 2)
def acknowledge_by_hand(play: Play, name: str, _: str) -> None:
    """Remove the annotation that the agents obey; nobody else may set it."""
    play.cluster.annotate(name, KEYS.acknowledge, None)


@move("hand", 1, on_node=False)
def delete_maintenances(play: Play, _: str, __: str) -> None:
    """Delete every NodeMaintenance."""
    if play.cluster.maintenances is not None:
        play.cluster.maintenances.clear()
        play.wake()


@move("hand", 2, values=("1", "0", "3"), on_node=False)
def pod_budget(play: Play, _: str, value: str) -> None:
    """Change the PodDisruptionBudget of the guarded pods."""
    play.tighten(int(value))
    play.wake()


@move("settings", 10, values=LINES, on_node=False)
def settings(play: Play, _: str, value: str) -> None:
    """Change one line of the settings file."""
    play.set_line(value)


@move("clock", 3, values=("0", "1", "600", "86400", "-600", "-86400"), on_node=False)
def clock(play: Play, _: str, value: str) -> None:
    """Set the clock of the process ahead of the true time, in seconds, or behind it."""
    play.world.skew(timedelta(seconds=int(value)))
    play.laws.cases.clock_changed()
    play.laws.hooks.clock_changed()
    play.wake()


@move("clock", 2)
def our_own_node(play: Play, name: str, _: str) -> None:
    """Let the program run on this node from now on."""
    play.own_node = name
    play.wake()


@move("look", 2, on_node=False)
def dry_run(play: Play, _: str, __: str) -> None:
    """Make a dry run."""
    play.rehearse()


@move("look", 2, on_node=False)
def nothing(play: Play, _: str, __: str) -> None:
    """Do nothing, but have a pass."""
    play.wake()
