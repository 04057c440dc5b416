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
from reconciler.drain.drainer.turns import Turns, Wakes
from reconciler.model.drains import DrainOrder, DrainProgress, Phase
from reconciler.model.errors import TooManyRequests, Unreachable
from reconciler.model.pod import Pod
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

    reopen: Wakes[str | None] = field(default_factory=Wakes)
    failures: dict[str | None, int] = field(default_factory=dict)


class _Shown(Struct):
    """What the process shows of drains: their last progress, and which have changed since.

    `ended` is how many have ended.
    """

    progress: dict[str, DrainProgress] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    ended: int = 0


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
        self._turns = Turns()
        self._last: datetime | None = None
        self._shown = _Shown()
        self._live: set[str] = set()
        self._over: set[str] = set()

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
        self._advance(now, commands)
        self._close(commands)
        return tuple(commands)

    def next_wake(self) -> datetime | None:
        """Return when the next Tick is due if nothing else happens (UTC). None: never."""
        times = (self._turns.wakes.first(), self._broken.reopen.first(), self._budgets.due, self._quiet_until)
        return min((at for at in times if at is not None), default=None)

    def watched_pods(self, node: str, uid: str, now: datetime) -> tuple[Pod, ...] | None:
        """Return the pods of the node with this UID, as its drain knows them now, None if it does not."""
        drain = self._drains.get(node)
        return drain.watched_pods(now) if drain is not None and drain.order.uid == uid else None

    def progress(self) -> Mapping[str, DrainProgress]:
        """Return the progress of each drain by node. A drain that has ended stays until the next one."""
        return {node: self._progress_of(node) for node in sorted(self._drains)}

    def touched(self, *, running: bool = True) -> tuple[DrainProgress, ...]:
        """Return the progress of the drains that have changed since the last call.

        Without `running`, only those that have ended are shown, and the others wait for a later call.
        """
        shown = self._shown.touched if running else self._shown.touched - self._live
        self._shown.touched = self._shown.touched - shown
        return tuple(self._progress_of(node) for node in sorted(shown))

    def _progress_of(self, node: str) -> DrainProgress:
        progress = self._shown.progress.get(node)
        if progress is None:
            progress = self._shown.progress[node] = _progress(self._drains[node])
        return progress

    def ended(self) -> int:
        """Return how many drains have ended since the start."""
        return self._shown.ended

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
            drain.number = self._number
            drain.requests.in_flight.clear()
            self._note(drain)
        self._pdbs, self._places = PdbTracker(), Places(self.limits)
        self._broken.reopen.clear()
        self._turns.dirty.clear()
        self._quiet_until = None
        commands: list[Command] = []
        self._close(commands)
        return tuple(commands)

    def _take_safely(self, event: Event, now: datetime, commands: list[Command]) -> None:
        """Handle an event. An exception fails the drain that the event is about, and no other."""
        match event:
            case Start(order):
                node: str | None = order.node
            case WriteDone(write):
                node = write.node
            case BudgetNews() | Tick():
                node = None
            case _:
                node = event.node
        try:
            self._take(event, now, commands)
        except Exception as error:
            if isinstance(event, WriteDone):
                self._pdbs.release(event.write.pod.uid)
            drain = self._drains.get(node) if node is not None else None
            if drain is None:
                # The core's own state may be wrong, so its caller ends all drains.
                raise
            self._fail(drain, error, now)
        if node is not None and node in self._drains:
            self._note(self._drains[node])

    def _note(self, drain: NodeDrain) -> None:
        """Note what has changed by an event or a turn of the drain."""
        node = drain.order.node
        self._turns.note(drain)
        self._shown.progress.pop(node, None)
        if not drain.running and node in self._live:
            self._over.add(node)

    def _fail(self, drain: NodeDrain, error: Exception, now: datetime) -> None:
        for uid in drain.uids():
            # Another drain must not wait for an eviction that is never sent.
            self._pdbs.release(uid)
        drain.end(Phase.FAILED, now, internal(f"the drain of node {drain.order.node} failed", error))
        self._turns.dirty.add(drain.order.node)

    def _take(self, event: Event, now: datetime, commands: list[Command]) -> None:
        match event:
            case Start(order):
                self._start(order, commands)
            case Stop(node, because):
                if node in self._drains:
                    self._drains[node].end(Phase.STOPPED, now, because)
            case PodNews(node, watch, change):
                if self._watches.get(node) == watch:
                    self._broken.failures.pop(node, None)
                    self._drains[node].see(change, now)
                    self._turns.dirty.add(node)
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

    def _start(self, order: DrainOrder, commands: list[Command]) -> None:
        former = self._drains.get(order.node)
        if former is not None and former.running and former.order.uid == order.uid:
            # The attempt continues, and its timeout counts from its start. Most orders only repeat the last.
            if former.order != order:
                former.order = order
                self._turns.dirty.add(order.node)
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
        self._turns.dirty.add(order.node)

    def _answered(self, event: NodeSeen | PodsSeen | AttachmentsSeen, now: datetime) -> None:
        drain = self._drains.get(event.node)
        if drain is None or drain.number != event.drain:
            return
        self._turns.dirty.add(event.node)
        match event:
            case NodeSeen(_, _, found, error, at):
                if error is None:
                    drain.see_node(found, now, at)
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
                for each in self._drains.values():
                    each.end(Phase.STOPPED, now, stopped)
                    self._note(each)
            self._turns.dirty.add(write.node)
            if isinstance(event.error, TooManyRequests) and throttles(event.error):
                self._quiet_until = now + self.limits.asked_wait(event.error.retry_after)
                self._places.one_at_a_time = True
            elif self._places.one_at_a_time and self._quiet_until is None:
                if not isinstance(event.error, Unreachable):
                    self._places.one_at_a_time = False
                self._turns.dirty.update(self._live)
        self._turns.place_freed()
        self._turns.released(released)

    def _budget_changed(self, event: BudgetNews) -> None:
        if not isinstance(event.change, Listed):
            key = self._pdbs.see(event.change)
            self._turns.released({key} if key is not None else set())
            return
        if event.watch not in self._budgets.unlisted:
            return
        self._budgets.unlisted.discard(event.watch)
        if not self._budgets.unlisted:
            self._pdbs.only = self._watched_namespaces()
            self._pdbs.see(event.change)
            self._broken.failures.pop(None, None)
            self._turns.dirty.update(self._live)

    def _watch_ended(self, event: WatchEnded, now: datetime, commands: list[Command]) -> None:
        if event.node is None:
            if event.watch not in self._budgets.watches:
                return
            del self._budgets.watches[event.watch]
            self._unwatch_budgets(commands)
            self._pdbs.forget(broken=True)
            self._turns.dirty.update(self._live)
        elif self._watches.get(event.node) != event.watch:
            return
        else:
            self._watches.pop(event.node)
            self._drains[event.node].pods.lose_sight()
        failures = self._broken.failures.get(event.node, 0)
        self._broken.failures[event.node] = failures + 1
        pause = self.limits.retry.pause(failures)
        self._broken.reopen.put(event.node, now + pause)

    def _advance(self, now: datetime, commands: list[Command]) -> None:
        # What is due by time alone.
        if self._quiet_until is not None and self._quiet_until <= now:
            self._quiet_until = None
            self._turns.dirty.update(self._live)
        if self._budgets.due is not None and (not self._budgets.unlisted or self._budgets.due <= now):
            # Without news the evictions are tried. The server still refuses those that a budget forbids.
            self._pdbs.broken = bool(self._budgets.unlisted)
            self._budgets.due = None
            self._turns.dirty.update(self._live)
        self._turns.dirty.update(self._turns.wakes.due(now))
        for node in self._broken.reopen.due(now):
            if node is None:
                if self.running():
                    self._open_budgets(now, commands)
            elif self._drains[node].running:
                self._number += 1
                self._watches[node] = self._number
                commands.append(WatchPods(node, self._number))

        places = self._places if self._quiet_until is None else None
        slots = self._turns.slots
        while True:
            self._turns.dirty.update(slots.next_in_line())
            for node in self._turns.take(self._pdbs, places):
                drain = self._drains[node]
                drain.slot.free = slots.is_free(drain)
                try:
                    commands += drain.advance(self._pdbs, places, now)
                except Exception as error:  # noqa: BLE001 - one drain's data harms that drain only
                    self._fail(drain, error, now)
                self._note(drain)
                self._shown.touched.add(node)
            if not self._turns.dirty and not slots.next_in_line():
                # Whoever was next in the line has taken a slot, or has left the line.
                break

        # A pod to move may be of a namespace whose budgets nobody watches yet.
        needed = self._turns.budgets_of.keys
        if needed and None not in self._broken.reopen:
            watched = self._watched_namespaces()
            if not self._budgets.watches or (watched and not needed <= watched):
                self._open_budgets(now, commands)

    def _open_budgets(self, now: datetime, commands: list[Command]) -> None:
        """Watch the budgets of the namespaces that have pods to move. If there are many, watch all."""
        self._budgets.namespaces = self._budgets.namespaces.union(self._turns.budgets_of.keys)
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
        over, self._over = self._over, set()
        for node in self._turns.in_order(over):
            if self._drains[node].running:
                continue
            self._live.discard(node)
            self._shown.touched.add(node)
            self._shown.ended += 1
            self._unwatch(node, commands)
        if not self.running() and self._budgets.watches:
            self._unwatch_budgets(commands)
            self._pdbs.forget()
            self._budgets.namespaces = frozenset()

    def _unwatch(self, node: str, commands: list[Command]) -> None:
        self._broken.reopen.put(node, None)
        watch = self._watches.pop(node, None)
        if watch is not None:
            commands.append(Unwatch(watch))

    def _clock_went_back(self, now: datetime) -> None:
        self._pdbs.hurry(now)
        self._quiet_until = None
        self._budgets.due = min(self._budgets.due, now) if self._budgets.due is not None else None
        self._broken.reopen.hurry(now)
        for drain in self._drains.values():
            drain.hurry(now)
            self._note(drain)


def _progress(drain: NodeDrain) -> DrainProgress:
    order = drain.order
    try:
        return drain.progress()
    except Exception as error:  # noqa: BLE001 - one drain's data harms that drain only
        problem = internal(f"the progress of node {order.node} can't be computed", error)
        return DrainProgress(
            order.node, order.uid, drain.phase, error=drain.error or problem, finished=drain.finished
        )
