"""The pods that come back to a cordoned node: their owner puts another one there after each eviction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import Enum, auto
from operator import attrgetter

from msgspec import Struct, field

from reconciler.drain.filters import NO_KEY, Action, PodDeleteStatus, QueueKey, queue_key
from reconciler.model.drains import MOST_SEEN, CameBack
from reconciler.model.pod import Pod

MOST = 3
"""How often a pod may come back and be evicted again, if it does not tolerate the cordon.

A scheduler that has not seen the cordon yet can put one there. A Deployment with `spec.nodeName` in its
template, and a scheduler that ignores cordons, put each new pod there.
"""


class Returns(Struct):
    """What is known of the owners whose pods a drain has evicted, over all attempts at the node.

    `left` has the UIDs of the pods that came back and are not evicted any more. `begun` is when the first
    attempt began (UTC; None: not known).
    """

    begun: datetime | None = None
    left: set[str] = field(default_factory=set)
    _evicted: set[str] = field(default_factory=set)
    _first: Counter[str] = field(default_factory=Counter)
    _back: Counter[str] = field(default_factory=Counter)
    _last: dict[str, datetime] = field(default_factory=dict)
    _known: frozenset[str] = frozenset()
    _before: frozenset[str] = frozenset()

    @staticmethod
    def after(returned: Iterable[CameBack], begun: datetime | None) -> Returns:
        """Go on from what earlier processes have counted."""
        counts = Returns(begun)
        for owner in returned:
            counts._first[owner.of], counts._back[owner.of] = owner.first, owner.times
            counts._last[owner.of] = owner.last
        counts._known = frozenset(counts._last)
        return counts

    @property
    def counted(self) -> tuple[CameBack, ...]:
        """What another process has to know: the owners whose pods came back most often."""
        most = sorted((-times, owner) for owner, times in self._back.items() if owner in self._last)
        return tuple(
            sorted(
                (
                    CameBack(owner, self._first[owner], -times, self._last[owner])
                    for times, owner in most[:MOST_SEEN]
                ),
                key=lambda back: back.of,
            )
        )

    def continue_after(self, former: Returns, seen: frozenset[str]) -> None:
        """Count on from an attempt that has ended; `seen` are the UIDs of the pods that it had to move."""
        self.left, self._evicted = set(former.left), set(former._evicted)
        self._first, self._back, self._before = former._first.copy(), former._back.copy(), seen
        self._last, self._known = dict(former._last), former._known

    def sent(self, pod: Pod) -> None:
        """Note that the eviction of a pod is sent. Its replacement may be seen before the answer."""
        self._evicted.add(_owner(pod))

    def arrived(self, pod: Pod, *, at_start: bool) -> None:
        """Note a pod that is seen for the first time. `at_start`: it was there when the drain began.

        On a node that another process has begun to drain, a pod that is younger than the drain came back.
        """
        owner, created = _owner(pod), pod.created.replace(microsecond=0) if pod.created else None
        if pod.uid in self._before:
            return
        young = at_start and self.begun is not None and created is not None and created > self.begun
        known = owner in self._known
        if not known and (owner not in self._evicted or (at_start and not self._before)):
            self._first[owner] += 1
            if not young:
                return
        if not known or created is None or created > self._last[owner]:
            self._back[owner] += 1
            if created is not None:
                self._last[owner] = max(created, self._last.get(owner, created))
        if pod.spec.tolerates_cordon or self._back[owner] > MOST * self._first[owner]:
            self.left.add(pod.uid)

    def gone(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self.left.discard(uid)


def _owner(pod: Pod) -> str:
    """Return the key of the owner. The owner of a pod without one is whoever creates it by the same name."""
    return pod.key if pod.owner is None else f"{pod.namespace} {pod.owner.uid or pod.owner}"


def not_after(now: datetime, moment: datetime | None) -> datetime | None:
    """Return the moment, or now if it is in the future."""
    return min(moment, now) if moment is not None else None


class Stage(Enum):
    """The progress of one pod."""

    QUEUED = auto()
    IN_FLIGHT = auto()
    LEAVING = auto()
    RESTARTED = auto()


class Tracked(Struct):
    """One pod of the node, and the results of its requests.

    `looks_before` is how many reads of the node were sent before the pod appeared. It is 0 for the pods that
    were there at the start of the drain. `denied_by` names a webhook while its denial is the last answer, and
    `denied_since` is when the first denial came (UTC).
    """

    judged: PodDeleteStatus
    stage: Stage = Stage.QUEUED
    retry_at: datetime | None = None
    failures: int = 0
    because: str = ""
    budget: str = ""
    denied_by: str = ""
    denied_since: datetime | None = None
    asked_at: datetime | None = None
    no_restart: str = ""
    hastened: bool = False
    forced: bool = False
    looks_before: int = 0
    _key_of: PodDeleteStatus | None = None
    _key: QueueKey = NO_KEY

    @property
    def pod(self) -> Pod:
        """The last known state of the pod."""
        return self.judged.pod

    @property
    def remains(self) -> bool:
        """Whether the drain must wait for it."""
        return self.stage is not Stage.QUEUED or self.judged.goes or self.judged.action is Action.WAIT

    def hurry(self, now: datetime) -> None:
        """Have no moment in the future, because the clock went back."""
        self.retry_at = not_after(now, self.retry_at)
        self.asked_at = not_after(now, self.asked_at)
        self.denied_since = not_after(now, self.denied_since)

    @property
    def key(self) -> QueueKey:
        """The place in the order of evictions, which is asked for after every event."""
        if self._key_of is not self.judged:
            self._key_of, self._key = self.judged, queue_key(self.judged)
        return self._key


class PodsOnNode(Struct):
    """The pods of the node, by UID, as a watch and lists show them.

    `had` are all that the drain had to wait for, and `gone` those that never come back. `in_this_watch` are
    those that the watch has shown since it began, `seen_since_read` and `gone_since_read` what it reported
    since the last list was requested. `confirmed` says that a list has shown no pod, and `looked` that the
    drain has seen what there is to evict.
    """

    tracked: dict[str, Tracked] = field(default_factory=dict)
    had: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    listed: bool = False
    at_start: bool = True
    in_this_watch: set[str] = field(default_factory=set)
    listing: bool = False
    read_at: datetime | None = None
    seen_since_read: set[str] = field(default_factory=set)
    gone_since_read: set[str] = field(default_factory=set)
    confirmed: bool = False
    looked: bool = False
    returns: Returns = field(default_factory=Returns)

    def remaining(self) -> list[Tracked]:
        """Return the pods for which the drain must wait, in the order of evictions."""
        remaining = (tracked for tracked in self.tracked.values() if tracked.remains)
        return sorted(remaining, key=attrgetter("key"))

    def remove(self, uid: str) -> bool:
        """Note that a pod is gone; return whether it was known."""
        known = self.tracked.pop(uid, None) is not None
        self.returns.gone(uid)
        self.gone.add(uid)
        self.gone_since_read.add(uid)
        return known

    def forget_all_but(self, there: set[str]) -> None:
        """Forget the pods that are not among these UIDs."""
        for uid in [uid for uid in self.tracked if uid not in there]:
            del self.tracked[uid]
            self.returns.gone(uid)

    def begin_list(self, now: datetime) -> None:
        """Note that a list of the pods is requested."""
        self.listing, self.read_at = True, now
        self.seen_since_read.clear()
        self.gone_since_read.clear()

    def lose_sight(self) -> None:
        """Handle the end of the watch."""
        self.listed = self.at_start = False
        self.in_this_watch.clear()

    def hurry(self, now: datetime) -> None:
        """Have no moment in the future, because the clock went back."""
        self.read_at = not_after(now, self.read_at)
        for tracked in self.tracked.values():
            tracked.hurry(now)


class CordonReads(Struct):
    """The reads of the node: how many were sent, and what the last answer that came showed.

    `seen_at` is when the read was sent that showed the cordon, None if the node is not known to have it.
    `asked_at` is when the read was sent that has no answer yet, and `ready` the node's condition.
    """

    seen_at: datetime | None = None
    asked_at: datetime | None = None
    reads: int = 0
    last_read: int = 0
    ready: bool | None = None

    def begin(self, now: datetime) -> None:
        """Note that the node is read."""
        self.asked_at = now
        self.reads += 1

    def answered(self) -> datetime | None:
        """Return when the read was sent that has an answer now."""
        asked, self.asked_at = self.asked_at, None
        return asked

    def shows(self, tracked: Tracked) -> bool:
        """Whether the node was seen cordoned by a read that was sent after the pod appeared."""
        return self.last_read > tracked.looks_before


class Volumes(Struct):
    """The wait for the volumes of a node without pods; `left` are those that are still attached."""

    asked: bool = False
    next_at: datetime | None = None
    empty_since: datetime | None = None
    left: tuple[str, ...] = ()

    def hurry(self, now: datetime) -> None:
        """Have no moment in the future, because the clock went back."""
        self.next_at = not_after(now, self.next_at)
        self.empty_since = not_after(now, self.empty_since)


class Slot(Struct):
    """The right of the drain to evict: `free` if it may take one, `awaited` if it can't go on without.

    `blocked_since` is when nothing could leave any more, `blocked_at` when that will be so. `progress_at` is
    the last progress, and `sent_at` the last write.
    """

    free: bool = True
    held: bool = False
    awaited: bool = False
    blocked_since: datetime | None = None
    blocked_at: datetime | None = None
    progress_at: datetime | None = None
    sent_at: datetime | None = None

    def take(self) -> bool:
        """Take one if one is free; return whether the drain has one."""
        if not self.held:
            self.held, self.awaited = self.free, not self.free
        return self.held

    def hurry(self, now: datetime) -> None:
        """Have no moment in the future, because the clock went back."""
        self.progress_at = not_after(now, self.progress_at)
        self.sent_at = not_after(now, self.sent_at)
        self.blocked_since = not_after(now, self.blocked_since)


class Former(Struct):
    """What a run of the same attempt had that has ended before: its pods, and when it was done."""

    had: frozenset[str] = frozenset()
    evicted: frozenset[str] = frozenset()
    drained: datetime | None = None


class Needs(Struct):
    """What the drain waits for outside of the node.

    `places` are the namespaces for whose pods no place was free, and `refused_by` the budgets that allow no
    eviction now. `budgets` says that it needs to know the budgets of the namespaces `budgets_of`.
    """

    places: set[str] = field(default_factory=set)
    refused_by: set[str] = field(default_factory=set)
    budgets: bool = False
    budgets_of: frozenset[str] = frozenset()


class Requests(Struct):
    """The writes: how many have no answer yet, the UIDs of evicted pods, and what escalations did.

    `refused_since` is since when evictions are refused in a namespace.
    """

    in_flight: int = 0
    evicted: set[str] = field(default_factory=set)
    stages: dict[str, str] = field(default_factory=dict)
    refused_since: dict[str, datetime] = field(default_factory=dict)

    def hurry(self, now: datetime) -> None:
        """Have no moment in the future, because the clock went back."""
        self.refused_since = {namespace: min(at, now) for namespace, at in self.refused_since.items()}


class Alarm(Struct):
    """When the drain has to be looked at again: `wake` is the first of the moments that were asked for.

    After a failed read, nothing is read before `retry_at`.
    """

    wake: datetime | None = None
    moments: list[datetime] = field(default_factory=list)
    retry_at: datetime | None = None

    def due(self, at: datetime, now: datetime) -> bool:
        """Return whether `at` has come. If not, set a wake-up for it."""
        if at <= now:
            return True
        self.moments.append(at)
        return False

    def later(self, now: datetime) -> bool:
        """Whether the next read has to wait after one that failed."""
        if self.retry_at is None or self.due(self.retry_at, now):
            self.retry_at = None
            return False
        return True

    def hurry(self, now: datetime) -> None:
        """Wake now, because the clock went back."""
        self.retry_at = not_after(now, self.retry_at)
        self.wake = now
