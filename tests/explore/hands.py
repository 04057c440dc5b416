"""What people do to nodes, records, pods and settings, and what they say of maintenance."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from reconciler.model.errors import ClusterError, RecordUnreadable, Rejected, TooManyRequests
from reconciler.model.instructions import ALL, Deferral, PersonHold, Word, pool_scope
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.limits import EARLIEST
from reconciler.model.node import AUTOSCALER_TAINT, MECHANIC_LABEL, REMEDIATOR_TAINT, Taint
from reconciler.model.pod import DO_NOT_DISRUPT, ON_COMPLETION, SAFE_TO_EVICT, Pod
from reconciler.model.values import replace
from reconciler.passes.instruct import InstructionResult, deferred, held, resumed, resumed_with_many, stopped
from reconciler.simulation.api import Call
from reconciler.simulation.clock import Actor
from reconciler.simulation.cluster import SimulatedCluster
from tests.explore.choices import LINES
from tests.explore.history import move
from tests.explore.laws import KEYS
from tests.explore.waits import TENANT
from tests.support.worlds import maintenances

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


@move("hand", 3, values=("", "{", "null", '{"version":2}', "[]", '{"version":1,"uid":"other"}'))
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
    play.cluster.annotate(name, f"{KEYS.prefix}/acknowledge", None)


@move("hand", 1, on_node=False)
def delete_maintenances(play: Play, _: str, __: str) -> None:
    """Delete every NodeMaintenance."""
    if maintenances(play.cluster):
        play.cluster.others["nodemaintenances"] = {}
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
    play.laws.waits.clock_changed()
    for laws in play.laws.of_plugins:
        laws.clock_changed()
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


_SCOPES = {"all": ALL, "pool": pool_scope("np")}
_HOLDS = ("", "now", "for 30", "now for 30", "for 600")


def _second(play: Play) -> datetime:
    """Return the time of the person's machine, whose clock is right."""
    return play.now.replace(microsecond=0)


def word(play: Play, minutes: str, scope: str = "") -> Word:
    """Return the word of a person, which ends after so many minutes, if any."""
    until = _second(play) + timedelta(minutes=int(minutes)) if minutes else None
    return Word("anna@desk", _second(play), until, "explored", scope)


def _hold(play: Play, value: str, scope: str = "") -> PersonHold:
    stops, _, minutes = value.rpartition("for ") if "for " in value else (value, "", "")
    return PersonHold(word(play, minutes, scope), stops="now" in stops)


def write(play: Play, said: InstructionResult) -> None:
    """Annotate the node, as the command does."""
    if said.write is not None:
        for key, text in said.write.annotations.items():
            play.cluster.annotate(said.write.node, key, text)


@move("people", 3, values=_HOLDS)
def hold(play: Play, name: str, value: str) -> None:
    """Hold a node."""
    node = play.cluster.nodes[name]
    write(play, held(node, _hold(play, value), DEFAULT_PREFIX, _second(play)))


@move("people", 5)
def resume(play: Play, name: str, _: str) -> None:
    """End the hold and the deferral of a node."""
    write(play, resumed(play.cluster.nodes[name], DEFAULT_PREFIX, _second(play), "alice@laptop"))


@move(
    "people", 1, values=tuple(f"{scope} {how}".strip() for how in _HOLDS for scope in _SCOPES), on_node=False
)
def hold_many(play: Play, _: str, value: str) -> None:
    """Hold all nodes, or the pool."""
    scope, _, how = value.partition(" ")
    hold = _hold(play, how, _SCOPES[scope])
    others = tuple(one for one in play.cluster.ledger.holds if one.word.scope != hold.word.scope)
    play.cluster.ledger = replace(play.cluster.ledger, holds=(*others, hold))
    for node in list(play.cluster.nodes.values()) if hold.stops else ():
        write(play, stopped(node, hold, DEFAULT_PREFIX))
    play.wake()


@move("people", 3, values=tuple(_SCOPES), on_node=False)
def resume_many(play: Play, _: str, value: str) -> None:
    """End the hold of all nodes, or of the pool."""
    scope = _SCOPES[value]
    left = tuple(one for one in play.cluster.ledger.holds if one.word.scope != scope)
    play.cluster.ledger = replace(play.cluster.ledger, holds=left)
    for node in list(play.cluster.nodes.values()):
        write(play, resumed_with_many(node, DEFAULT_PREFIX, _second(play), "alice@laptop", scope))
    play.wake()


@move("people", 2, values=("60", "5", "600"))
def defer(play: Play, name: str, value: str) -> None:
    """Defer the drain of a node."""
    node = play.cluster.nodes[name]
    write(play, deferred(node, Deferral(word(play, value)), DEFAULT_PREFIX, _second(play)))


@move("people", 1, values=("hold", "defer", "approved"))
def strange_instruction(play: Play, name: str, value: str) -> None:
    """Let another tool write an instruction that can't be read."""
    play.cluster.annotate(name, f"{KEYS.prefix}/{value}", "disk is being copied")


_NAME = "vet.example.com"
_LASTS = timedelta(hours=6)
_MOVES_AFTER = timedelta(minutes=2)
_DENIED = f'admission webhook "{_NAME}" denied the request: '


@dataclass(slots=True)
class Webhook:
    """A validating webhook for evictions of a tenant's pods.

    `does` is empty while it admits everything. `denies` refuses, `moves` refuses and lets a
    controller delete the pod, and `fails` does not answer the API server.
    """

    cluster: SimulatedCluster
    does: str = ""
    until: datetime = EARLIEST
    """When it admits everything again (UTC)."""
    _moved: set[str] = field(default_factory=set)

    def refuses(self) -> bool:
        """Whether it refuses evictions now."""
        return bool(self.does) and self.cluster.clock.now() < self.until

    def answer(self, call: Call) -> ClusterError | None:
        """Return why a request is refused, None if it is admitted."""
        pod = call.content
        if not self.refuses() or call.what != "evict" or not isinstance(pod, Pod) or pod.namespace != TENANT:
            return None
        if self.does == "denies":
            return TooManyRequests(f"{_DENIED}not now", status=429, retry_after=2)
        if self.does == "fails":
            return Rejected(f'failed calling webhook "{_NAME}": connection refused', status=500)
        if self.does == "moves":
            if pod.uid not in self._moved:
                self._moved.add(pod.uid)
                self.cluster.clock.after(_MOVES_AFTER, lambda: self._delete(pod.uid))
            return Rejected(f"{_DENIED}the controller moves it", status=500)
        return None

    def _delete(self, uid: str) -> None:
        if uid in self.cluster.pods:
            self.cluster.terminate(uid, None, Actor.SOMEBODY)


@move("tenant", 3, values=("", "denies", "moves", "fails"), on_node=False)
def webhook(play: Play, _: str, value: str) -> None:
    """Let a webhook deny the evictions of a tenant's pods for some hours, or admit them."""
    play.webhook.does = value
    play.webhook.until = play.now + _LASTS


_WAITS = {
    "wait-completed": (KEYS.wait_completed, "true"),
    "do-not-disrupt": (DO_NOT_DISRUPT, "true"),
    "on-completion": (SAFE_TO_EVICT, ON_COMPLETION),
}


@move("tenant", 4, values=tuple(_WAITS))
def pod_waits(play: Play, name: str, value: str) -> None:
    """Let a pod of a tenant ask to finish first."""
    key, text = _WAITS[value]
    for pod in play.tenants_pods(name)[:1]:
        play.cluster.add_pod(replace(pod, annotations={**pod.annotations, key: text}))


@move("tenant", 2, values=("", "budget"), on_node=False)
def tenant(play: Play, _: str, value: str) -> None:
    """Let a tenant forbid every eviction in their namespace, or no longer."""
    play.blocks(on=bool(value))
    play.wake()
