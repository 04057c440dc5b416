"""Which drains are looked at next, and in which order, without a look at all of them.

A step costs what it touches: a drain is found by what it waits for. Drains have positions, in the order in
which they were started, which is the order of the plan.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, KeysView
from datetime import datetime
from itertools import islice
from typing import Generic, TypeVar

from reconciler.drain.drainer.node_drain import NodeDrain
from reconciler.drain.drainer.shared import PdbTracker, Places

Key = TypeVar("Key")


class Wakes(Generic[Key]):
    """The moments (UTC) at which something is due, by key; the first is found without a look at others."""

    def __init__(self) -> None:
        """Start without a moment."""
        self._at: dict[Key, datetime] = {}
        self._heap: list[tuple[datetime, int, Key]] = []
        self._count = 0

    def put(self, key: Key, at: datetime | None) -> None:
        """Set the moment of a key; None: it has none."""
        if at is None:
            self._at.pop(key, None)
        elif self._at.get(key) != at:
            self._at[key] = at
            self._count += 1
            heapq.heappush(self._heap, (at, self._count, key))
            if len(self._heap) > 2 * len(self._at) + 64:
                # Most of the moments have been replaced by others.
                self._heap = [entry for entry in self._heap if self._at.get(entry[2]) == entry[0]]
                heapq.heapify(self._heap)

    def first(self) -> datetime | None:
        """Return the first moment, None if there is none."""
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: datetime) -> list[Key]:
        """Return the keys whose moments have come, and forget these moments."""
        keys = []
        while (first := self.first()) is not None and first <= now:
            key = heapq.heappop(self._heap)[2]
            del self._at[key]
            keys.append(key)
        return keys

    def hurry(self, now: datetime) -> None:
        """Have no moment in the future, because the clock went back."""
        for key, at in list(self._at.items()):
            self.put(key, min(at, now))

    def __contains__(self, key: object) -> bool:
        """Whether the key has a moment."""
        return key in self._at

    def clear(self) -> None:
        """Forget all moments."""
        self._at.clear()
        self._heap.clear()


class Waiting:
    """The positions of the drains that wait for something, by its key."""

    def __init__(self) -> None:
        """Start without a drain."""
        self._positions: dict[str, list[int]] = {}
        self._keys: dict[int, frozenset[str]] = {}

    def note(self, position: int, keys: set[str] | frozenset[str]) -> None:
        """Note what the drain at this position waits for now."""
        before = self._keys.get(position, frozenset())
        if before == keys:
            return
        for key in before - keys:
            line = self._positions[key]
            del line[bisect_right(line, position) - 1]
            if not line:
                del self._positions[key]
        for key in keys - before:
            insort(self._positions.setdefault(key, []), position)
        self._keys[position] = frozenset(keys)

    @property
    def keys(self) -> KeysView[str]:
        """Everything that a drain waits for."""
        return self._positions.keys()

    def after(self, key: str, position: int) -> Iterator[int]:
        """Yield the positions behind this one that wait for the key, in order."""
        line = self._positions.get(key, [])
        for index in range(bisect_right(line, position), len(line)):
            yield line[index]


class Slots:
    """Who holds a slot, and the line of those that wait for one."""

    def __init__(self) -> None:
        """Start with all slots free."""
        self._held: set[str] = set()
        self._line: dict[str, int] = {}
        self._widths: Counter[int] = Counter()

    def note(self, drain: NodeDrain) -> None:
        """Note whether the drain holds a slot or waits for one."""
        node = drain.order.node
        if drain.running and drain.slot.held:
            self._held.add(node)
        else:
            self._held.discard(node)
        wanted = (drain.order.slots or 0) if drain.running and drain.slot.awaited else None
        if self._line.get(node) == wanted:
            return
        before = self._line.get(node)
        if before is not None:
            self._widths[before] -= 1
            self._widths += Counter()
        if wanted is None:
            del self._line[node]
        else:
            self._line[node] = wanted
            self._widths[wanted] += 1

    def is_free(self, drain: NodeDrain) -> bool:
        """Return whether there is a slot for the drain, after those that wait for one for longer."""
        slots, used = drain.order.slots, len(self._held)
        if slots is None or drain.slot.held:
            return True
        if drain.order.node not in self._line:
            return used + len(self._line) < slots
        for node in self._line:
            if node == drain.order.node or used >= slots:
                break
            used += 1
        return used < slots

    def next_in_line(self) -> list[str]:
        """Return who takes a slot now: it is free, and all before in the line have one or take one."""
        used, widest = len(self._held), max(self._widths, default=0)
        found = []
        for ahead, (node, slots) in enumerate(self._line.items()):
            if used + ahead >= widest:
                break
            if used + ahead < slots:
                found.append(node)
        return found


class Turns:
    """The drains to look at in the next step.

    `dirty` are those for which something has changed, and `wakes` when they are looked at anyway. Others wait
    for a place for a write, by namespace, or for a budget. `budgets_of` need the budgets of a namespace.
    """

    def __init__(self) -> None:
        """Start without drains."""
        self.dirty: set[str] = set()
        self.wakes: Wakes[str] = Wakes()
        self.slots = Slots()
        self.budgets_of = Waiting()
        self._starved, self._refused = Waiting(), Waiting()
        self._places_freed = False
        self._released: set[str] = set()
        self._nodes: list[str] = []
        self._positions: dict[str, int] = {}

    def note(self, drain: NodeDrain) -> None:
        """Note what the drain waits for now. Call it after everything that may have changed that."""
        node = drain.order.node
        position = self._positions.setdefault(node, len(self._nodes))
        if position == len(self._nodes):
            self._nodes.append(node)
        needs, nothing = drain.needs, frozenset[str]()
        self._starved.note(position, needs.places if drain.running else nothing)
        self._refused.note(position, needs.refused_by if drain.running else nothing)
        self.budgets_of.note(position, needs.budgets_of if drain.running else nothing)
        self.wakes.put(node, drain.alarm.wake)
        self.slots.note(drain)

    def in_order(self, nodes: Iterable[str]) -> list[str]:
        """Return these nodes in the order in which their drains were started."""
        return sorted(nodes, key=self._positions.__getitem__)

    def place_freed(self) -> None:
        """Note that a write was answered: another one may be sent in the next step."""
        self._places_freed = True

    def released(self, budgets: frozenset[str] | set[str]) -> None:
        """Note that pods may no longer have to wait for these budgets."""
        self._released |= budgets

    def take(self, pdbs: PdbTracker, places: Places | None) -> Iterator[str]:
        """Yield the nodes whose drains are to be looked at, in their order, until nothing is left for anyone.

        Each drain has one turn. Those that wait for a place or a budget have it only while there is one: what
        the drains before have taken is not offered to those behind.
        """
        dirty = [self._positions[node] for node in self.in_order(self.dirty)]
        freed, released = self._places_freed, self._released
        self.dirty, self._places_freed, self._released = set(), False, set()
        index, last = 0, -1
        while True:
            turns = dirty[index : index + 1]
            if places is not None and freed:
                # For each namespace, the next position that would find a place.
                for namespace in filter(places.open_to, self._starved.keys):
                    behind = self._starved.after(namespace, last)
                    fitting = (each for each in behind if places.has_room(self._nodes[each], namespace))
                    turns += islice(fitting, 1)
            for budget in released:
                if not pdbs.is_busy(budget):
                    turns += islice(self._refused.after(budget, last), 1)
            if not turns:
                return
            last = min(turns)
            index += dirty[index : index + 1] == [last]
            yield self._nodes[last]
