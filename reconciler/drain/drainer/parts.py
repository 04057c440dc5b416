"""What the drain of one node keeps between its turns.

Its pods and those that come back, the reads of its cordon, its volumes, its slot, the attempt before, what it
waits for, the requests that are under way, and when it is looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from operator import attrgetter

from msgspec import Struct, field

from reconciler.drain.filters import NO_KEY, Action, PodDeleteStatus, QueueKey, queue_key
from reconciler.model.drains import MOST_RETURNS, MOST_SEEN, CameBack, Coming, Refused, Spell, coming
from reconciler.model.pod import Pod
from reconciler.model.values import replace

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

TRY_AGAIN = timedelta(minutes=1)
"""The first pause after which a drain evicts again the new pods of a namespace that sends too many."""


class Returns(Struct):
    """What is known of the pods that come to a node during its drain, over all attempts at it.

    They are counted by their owners, and by their namespaces: an owner with another name costs nothing.
    `left` has the UIDs of the pods whose owner puts another one there after each eviction; they are not
    evicted any more. `begun` is when the first attempt began (UTC; None: not known). `tries` is when the pods
    of a namespace that sends too many are evicted again (UTC).
    """

    begun: datetime | None = None
    left: set[str] = field(default_factory=set)
    tries: dict[str, datetime] = field(default_factory=dict)
    _shown: dict[str, CameBack] = field(default_factory=dict)
    _too_many: dict[str, Coming] = field(default_factory=dict)
    _evicted: set[str] = field(default_factory=set)
    _first: Counter[str] = field(default_factory=Counter)
    _back: Counter[str] = field(default_factory=Counter)
    _last: dict[str, datetime] = field(default_factory=dict)
    _known: dict[str, datetime] = field(default_factory=dict)
    _before: frozenset[str] = frozenset()

    @staticmethod
    def after(returned: Iterable[CameBack], begun: datetime | None) -> Returns:
        """Go on from what earlier processes have counted."""
        counts = Returns(begun)
        for owner in returned:
            counts._first[owner.of], counts._back[owner.of] = owner.first, owner.times
            counts._last[owner.of] = owner.last
        counts._known = dict(counts._last)
        for key in counts._known:
            counts._show(key)
        return counts

    @property
    def counted(self) -> tuple[CameBack, ...]:
        """What another process has to know: the owners and namespaces whose pods came most often."""
        came = (back for back in self._shown.values() if back.times and back.of in self._last)
        most = sorted(came, key=lambda back: (-back.times, back.of))
        return tuple(sorted(most[:MOST_SEEN], key=lambda back: back.of))

    @property
    def coming(self) -> tuple[Coming, ...]:
        """The namespaces from which too many new pods came, sorted."""
        return tuple(self._too_many[namespace] for namespace in sorted(self._too_many))

    def continue_after(self, former: Returns, seen: frozenset[str]) -> None:
        """Count on from an attempt that has ended; `seen` are the UIDs of the pods that it had to move."""
        self.left, self._evicted = set(former.left), set(former._evicted)
        self._first, self._back, self._before = former._first.copy(), former._back.copy(), seen
        self._last, self._known = dict(former._last), former._known
        self._shown, self._too_many = dict(former._shown), dict(former._too_many)
        self.tries = dict(former.tries)

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
            self._show(owner)
            if not young:
                return
        self._count(owner, created, at_start=at_start)
        if pod.spec.tolerates_cordon or self._back[owner] > MOST_RETURNS * self._first[owner]:
            self.left.add(pod.uid)

    def is_late(self, pod: Pod, *, at_start: bool) -> bool:
        """Whether a pod came after the drain had begun: by the clock of the API server, which made it.

        `at_start`, whether it was there when the drain began, counts where one of the two moments is missing.
        """
        if self.begun is None or pod.created is None:
            return not at_start
        created = pod.created.replace(microsecond=0)
        return created > self.begun or (created == self.begun and not at_start)

    def is_too_many(self, pod: Pod, *, late: bool, at_start: bool) -> bool:
        """Count a pod in its namespace that has to go, when it is seen first; return whether it stays."""
        namespace = pod.namespace
        if late and pod.uid not in self._before:
            created = pod.created.replace(microsecond=0) if pod.created else None
            self._count(namespace, created, at_start=at_start)
        elif not late and namespace not in self._known and pod.uid not in self._before:
            self._first[namespace] += 1
            self._show(namespace)
        return late and namespace in self._too_many

    def _count(self, key: str, created: datetime | None, *, at_start: bool) -> None:
        """Count a pod of an owner or a namespace that came to the node, unless an earlier process has.

        Of what is there when this process begins, that one has counted what is no younger than its last.
        """
        if at_start and created is not None and key in self._known and created <= self._known[key]:
            return
        self._back[key] += 1
        if created is not None:
            self._last[key] = max(created, self._last.get(key, created))
        self._show(key)

    def _show(self, key: str) -> None:
        """Note what is shown of a count. One that is too high already is rounded, so few writes repeat it."""
        counted = CameBack(key, self._first[key], self._back[key], self._last.get(key, _LONG_AGO))
        if counted.too_many:
            rounded = 1 << (counted.times.bit_length() - 1)
            counted = replace(counted, times=max(counted.evicted + 1, rounded))
        before = self._shown.get(key)
        same = before is not None and (before.first, before.times) == (counted.first, counted.times)
        if same and counted.too_many:
            return
        self._shown[key] = counted
        if counted.is_namespace:
            self._too_many.pop(key, None)
            self._too_many.update({one.namespace: one for one in coming([counted])})

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
    were there at the start of the drain. A `late` one was created after the drain had begun: it holds no
    slot, and its end is no progress. It is `too_many` if it stays, because its namespace sends so many.
    `denied_by` names a webhook while its denial is the last answer, and
    `denied_since` is when the first denial came (UTC). `refused` is what has refused its eviction, and how
    often.
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
    late: bool = False
    too_many: bool = False
    refused: tuple[Refused, ...] = ()
    _key_of: PodDeleteStatus | None = None
    _key: QueueKey = NO_KEY

    @property
    def pod(self) -> Pod:
        """The last known state of the pod."""
        return self.judged.pod

    @property
    def remains(self) -> bool:
        """Whether the drain must wait for it."""
        if self.judged.action is Action.KEEP:
            return False
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
        """Note that a pod is gone; return whether it was known, and no late one."""
        known = self.tracked.pop(uid, None)
        self.returns.gone(uid)
        self.gone.add(uid)
        self.gone_since_read.add(uid)
        return known is not None and not known.late

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
        self.returns.tries = {namespace: min(at, now) for namespace, at in self.returns.tries.items()}
        for tracked in self.tracked.values():
            tracked.hurry(now)


class CordonReads(Struct):
    """The reads of the node: how many were sent, and what the last answer that came showed.

    `seen_at` is when the read was sent that showed the cordon, None if the node is not known to have it.
    `asked_at` is when the read was sent that has no answer yet, `for_late` whether only late pods need it,
    and `ready` the node's condition.
    """

    seen_at: datetime | None = None
    asked_at: datetime | None = None
    for_late: bool = False
    reads: int = 0
    last_read: int = 0
    ready: bool | None = None

    def begin(self, now: datetime, *, for_late: bool) -> None:
        """Note that the node is read."""
        self.asked_at, self.for_late = now, for_late
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


class Holding(Struct):
    """Which budgets refuse evictions, and for how long they have: `before` in spells that are over."""

    before: dict[str, timedelta] = field(default_factory=dict)
    since: dict[str, datetime] = field(default_factory=dict)

    def note(self, budgets: Set[str], now: datetime) -> None:
        """Note that these refuse evictions now, and no others."""
        for budget in self.since.keys() - budgets:
            spell = max(now - self.since.pop(budget), timedelta())
            self.before[budget] = self.before.get(budget, timedelta()) + spell
        for budget in budgets:
            # The clock may go back.
            self.since[budget] = min(self.since.get(budget, now), now)

    @property
    def spells(self) -> tuple[Spell, ...]:
        """Those of each budget, sorted."""
        names = sorted({*self.before, *self.since})
        return tuple(Spell(name, self.before.get(name, timedelta()), self.since.get(name)) for name in names)


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
    """The writes: about which pods they have no answer yet, which were evicted, and what escalations did.

    `in_flight` are UIDs without those of late pods, `evicted` all. `refused_since` is since when evictions
    are refused in a namespace.
    """

    in_flight: set[str] = field(default_factory=set)
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
