"""Who answers from outside of the cluster: the clouds, a calendar, and the service behind the hooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Generic, TypeVar

from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.errors import CloudError
from reconciler.model.machine import Scope, vm_of
from reconciler.model.moments import to_text
from reconciler.model.polling import Listing
from reconciler.model.ports import RequestProgress
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.clock import Actor
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.sources.arm import source as arm
from reconciler.sources.arm.source import PerformMaintenance, Planned
from reconciler.sources.aws import source as aws
from reconciler.sources.aws.source import InstanceEvent
from tests.explore.history import move

if TYPE_CHECKING:
    from reconciler.features.hooks.hook import HookAnswer, HookKey, HookRun
    from tests.explore.play import Play


Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class Said(Generic[Fact]):
    """What a cloud answered last about a node: facts, or the problem for which it refused."""

    found: tuple[Fact, ...] = ()
    problem: str = ""


DOWN = timedelta(minutes=4)
"""How long a VM is away in a maintenance that we start."""


@dataclass(slots=True)
class SimulatedArm:
    """ARM: a SourceClient and PlatformWriter. `plans` are statuses of VMs, by node; `problem` refuses."""

    cluster: SimulatedCluster
    plans: dict[str, dict[str, object]] = field(default_factory=dict)
    problem: str = ""
    said: dict[str, Said[Planned]] = field(default_factory=dict)

    def ask(self, scopes: Sequence[Scope]) -> tuple[Listing[Scope, Planned], ...]:
        """List the VMs of these scopes."""
        return tuple(self._answer(scope) for scope in scopes)

    def _answer(self, scope: Scope) -> Listing[Scope, Planned]:
        listing: Listing[Scope, Planned] = Listing(scope, problem=self.problem)
        if not self.problem:
            listing = arm.listing(scope, self._listed(scope))
        for name, node in self.cluster.nodes.items():
            vm = vm_of(node.provider_id)
            if vm is not None and vm.scope == scope:
                found = tuple(fact for of, fact in listing.found if of == vm.name)
                self.said[name] = Said(found, self.problem)
        return listing

    def _listed(self, scope: Scope) -> list[dict[str, object]]:
        documents: list[dict[str, object]] = []
        for name, node in self.cluster.nodes.items():
            vm = vm_of(node.provider_id)
            if vm is not None and vm.scope == scope:
                status = self.plans.get(name, {})
                documents.append(
                    {
                        "id": node.provider_id.removeprefix("azure://"),
                        "instanceId": vm.name,
                        "properties": {"instanceView": {"maintenanceRedeployStatus": status}},
                    }
                )
        return documents

    def perform(self, action: PerformMaintenance, /) -> None:
        """Restart the VM on another host, which ends its plan."""
        if self.problem or action.node not in self.plans:
            raise CloudError("409 OperationNotAllowed")
        cluster, name = self.cluster, action.node
        cluster.note(Actor.US, "performs maintenance", name)
        uid = cluster.nodes[name].uid
        cluster.node_down(name, "self-service maintenance")

        def back() -> None:
            self.plans.pop(name, None)
            if name in cluster.nodes and cluster.nodes[name].uid == uid:
                cluster.node_up(name)

        cluster.clock.after(DOWN, back)


@dataclass(slots=True)
class SimulatedEc2:
    """DescribeInstanceStatus: `events` of each instance, by node; `problem` refuses."""

    cluster: SimulatedCluster
    events: dict[str, list[dict[str, object]]] = field(default_factory=dict)
    problem: str = ""
    said: dict[str, Said[InstanceEvent]] = field(default_factory=dict)

    def ask(self, scopes: Sequence[str]) -> tuple[Listing[str, InstanceEvent], ...]:
        """List the events of these regions."""
        return tuple(self._answer(scope) for scope in scopes)

    def _answer(self, region: str) -> Listing[str, InstanceEvent]:
        listing: Listing[str, InstanceEvent] = Listing(region, problem=self.problem)
        if not self.problem:
            listing = aws.listing(region, self._statuses(region))
        for name, node in self.cluster.nodes.items():
            place = aws.instance_of(node.provider_id)
            if place is not None and place[0] == region:
                found = tuple(event for of, event in listing.found if of == place[1])
                self.said[name] = Said(found, self.problem)
        return listing

    def _statuses(self, region: str) -> list[dict[str, object]]:
        statuses: list[dict[str, object]] = []
        for name, node in self.cluster.nodes.items():
            place = aws.instance_of(node.provider_id)
            if place is not None and place[0] == region and self.events.get(name):
                statuses.append({"InstanceId": place[1], "Events": list(self.events[name])})
        return statuses


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
        # Without the feature, nobody asks.
        from reconciler.features.hooks.hook import HookAnswer, HookState

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


@dataclass(slots=True)
class Calendars:
    """A CalendarReader that finds the same content at each place."""

    found: CalendarText = CalendarText("[]")

    def read(self, places: Sequence[CalendarPlace]) -> Mapping[str, CalendarText]:
        """Return the content of each place."""
        return {place.name: self.found for place in places}


_SPANS = {"0 to 60": (0, 60), "0 to 600": (0, 600), "30 to 90": (30, 90), "-60 to 10000": (-60, 10000)}


@move("calendar", 5, values=("", *_SPANS, "unreadable"), on_node=False)
def calendar(play: Play, _: str, value: str) -> None:
    """Change the content of the calendar: no event, one event from and to so many minutes, or unreadable."""
    if value == "unreadable":
        play.calendars.found = CalendarText(unread="403 Forbidden")
    elif value:
        begin, end = (to_text(play.now + timedelta(minutes=one)) for one in _SPANS[value])
        play.calendars.found = CalendarText(f"- {{start: {begin}, end: {end}}}")
    else:
        play.calendars.found = CalendarText("[]")
    play.wake()
