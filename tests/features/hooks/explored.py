"""Hooks in the histories of the exploration: who sets them, what their service does, and that they end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from reconciler.features.hooks.hook import HookAnswer, HookKey, HookRun, HookState
from reconciler.features.hooks.settings import HOOKS
from reconciler.model.node import Node
from reconciler.model.plan import NodePlan
from reconciler.model.ports import RequestProgress
from reconciler.model.record import State
from reconciler.model.steps import HeldStep, holders_of
from reconciler.model.values import replace
from reconciler.settings.schema import Mode, Settings
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.world import World
from tests.explore.history import Broken, move
from tests.explore.obeyed import STOPS_WITHIN
from tests.explore.of_plugins import LawsOfPlugin
from tests.explore.truth import KEYS, Truth, asks
from tests.explore.waits import longest_hold
from tests.laws import checked

if TYPE_CHECKING:
    from tests.explore.play import Play

TAKES = timedelta(minutes=2)
"""How long a run takes if nothing is wrong."""

_AGAIN = timedelta(minutes=1)
_SAYS = {
    "failed": ("failed", "500 Internal Server Error"),
    "silent": ("unknown", "no answer"),
    "busy": ("running", "503 Service Unavailable"),
}
ANSWERS = ("", *_SAYS)
"""What the service can do: `""` is done after a while."""


@dataclass(slots=True)
class HookService:
    """A HookRunner. `answer` is one of ANSWERS; `begun` are the runs, with the time of each (UTC)."""

    api: SimulatedApi
    answer: str = ""
    begun: dict[HookKey, datetime] = field(default_factory=dict)

    def answers(self, keys: Sequence[HookKey]) -> Mapping[HookKey, HookAnswer]:
        """Return what each of these runs does now."""
        return {key: self._answer(key) for key in keys}

    def _answer(self, key: HookKey) -> HookAnswer:
        began = self.begun.get(key)
        if began is None:
            return HookAnswer(HookState.ABSENT)
        if self.answer:
            state, because = _SAYS[self.answer]
            return HookAnswer(HookState(state), because, _AGAIN)
        over = self.api.cluster.clock.now() - began >= TAKES
        return HookAnswer(HookState.DONE) if over else HookAnswer(HookState.RUNNING, "it runs", _AGAIN)

    def run(self, run: HookRun) -> None:
        """Begin a run; one that has begun goes on."""
        call = self.api.begin_write("run_hook", run.key.node, str(run.key.id), run)
        self.begun.setdefault(run.key, self.api.cluster.clock.now())
        self.api.end_write(call)

    def progress(self) -> RequestProgress:
        """Return that nothing is asked: a run keeps its answer itself."""
        return RequestProgress()


CLIENTS = {"hooks": lambda world: HookService(world.api)}


def _service(play: Play) -> HookService:
    service: HookService = play.world.clients["hooks"]
    return service


_STEPS = ("pre-drain", "post-drain", "pre-uncordon")
_NAMES = tuple(f"{step}.{name}" for name in ("leader", "sync") for step in _STEPS)


@move("hook", 6, values=_NAMES)
def hook(play: Play, name: str, value: str) -> None:
    """Annotate a node with a hook."""
    play.cluster.annotate(name, f"{KEYS.prefix}/{value}", "team storage")


@move("hook", 4, values=_NAMES)
def hook_done(play: Play, name: str, value: str) -> None:
    """Remove a hook of a node, as its owner does."""
    play.cluster.annotate(name, f"{KEYS.prefix}/{value}", None)


@move("hook", 3, values=("pre-drain.leader", "pre-drain.other", "post-drain.leader", "pre-uncordon.leader"))
def pod_hook(play: Play, name: str, value: str) -> None:
    """Let a tenant annotate a pod of theirs with a hook; only `pre-drain` holds anything there."""
    for pod in play.tenants_pods(name)[:1]:
        key = f"{KEYS.prefix}/{value}"
        play.cluster.add_pod(replace(pod, annotations={**pod.annotations, key: "tenant"}))


@move("hook", 3, values=ANSWERS, on_node=False)
def hook_service(play: Play, _: str, value: str) -> None:
    """Let the hooks of the settings be done, fail, be silent, or never end."""
    _service(play).answer = value
    play.wake()


LATE = timedelta(minutes=1)
"""How much longer than its limit a hook may seem to hold: records keep whole seconds, and passes may fail."""

_HOLDS = {
    "preDrainHooksDone": HeldStep.PRE_DRAIN,
    "postDrainHooksDone": HeldStep.POST_DRAIN,
    "preUncordonHooksDone": HeldStep.PRE_UNCORDON,
}
_Held = tuple[str, str, frozenset[str], timedelta]


class LAWS(LawsOfPlugin):
    """Since when hooks hold each node, and since when each `pre-drain` hook is on its node."""

    counted = ("17 hooks",)

    def __init__(
        self, world: World, truth: Truth, checked: Counter[str], missed: Mapping[str, Set[str]]
    ) -> None:
        super().__init__(world, truth, checked, missed)
        self._held: dict[_Held, datetime] = {}
        self._there: dict[str, dict[str, datetime]] = {}
        self._timeout: timedelta | None = None
        world.cluster.node_listeners.append(self._changed)

    def _changed(self, node: Node) -> None:
        before, now = self._there.get(node.uid, {}), self.world.now
        names = _names(node, HeldStep.PRE_DRAIN)
        self._there[node.uid] = {name: before.get(name, now) for name in names}

    def clock_changed(self) -> None:
        """Note that no time until now can be compared with a time after it."""
        self._held.clear()
        self._there.clear()

    def under(self, policy: Settings) -> None:
        """Note the settings in force. A hook that has another limit now may have ended."""
        if longest_hold(policy) != self._timeout:
            self._timeout = longest_hold(policy)
            self._there.clear()
        if policy.mode is Mode.OBSERVE:
            self._held.clear()

    def end(self, play: Play) -> None:
        """Let the service behind the hooks be done with whatever it is asked."""
        _service(play).answer = ""

    # What must hold.

    def planned(self, plans: Iterable[NodePlan], policy: Settings) -> None:
        """Note which nodes hooks hold after a pass, and check for how long."""
        now, timeout = self.world.now, longest_hold(policy)
        found: set[_Held] = set()
        for one in plans:
            node = self.world.cluster.nodes.get(one.node)
            for hold in one.holds if node is not None else ():
                step = _HOLDS.get(hold.code)
                if step is not None and node is not None:
                    configured = {f"settings.{hook.name}" for hook in HOOKS.of(policy).of(step)}
                    found.add((node.uid, hold.code, frozenset(_names(node, step) | configured), timeout))
        self._held = {key: self._held.get(key, now) for key in found}
        self.stepped()

    def stepped(self) -> None:
        """Check that no hook holds a step beyond its limit, also if there was no pass meanwhile."""
        for (uid, code, names, timeout), since in self._held.items():
            self.checked["17 hooks"] += 1
            if self.world.now - since > timeout + LATE:
                raise Broken("17", f"{code} holds {uid} for {sorted(names)} since {since}")

    def evicts(self, node: Node, policy: Settings) -> None:
        """Check a request about a pod of a node: none is sent while a `pre-drain` hook holds the drain."""
        case, now = checked.case_of(node), self.world.now
        if case.state is not State.IN_MAINTENANCE or case.since is None or not policy.manages(node.labels):
            return
        urgent = self._may_be_urgent(node, policy)
        for name, since in self._there.get(node.uid, {}).items():
            begun = max(case.since, since)
            if urgent or now >= begun + longest_hold(policy) - LATE:
                continue
            self.checked["17 hooks"] += 1
            if since <= case.since or now - since > STOPS_WITHIN:
                raise Broken("hooks", f"pods of {node.name} are evicted, though {name} holds its drain")

    def _may_be_urgent(self, node: Node, policy: Settings) -> bool:
        """Whether an event may be so near that no hook holds a drain for it."""
        for channel in self.truth.channels(node, policy):
            for one in (*channel.told, *channel.hidden):
                lead = policy.policies(node.labels).of_kind(one.kind).lead_time
                dated = one.date is not None and one.date - lead - LATE <= self.world.now
                undated = one.date is None and one.kind in policy.budget.exempt
                if asks(one, node, policy, self.world) and (dated or undated):
                    return True
        return any(
            one.not_before is not None or one.kind in policy.budget.exempt
            for one in checked.case_of(node).events
        )


def _names(node: Node, step: HeldStep) -> set[str]:
    return {f"{one.step}.{one.name}" for one in holders_of(node.annotations, KEYS.prefix) if one.step is step}
