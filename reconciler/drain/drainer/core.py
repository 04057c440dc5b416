"""All drains of a process as a deterministic state machine: events go in, commands come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from msgspec import Struct, field

from reconciler.drain.drainer.messages import (
    AttachmentsSeen,
    BudgetNews,
    Command,
    Event,
    Limits,
    NodeSeen,
    PodNews,
    PodsSeen,
    Start,
    Stop,
    Tick,
    Unwatch,
    WatchBudgets,
    WatchEnded,
    WatchPods,
    WriteDone,
)
from reconciler.drain.drainer.node_drain import NodeDrain
from reconciler.drain.drainer.requests import throttles
from reconciler.drain.drainer.shared import PdbTracker, Places
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.errors import TooManyRequests
from reconciler.model.ports import Listed
from reconciler.model.problems import internal


class _BudgetWatches(Struct):
    """The watches of budgets: their namespaces by number, and those without their first list.

    `namespaces` are those with pods to move, and `due` is when the evictions begin without news (UTC).
    """

    watches: dict[int, str] = field(default_factory=dict)
    unlisted: set[int] = field(default_factory=set)
    namespaces: frozenset[str] = frozenset()
    due: datetime | None = None


class _BrokenWatches(Struct):
    """When the watches of a node's pods, or of budgets (None), open again, and how often they failed."""

    reopen: dict[str | None, datetime] = field(default_factory=dict)
    failures: dict[str | None, int] = field(default_factory=dict)


class DrainCore:
    """The drains of one process. The same events at the same times result in the same commands."""

    def __init__(self, limits: Limits | None = None) -> None:
        """Start without drains. `limits` default to `Limits()`."""
        self.limits = limits or Limits()
        self._drains: dict[str, NodeDrain] = {}
        self._pdbs = PdbTracker()
        self._places = Places(self.limits)
        self._number = 0
        self._watches: dict[str, int] = {}
        self._budgets = _BudgetWatches()
        self._broken = _BrokenWatches()
        self._quiet_until: datetime | None = None
        self._dirty: set[str] = set()
        self._last: datetime | None = None
        self._touched: set[str] = set()
        self._live: set[str] = set()
        self._line: dict[str, None] = {}
        self._ended = 0

    def step(self, event: Event, now: datetime) -> tuple[Command, ...]:
        """Handle one event at a time `now` (UTC), and return the commands."""
        return self.step_all((event,), now)

    def step_all(self, events: Iterable[Event], now: datetime) -> tuple[Command, ...]:
        """Handle several events that arrived together, and return the commands after all of them."""
        if self._last is not None and now < self._last - timedelta(seconds=1):
            self._clock_went_back(now)
        self._last = now
        commands: list[Command] = []
        for event in events:
            self._take_safely(event, now, commands)
        self._wake_up(now)
        self._advance(now, commands)
        self._close(commands)
        return tuple(commands)

    def next_wake(self) -> datetime | None:
        """Return when the next Tick is due if nothing else happens (UTC). None: never."""
        times = [drain.alarm.wake for drain in self._drains.values() if drain.alarm.wake is not None]
        times += self._broken.reopen.values()
        times += [self._budgets.due] if self._budgets.due is not None else []
        times += [self._quiet_until] if self._quiet_until is not None else []
        return min(times, default=None)

    def progress(self) -> Mapping[str, DrainProgress]:
        """Return the progress of each drain by node. A drain that has ended stays until the next one."""
        return {node: _progress(drain) for node, drain in sorted(self._drains.items())}

    def touched(self) -> tuple[DrainProgress, ...]:
        """Return the progress of the drains that have changed since the last call."""
        touched, self._touched = self._touched, set()
        return tuple(_progress(self._drains[node]) for node in sorted(touched))

    def ended(self) -> int:
        """Return how many drains have ended since the start."""
        return self._ended

    def running(self) -> int:
        """Return how many drains have not ended."""
        return len(self._live)

    def fail_all(self, because: str, now: datetime) -> tuple[Command, ...]:
        """Fail every drain that runs at a time `now` (UTC), and return the commands that stop the watches.

        For an error of the core itself, after which its state can't be trusted. Answers that are still on
        their way are ignored. A new order starts a drain again.
        """
        for drain in self._drains.values():
            drain.end(Phase.FAILED, now, because)
            self._number += 1
            drain.number, drain.requests.in_flight = self._number, 0
        self._pdbs, self._places = PdbTracker(), Places(self.limits)
        self._broken.reopen.clear()
        self._dirty.clear()
        self._quiet_until = None
        commands: list[Command] = []
        self._close(commands)
        return tuple(commands)

    def _take_safely(self, event: Event, now: datetime, commands: list[Command]) -> None:
        """Handle an event. An exception fails the drain that the event is about, and no other."""
        try:
            self._take(event, now, commands)
        except Exception as error:
            match event:
                case Start(order):
                    node: str | None = order.node
                case WriteDone(write):
                    node = write.node
                    self._pdbs.release(write.pod.uid)
                case BudgetNews() | Tick():
                    node = None
                case _:
                    node = event.node
            drain = self._drains.get(node) if node is not None else None
            if drain is None:
                # The core's own state may be wrong, so its caller ends all drains.
                raise
            self._fail(drain, error, now)

    def _fail(self, drain: NodeDrain, error: Exception, now: datetime) -> None:
        for uid in drain.uids():
            # Another drain must not wait for an eviction that is never sent.
            self._pdbs.release(uid)
        drain.end(Phase.FAILED, now, internal(f"the drain of node {drain.order.node} failed", error))
        self._dirty.add(drain.order.node)

    def _take(self, event: Event, now: datetime, commands: list[Command]) -> None:
        match event:
            case Start(order):
                self._start(event, now, commands)
                self._dirty.add(order.node)
            case Stop(node, because):
                if node in self._drains:
                    self._drains[node].end(Phase.STOPPED, now, because)
            case PodNews(node, watch, change):
                if self._watches.get(node) == watch:
                    self._broken.failures.pop(node, None)
                    self._drains[node].see(change, now)
                    self._dirty.add(node)
            case BudgetNews():
                self._budget_changed(event)
            case WatchEnded():
                self._watch_ended(event, now, commands)
            case WriteDone():
                self._written(event, now)
            case NodeSeen() | PodsSeen() | AttachmentsSeen():
                self._answered(event, now)
            case Tick():
                pass

    def _start(self, event: Start, now: datetime, commands: list[Command]) -> None:
        order = event.order
        former = self._drains.get(order.node)
        if former is not None and former.running and former.order.uid == order.uid:
            # The attempt continues, with the new settings. Its timeout still counts from its start.
            former.order = order
            return
        if former is not None:
            self._unwatch(order.node, commands)
        self._number += 1
        drain = self._drains[order.node] = NodeDrain(order, self._number, self.limits)
        if former is not None and order.uid == former.order.uid:
            drain.continue_after(former)
        self._live.add(order.node)
        self._watches[order.node] = self._number
        commands.append(WatchPods(order.node, self._number))

    def _answered(self, event: NodeSeen | PodsSeen | AttachmentsSeen, now: datetime) -> None:
        drain = self._drains.get(event.node)
        if drain is None or drain.number != event.drain:
            return
        self._dirty.add(event.node)
        match event:
            case NodeSeen(_, _, found, error):
                if error is None:
                    drain.see_node(found, now)
                else:
                    drain.node_unread(error, now)
            case PodsSeen(_, _, pods, error):
                if error is None:
                    drain.see_pods(pods, now)
                else:
                    drain.pods_unread(error, now)
            case AttachmentsSeen(_, _, names, error):
                if error is None:
                    drain.see_attachments(names, now)
                else:
                    drain.attachments_unread(error, now)

    def _written(self, event: WriteDone, now: datetime) -> None:
        write = event.write
        self._places.release(write.node, write.pod.namespace)
        drain = self._drains.get(write.node)
        released = self._pdbs.held_by(write.pod.uid)
        if drain is None or drain.number != write.drain:
            self._pdbs.release(write.pod.uid)
        else:
            stopped = drain.written(event, self._pdbs, now)
            if stopped:
                for one in self._drains.values():
                    one.end(Phase.STOPPED, now, stopped)
            self._dirty.add(write.node)
            if isinstance(event.error, TooManyRequests) and throttles(event.error):
                self._quiet_until = now + self.limits.asked_wait(event.error.retry_after)
        self._dirty.update(node for node in self._live if self._drains[node].needs.places)
        self._dirty_waiting(released)

    def _budget_changed(self, event: BudgetNews) -> None:
        if not isinstance(event.change, Listed):
            key = self._pdbs.see(event.change)
            self._dirty_waiting({key} if key is not None else ())
            return
        if event.watch not in self._budgets.unlisted:
            return
        self._budgets.unlisted.discard(event.watch)
        if not self._budgets.unlisted:
            self._pdbs.only = self._watched_namespaces()
            self._pdbs.see(event.change)
            self._broken.failures.pop(None, None)
            self._dirty.update(self._drains)

    def _watch_ended(self, event: WatchEnded, now: datetime, commands: list[Command]) -> None:
        if event.node is None:
            if event.watch not in self._budgets.watches:
                return
            del self._budgets.watches[event.watch]
            self._unwatch_budgets(commands)
            self._pdbs.forget(broken=True)
            self._dirty.update(self._drains)
        elif self._watches.get(event.node) != event.watch:
            return
        else:
            self._watches.pop(event.node)
            self._drains[event.node].pods.lose_sight()
        failures = self._broken.failures.get(event.node, 0)
        self._broken.failures[event.node] = failures + 1
        pause = self.limits.retry.pause(failures)
        self._broken.reopen[event.node] = now + pause

    def _wake_up(self, now: datetime) -> None:
        if self._quiet_until is not None and self._quiet_until <= now:
            self._quiet_until = None
            self._dirty.update(self._drains)
        if self._budgets.due is not None and (not self._budgets.unlisted or self._budgets.due <= now):
            # Without news the evictions are tried. The server still refuses those that a budget forbids.
            self._pdbs.broken = bool(self._budgets.unlisted)
            self._budgets.due = None
            self._dirty.update(self._drains)
        for node, drain in self._drains.items():
            if drain.alarm.wake is not None and drain.alarm.wake <= now:
                self._dirty.add(node)

    def _advance(self, now: datetime, commands: list[Command]) -> None:
        self._reopen_watches(now, commands)
        places = self._places if self._quiet_until is None else None
        self._dirty |= self._next_in_line()
        while self._dirty:
            # In the order in which they were started, which is the order of the plan.
            for node, drain in self._drains.items():
                if node not in self._dirty:
                    continue
                drain.slot.free = self._slot_free(drain)
                try:
                    wanted = drain.advance(self._pdbs, places, now)
                except Exception as error:  # noqa: BLE001 - one drain's data harms that drain only
                    self._fail(drain, error, now)
                    continue
                finally:
                    self._stand_in_line(drain)
                commands += wanted
            self._touched |= self._dirty
            # Each of them takes its slot now, or leaves the line.
            self._dirty = self._next_in_line()
        if None not in self._broken.reopen and any(
            self._lacks_budgets(self._drains[node]) for node in self._live
        ):
            self._open_budgets(now, commands)

    def _slot_free(self, drain: NodeDrain) -> bool:
        """Return whether there is a slot for the drain, after those that wait for one for longer."""
        slots = drain.order.slots
        if slots is None or drain.slot.held:
            return True
        used = sum(self._drains[node].slot.held for node in self._live if self._drains[node].running)
        for node in self._line:
            if node == drain.order.node:
                break
            used += 1
        return used < slots

    def _next_in_line(self) -> set[str]:
        return {node for node in self._line if self._slot_free(self._drains[node])}

    def _stand_in_line(self, drain: NodeDrain) -> None:
        if drain.running and drain.slot.awaited:
            self._line.setdefault(drain.order.node)
        else:
            self._line.pop(drain.order.node, None)

    def _reopen_watches(self, now: datetime, commands: list[Command]) -> None:
        for node in [node for node, at in self._broken.reopen.items() if at <= now]:
            del self._broken.reopen[node]
            if node is None:
                if self.running():
                    self._open_budgets(now, commands)
            elif self._drains[node].running:
                self._number += 1
                self._watches[node] = self._number
                commands.append(WatchPods(node, self._number))

    def _lacks_budgets(self, drain: NodeDrain) -> bool:
        if not drain.needs.budgets_of:
            return False
        watched = self._watched_namespaces()
        return not self._budgets.watches or bool(watched and drain.needs.budgets_of - watched)

    def _open_budgets(self, now: datetime, commands: list[Command]) -> None:
        """Watch the budgets of the namespaces that have pods to move. If there are many, watch all."""
        self._budgets.namespaces = self._budgets.namespaces.union(
            *(self._drains[node].needs.budgets_of for node in self._live)
        )
        wanted = self._watched_namespaces() or {""}
        if "" in wanted and self._budgets.watches:
            self._unwatch_budgets(commands)
            self._pdbs.forget(broken=self._pdbs.broken)
        for namespace in sorted(wanted.difference(self._budgets.watches.values())):
            self._number += 1
            self._budgets.watches[self._number] = namespace
            self._budgets.unlisted.add(self._number)
            commands.append(WatchBudgets(self._number, namespace))
        self._budgets.due = now + self.limits.reread_every

    def _watched_namespaces(self) -> frozenset[str]:
        """Return the namespaces whose budgets are watched. If there is none, those of all are."""
        few = len(self._budgets.namespaces) <= self.limits.namespaces
        return self._budgets.namespaces if few else frozenset()

    def _unwatch_budgets(self, commands: list[Command]) -> None:
        commands += [Unwatch(watch) for watch in sorted(self._budgets.watches)]
        self._budgets.watches.clear()
        self._budgets.unlisted.clear()
        self._budgets.due = None

    def _close(self, commands: list[Command]) -> None:
        """Stop the watches of drains that have ended."""
        for node in [node for node in self._live if not self._drains[node].running]:
            self._live.discard(node)
            self._touched.add(node)
            self._ended += 1
            self._unwatch(node, commands)
        if not self.running() and self._budgets.watches:
            self._unwatch_budgets(commands)
            self._pdbs.forget()
            self._budgets.namespaces = frozenset()

    def _unwatch(self, node: str, commands: list[Command]) -> None:
        self._broken.reopen.pop(node, None)
        watch = self._watches.pop(node, None)
        if watch is not None:
            commands.append(Unwatch(watch))

    def _dirty_waiting(self, keys: Iterable[str]) -> None:
        wanted = set(keys)
        if wanted:
            self._dirty.update(
                node for node, one in self._drains.items() if not wanted.isdisjoint(one.needs.refused_by)
            )

    def _clock_went_back(self, now: datetime) -> None:
        self._pdbs.hurry(now)
        self._quiet_until = None
        self._budgets.due = min(self._budgets.due, now) if self._budgets.due is not None else None
        self._broken.reopen = {node: min(at, now) for node, at in self._broken.reopen.items()}
        for drain in self._drains.values():
            drain.hurry(now)


def _progress(drain: NodeDrain) -> DrainProgress:
    order = drain.order
    try:
        return drain.progress()
    except Exception as error:  # noqa: BLE001 - one drain's data harms that drain only
        problem = internal(f"the progress of node {order.node} can't be computed", error)
        return DrainProgress(
            order.node, order.uid, drain.phase, error=drain.error or problem, finished=drain.finished
        )
