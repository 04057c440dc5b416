"""Drives the drainer's core against the fake cluster in virtual time: no threads, the same every time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta

from reconciler.drainer import DrainCore, Limits
from reconciler.drainer.messages import (
    BudgetNews,
    Command,
    Event,
    PodNews,
    Request,
    Start,
    Stop,
    Tick,
    Unwatch,
    Watch,
    WatchBudgets,
    WatchEnded,
    WatchPods,
)
from reconciler.drainer.requests import ask, failed
from reconciler.errors import ReconcilerError, Unreachable
from reconciler.model.drains import DrainOptions, DrainOrder, DrainProgress
from reconciler.model.ports import BudgetChange, PodChange
from tests.support.fakes.evictor import START, FakeEvictor, FakeWatch


class Drive:
    """One run: `latency` is how long a request takes there and back."""

    def __init__(self, cluster: FakeEvictor, *, limits: Limits | None = None, latency: float = 0.02) -> None:
        """Take the cluster."""
        self.cluster = cluster
        self.core = DrainCore(limits)
        self.now = START
        self.commands: list[tuple[datetime, Command]] = []
        self._half = timedelta(seconds=latency / 2)
        self._agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self._number = 0
        self._pods: dict[int, FakeWatch[PodChange]] = {}
        self._budgets: dict[int, FakeWatch[BudgetChange]] = {}

    def start(self, node: str, **order: object) -> None:
        """Start a node's drain now."""
        self.feed(Start(order_for(node, **order)))

    def stop(self, node: str) -> None:
        """Stop it now."""
        self.feed(Stop(node))

    def lose_watch(self, node: str) -> None:
        """Cut the watch of a node's pods."""
        number = self.core._watches[node]
        self._pods.pop(number)
        self.feed(WatchEnded(node, number, Unreachable("cut")))

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something so long after the start."""
        self._plan(START + timedelta(seconds=seconds), action)

    def run(self, seconds: float = 3600) -> dict[str, DrainProgress]:
        """Run until every drain has ended, or for so long."""
        end = START + timedelta(seconds=seconds)
        turns = 0
        while self.core.running() and self.now < end:
            turns += 1
            assert turns < 100_000, "the core turns without time moving"
            times = [self._agenda[0][0]] if self._agenda else []
            times += [at for at in (self.cluster.next_change(), self.core.next_wake()) if at is not None]
            self.now = max(self.now, min(min(times, default=end), end))
            self.cluster.advance(self.now)
            while self._agenda and self._agenda[0][0] <= self.now:
                heapq.heappop(self._agenda)[2]()
            wake = self.core.next_wake()
            if wake is not None and wake <= self.now:
                self.feed(Tick())
        return dict(self.core.progress())

    def feed(self, event: Event) -> None:
        """Tell the core something now."""
        for command in self.core.step(event, self.now):
            self.commands.append((self.now, command))
            self._carry_out(command)

    def _plan(self, at: datetime, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._agenda, (at, self._number, action))

    def _carry_out(self, command: Command) -> None:
        match command:
            case Unwatch(number):
                self._pods.pop(number, None)
                self._budgets.pop(number, None)
            case _:
                self._plan(self.now + self._half, lambda: self._arrive(command))

    def _arrive(self, command: Watch | Request) -> None:
        answer = self._answer(command)
        if answer is not None:
            self._plan(self.now + self._half, lambda: self.feed(answer))

    def _answer(self, command: Watch | Request) -> Event | None:
        cluster = self.cluster
        try:
            match command:
                case WatchPods(node, number):
                    pods = cluster.watch_pods(node)
                    self._pods[number] = pods
                    pods.on_item = lambda: self._news(number)
                    self._drain_pods(node, number)
                case WatchBudgets(number):
                    budgets = cluster.watch_budgets()
                    self._budgets[number] = budgets
                    budgets.on_item = lambda: self._news(number)
                    self._drain_budgets(number)
                case _:
                    return ask(cluster, command, self.now)
        except ReconcilerError as error:
            return failed(command, error)
        return None

    def _news(self, number: int) -> None:
        node = next(
            (
                command.node
                for _, command in self.commands
                if isinstance(command, WatchPods) and command.watch == number
            ),
            None,
        )
        if node is not None:
            self._drain_pods(node, number)
        else:
            self._drain_budgets(number)

    def _drain_pods(self, node: str, number: int) -> None:
        watch = self._pods.get(number)
        while watch is not None and watch.items:
            item = watch.items.popleft()
            self._plan(
                max(self.now, self.cluster.now) + self._half,
                lambda item=item: self.feed(PodNews(node, number, item)),  # type: ignore[misc]  # bound now
            )

    def _drain_budgets(self, number: int) -> None:
        watch = self._budgets.get(number)
        while watch is not None and watch.items:
            item = watch.items.popleft()
            self._plan(
                max(self.now, self.cluster.now) + self._half,
                lambda item=item: self.feed(BudgetNews(item)),  # type: ignore[misc]  # bound now
            )


def order_for(node: str, **order: object) -> DrainOrder:
    """Make an order with defaults that suit the fake."""
    told: dict[str, object] = {
        "uid": f"uid-{node}",
        "since": START,
        "timeout": timedelta(minutes=30),
        "options": DrainOptions(),
    }
    told.update(order)
    return DrainOrder(node=node, **told)  # type: ignore[arg-type]  # the tests' keywords are the fields
