"""A whole simulation: clock, cluster, platform, the ports, and the drainer of the running process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache, partial
from operator import itemgetter
from typing import Any, TypeVar

from reconciler import plugins
from reconciler.drain.ahead import PodsAhead
from reconciler.drain.drainer.core import DrainCore
from reconciler.drain.drainer.messages import (
    BudgetNews,
    Command,
    Event,
    Limits,
    PodNews,
    Request,
    Start,
    Stop,
    Tick,
    Unwatch,
    Watch,
    WatchBudgets,
    WatchPods,
)
from reconciler.drain.drainer.requests import ask, failed
from reconciler.model.drains import DrainOrder, DrainProgress
from reconciler.model.errors import ReconcilerError
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.pod import Pod
from reconciler.model.ports import BudgetChange, EndedCases, PodChange, WritableOutside
from reconciler.model.snapshot import Self
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.clock import Actor, Log, SimulatedWatch, SkewedClock, VirtualClock
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.machines import SimulatedMachines
from reconciler.simulation.platform import SimulatedPlatform

_Item = TypeVar("_Item")


@cache
def _of_features() -> Mapping[str, Callable[[SimulatedApi], Any]]:
    """Return what makes the clients of features, by the name of their port."""
    given = ((plugins.file_of(module), module.SIMULATED.items()) for module in plugins.modules("simulation"))
    return dict(plugins.by_name("client", given, itemgetter(0)).values())


class SteppedDrainer:
    """A drainer without threads. `latency` is the delay of each request and each notification."""

    def __init__(
        self,
        api: SimulatedApi,
        clock: VirtualClock,
        *,
        limits: Limits | None = None,
        latency: timedelta = timedelta(milliseconds=20),
        on_progress: Callable[[DrainProgress], None] | None = None,
    ) -> None:
        """Use this port and clock; call `on_progress` with each progress."""
        self._api = api
        self._clock = clock
        self.core = DrainCore(limits)
        self.orders: dict[str, DrainOrder] = {}
        """The last order for each node, unless it was stopped."""
        self.commands: list[tuple[datetime, Command]] = []
        """Every command of the core so far, with its time (UTC)."""
        self.hangs: Callable[[Watch | Request], timedelta] = lambda command: timedelta()
        """How much longer than `latency` a request is on its way to the server."""
        self._latency = latency
        self._on_progress = on_progress
        self._watches: dict[int, SimulatedWatch[PodChange] | SimulatedWatch[BudgetChange]] = {}
        self._unwanted: set[int] = set()
        self._tick: datetime | None = None
        self._dead = False

    def start(self, order: DrainOrder) -> None:
        """Start a drain, or change the order of a running one."""
        node = self._api.cluster.nodes.get(order.node)
        cordoned = node is not None and node.unschedulable
        detail = "cordoned" if cordoned else "not cordoned"
        self._api.cluster.note(Actor.US, "drain ordered", order.node, detail=detail)
        self.orders[order.node] = order
        self.feed(Start(order))

    def stop(self, node: str) -> None:
        """Stop evictions from a node."""
        self.orders.pop(node, None)
        self.feed(Stop(node))

    def watched_pods(self, node: str, uid: str) -> tuple[Pod, ...] | None:
        """Return the pods of the node with this UID, as its drain knows them now, None if it does not."""
        return self.core.watched_pods(node, uid, self._clock.now())

    def progress(self) -> Mapping[str, DrainProgress]:
        """Return every drain started here, by node."""
        return self.core.progress()

    def kill(self) -> None:
        """Stop as a killed process does: send nothing more and ignore all answers."""
        self._dead = True
        for watch in self._watches.values():
            watch.close()

    def feed(self, event: Event) -> None:
        """Give the core an event now, and carry out its commands."""
        if self._dead:
            return
        now = self._clock.now()
        for command in self.core.step(event, now):
            self.commands.append((now, command))
            self._send(command)
        wake = self.core.next_wake()
        if wake is not None and (self._tick is None or wake < self._tick):
            self._tick = wake
            self._clock.at(wake, partial(self._ticked, wake))
        if self._on_progress is not None:
            for progress in self.core.touched():
                self._on_progress(progress)

    def _ticked(self, planned: datetime) -> None:
        if self._tick == planned:
            self._tick = None
        self.feed(Tick())

    def _send(self, command: Command) -> None:
        if isinstance(command, Unwatch):
            self._unwanted.add(command.watch)
            watch = self._watches.pop(command.watch, None)
            if watch is not None:
                watch.close()
            return
        self._clock.after(self._latency + self.hangs(command), lambda: self._arrive(command))

    def _arrive(self, command: Watch | Request) -> None:
        if self._dead:
            return
        if isinstance(command, WatchPods | WatchBudgets) and command.watch in self._unwanted:
            return
        try:
            answer = self._answer(command)
        except ReconcilerError as error:
            answer = failed(command, error)
        if answer is not None:
            self._hear(answer)

    def _answer(self, command: Watch | Request) -> Event | None:
        api = self._api
        match command:
            case WatchPods(node, number):
                pods = api.watch_pods(node)
                self._watches[number] = pods
                self._listen(command, pods, lambda change: PodNews(node, number, change))
            case WatchBudgets(number, namespace):
                budgets = api.watch_budgets(namespace)
                self._watches[number] = budgets
                self._listen(command, budgets, lambda change: BudgetNews(change, number))
            case _:
                return ask(api, command, self._clock.now())
        return None

    def _listen(self, command: Watch, watch: SimulatedWatch[_Item], news: Callable[[_Item], Event]) -> None:
        def hear() -> None:
            for item in watch.take():
                self._hear(news(item))
            if watch.error is not None:
                self._watches.pop(command.watch, None)
                self._hear(failed(command, watch.error))

        watch.listener = hear
        hear()

    def _hear(self, event: Event) -> None:
        self._clock.after(self._latency, lambda: self.feed(event))


class World:
    """Everything that a pass uses, and everything that changes around it."""

    def __init__(
        self,
        start: datetime,
        *,
        limits: Limits | None = None,
        prefix: str = DEFAULT_PREFIX,
        on_progress: Callable[[DrainProgress], None] | None = None,
        latency: timedelta = timedelta(milliseconds=20),
    ) -> None:
        """Start at this moment (aware, UTC); `latency` is the delay of each request of the drainer."""
        self.clock = VirtualClock(start)
        self.ours = SkewedClock(self.clock)
        """The clock of the process."""
        self.log = Log()
        self.cluster = SimulatedCluster(self.clock, self.log)
        self.platform = SimulatedPlatform(self.cluster, prefix=prefix)
        self.api = SimulatedApi(self.cluster)
        self.machines: SimulatedMachines | None = None
        """The machine provider of the nodes, None if there is none."""
        self.clients: dict[str, Any] = {name: make(self.api) for name, make in _of_features().items()}
        """The clients of features, by the name of their port, and of polled sources, by the source's name."""
        self.ended: EndedCases | None = None
        """What keeps the cases that end, None if nobody does."""
        self._leads_since = start
        self._new_drainer = partial(
            SteppedDrainer, self.api, self.ours, limits=limits, latency=latency, on_progress=on_progress
        )
        self.drainer = self._new_drainer()

    @property
    def outside(self) -> WritableOutside:
        """What a pass of the running process uses."""
        return WritableOutside(
            reader=self.api,
            writer=self.api,
            drainer=self.drainer,
            notifier=self.api,
            clients=self.clients,
            machines=self.machines,
            ended=self.ended,
            ahead=PodsAhead(self.api, every=timedelta(), budgets_every=timedelta()),
            itself=Self(leads_since=self._leads_since),
        )

    @property
    def now(self) -> datetime:
        """The time, aware, UTC."""
        return self.clock.now()

    def advance(self, pause: timedelta) -> None:
        """Advance the clock."""
        self.clock.advance(self.now + pause)

    def skew(self, ahead: timedelta) -> None:
        """Set the clock of the process ahead of the API server's, or behind it if negative."""
        self.ours.ahead = ahead
        self.cluster.skew = ahead

    def restart(self) -> None:
        """Kill the process and start another one, which has nothing in memory."""
        self.drainer.kill()
        self.drainer = self._new_drainer()
        self._leads_since = self.ours.now()
