"""The order for a drain, and its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from reconciler.model import limits
from reconciler.model.clocks import OwnTimes
from reconciler.model.keys import DEFAULT_PREFIX
from reconciler.model.limits import count_of, first_of
from reconciler.model.moments import shifted, to_text
from reconciler.model.pod import Pod
from reconciler.model.selector import EVERYTHING, LabelSelector
from reconciler.model.values import Name, Written, replace

MOST_NAMES = 5
"""Pods that stay on a node, by name: in a record, and in the sentence about them."""


MAY_BE_DENIED = timedelta(minutes=10)
"""How long a webhook may deny the eviction of a pod, by default: a live migration takes minutes."""


class Behavior(StrEnum):
    """The behavior of a pod rule, with the names of Cluster API (MachineDrainRule)."""

    DRAIN = "Drain"
    SKIP = "Skip"
    WAIT_COMPLETED = "WaitCompleted"


class PodRule(Struct, frozen=True):
    """One rule: which pods it selects, what happens to them, and in which order (lowest first).

    `namespaces` are names; `namespace_selector` selects by the labels of namespaces. If both are None, the
    rule applies to any namespace.
    """

    name: str
    pods: LabelSelector = EVERYTHING
    namespaces: frozenset[str] | None = None
    namespace_selector: LabelSelector | None = None
    behavior: Behavior = Behavior.DRAIN
    order: int = 0


class WaitLimit(Struct, frozen=True):
    """How long a pod's own label or annotation may keep a drain waiting for it.

    `longest` counts from `since` (UTC), the start of the node's maintenance. `deadline` (UTC) is when the
    platform takes the node, None where no event has a date.
    """

    since: datetime
    longest: timedelta
    deadline: datetime | None = None

    def ends(self, grace: timedelta) -> datetime:
        """Return when the wait for a pod ends: early enough for its grace period before the deadline."""
        limit = shifted(self.since, self.longest)
        return limit if self.deadline is None else min(limit, shifted(self.deadline, -grace))

    def reason(self, end: datetime) -> str:
        """Return which limit ends a wait at that moment: `drain.podsMayWait` or the deadline."""
        if self.deadline is None or end >= shifted(self.since, self.longest):
            return "drain.podsMayWait"
        return f"the platform takes the node at {to_text(self.deadline)}"


class HeldPods(Struct, frozen=True):
    """How long annotations of a pod hold its eviction (see `model/steps.py`), and what people call them."""

    called: str
    longest: timedelta


class PodWaits(Struct, frozen=True):
    """How long pods may keep a drain waiting.

    `own` limits the wait that a key on a pod asks for; None is no limit. `held` limits how long `pre-drain`
    annotations of a pod hold its eviction, None if they hold nothing; people call them `called`.
    """

    own: WaitLimit | None = None
    held: WaitLimit | None = None
    called: str = ""


def keeps_coming(namespace: str) -> str:
    """Return in words why new pods of a namespace stay."""
    return f"new pods keep coming from namespace {namespace}"


class Coming(Struct, frozen=True):
    """A namespace that keeps sending new pods to a cordoned node: `count` or more since its drain began."""

    namespace: str
    count: int

    def __str__(self) -> str:
        """Return it in words."""
        return f"{keeps_coming(self.namespace)}: {self.count} or more since the drain began"

    def words(self, node: str) -> str:
        """Return it in words, with who can end it, and how to find them."""
        shows = self.command(node)
        return f"{self}. They stay until somebody ends what creates them; see their owners: `{shows}`"

    def command(self, node: str) -> str:
        """Return the command that shows these pods, and their owners."""
        return f"kubectl get pods -n {self.namespace} --field-selector spec.nodeName={node} -o yaml"


class Comebacks(Struct, frozen=True):
    """Pods that come to the cordoned node after its drain has begun, and stay.

    They are those with a UID in `uids`, and of those that were created after `begun` (UTC; None: not known)
    the ones that tolerate the cordon, and the ones of a namespace from which too many came: `coming` has
    these namespaces.
    """

    begun: datetime | None = None
    uids: frozenset[str] = frozenset()
    coming: tuple[Coming, ...] = ()


class Grace(Struct, frozen=True):
    """The grace periods of evictions.

    `seconds` (--grace-period) replaces each pod's own, `longest` only caps it.
    """

    seconds: int | None = None
    longest: timedelta | None = None

    def capped(self, own: timedelta) -> timedelta:
        """Return a pod's own grace period, or the longest one."""
        return own if self.longest is None else min(own, self.longest)

    def requested(self, own: timedelta) -> int | None:
        """Return the grace period for the request of a pod, in seconds. None: the pod's own."""
        if self.seconds is not None or self.longest is None or self.longest >= own:
            return self.seconds
        return int(self.longest.total_seconds())


class Refusals(Struct, frozen=True):
    """Why a pod is kept, and what would let it go: the flag of kubectl by default, a setting in a pass."""

    empty_dir: str = "Pods with local storage (use --delete-emptydir-data to override)"
    unmanaged: str = "Pods that declare no controller (use --force to override)"


class DrainOptions(Struct, frozen=True):
    """How a drain treats pods; the flags of kubectl with the same meaning are in brackets.

    In a pass `strict` is False: a pod that is kept does not affect others. By hand it is True: one pod that
    must not be evicted refuses the whole drain, as with kubectl. `skip_terminating_after`
    (--skip-wait-for-delete-timeout) ignores pods whose deletion is older than that. `gone_daemonsets` are the
    `namespace/name` of owners that do not exist. Keys under `prefix` on a pod are for the reconciler.
    `refusals` are the reasons of pods that are kept. `ignore_holds`: a hold with `--now` does not stop the
    drain.
    """

    ignore_daemonsets: bool = True
    evict_empty_dir: bool = False
    evict_unmanaged: bool = False
    strict: bool = False
    grace: Grace = Grace()
    skip_terminating_after: timedelta | None = None
    pod_selector: LabelSelector | None = None
    use_delete: bool = False
    rules: tuple[PodRule, ...] = ()
    gone_daemonsets: frozenset[str] = frozenset()
    prefix: str = DEFAULT_PREFIX
    waits: PodWaits = PodWaits()
    refusals: Refusals = Refusals()
    ignore_holds: bool = False
    comebacks: Comebacks = Comebacks()


class Escalation(Struct, frozen=True):
    """What may be done when a drain does not finish; each part is off when None or False.

    `warn_after`: warn, and name the blocker. `delete_before_deadline`: delete, instead of evicting, each
    pod that would not be gone by `deadline` with its grace period. `force_stuck_after`: on a node that is
    not Ready, delete pods with grace period 0 when they still exist this long after their grace period.
    `force_late`: on every node, do that when they still exist one more grace period after it.
    """

    warn_after: timedelta | None = None
    delete_before_deadline: bool = False
    deadline: datetime | None = None
    force_stuck_after: timedelta | None = None
    force_late: bool = False


VOLUMES_AWAITED = timedelta(seconds=60)
"""The longest wait for volumes after the last pod."""

MOST_SEEN = 20
"""Pods, and namespaces, of which a record keeps since when they are refused: those that are longest."""


class Since(Struct, frozen=True):
    """Since when something is so of a pod, by its UID, or of a namespace (UTC)."""

    of: str
    at: datetime


Sinces = Annotated[tuple[Since, ...], Meta(max_length=MOST_SEEN)]


MOST_RETURNS = 3
"""How often a pod may come back and be evicted again, if it does not tolerate the cordon.

A scheduler that has not seen the cordon yet can put one there. A Deployment with `spec.nodeName` in its
template, and a scheduler that ignores cordons, put each new pod there.
"""

ARRIVALS = 10
"""How many new pods of a namespace a drain evicts at least, whoever owns them."""


class CameBack(Struct, frozen=True):
    """How often pods of one owner, or new pods of one namespace, came to the cordoned node.

    `of` is the key of the owner, or the name of the namespace. `first` is how many of its pods the drain has
    found there, `times` how many came since, at least. `last` is when the youngest of those was created
    (UTC): later ones are not counted yet.
    """

    of: str
    first: int
    times: int
    last: datetime

    @property
    def is_namespace(self) -> bool:
        """Whether it is about a namespace. The key of an owner has more than the name of one."""
        return not {" ", "/"} & set(self.of)

    @property
    def evicted(self) -> int:
        """How many are evicted at most."""
        return max(MOST_RETURNS * self.first, ARRIVALS if self.is_namespace else 0)

    @property
    def too_many(self) -> bool:
        """Whether the next ones stay."""
        return self.times > self.evicted


def coming(returned: Iterable[CameBack]) -> tuple[Coming, ...]:
    """Return the namespaces among these from which too many new pods came, sorted."""
    too_many = (Coming(one.of, one.times) for one in returned if one.is_namespace and one.too_many)
    return tuple(sorted(too_many, key=lambda one: one.namespace))


class Seen(Struct, frozen=True):
    """What a drain has seen, and what another process has to know to go on with it. All moments are UTC.

    `emptied` is since when only volumes keep the drain from its end, `blocked` since when no pod leaves.
    `denied` says of pods since when a webhook or a policy denies their eviction, `refused` of namespaces
    since when something other than a budget refuses evictions there. `returned` is about the owners whose
    pods came back most often, and the namespaces from which most new pods came.
    """

    emptied: datetime | None = None
    blocked: datetime | None = None
    denied: Sinces = ()
    refused: Sinces = ()
    returned: Annotated[tuple[CameBack, ...], Meta(max_length=MOST_SEEN)] = ()

    def believed(self, times: OwnTimes) -> Seen:
        """Return it without times in the future."""
        return Seen(
            times.maybe(self.emptied),
            times.maybe(self.blocked),
            tuple(Since(one.of, times.of(one.at)) for one in self.denied),
            tuple(Since(one.of, times.of(one.at)) for one in self.refused),
            tuple(replace(one, last=times.of(one.last)) for one in self.returned),
        )


def longest(since: Mapping[str, datetime]) -> tuple[Since, ...]:
    """Return those that are so for the longest time, in whole seconds, as a record keeps them."""
    kept = sorted((at.replace(microsecond=0), of) for of, at in since.items())[:MOST_SEEN]
    return tuple(Since(of, at) for at, of in kept)


class DrainOrder(Struct, frozen=True):
    """The order for one node's drain.

    `since` is the start of this attempt (UTC); `timeout` counts from it (None: no timeout). `own_pod` is
    the `namespace/name` of the pod in which we run, which is evicted last. `namespaces` are the labels of
    each namespace, for rules that select by them. `slots` is how many drains with such a limit may make
    progress at once. A drain without one (None) needs no slot and takes none from others. `may_be_denied` is
    how long a webhook may deny the eviction of a pod before the pod counts as blocked. `seen` is what earlier
    processes have seen of this attempt. `why` says who drains
    the node and for what, in words for the owners of its pods; its moments are in RFC 3339 and UTC. `case` is
    the start of the case that it belongs to (UTC; None: a person drains by hand), see `case_start`.
    """

    node: str
    uid: str
    since: datetime
    timeout: timedelta | None
    options: DrainOptions = field(default_factory=DrainOptions)
    escalation: Escalation = field(default_factory=Escalation)
    restart_singletons: bool = False
    node_ready: bool = True
    own_pod: str | None = None
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    slots: int | None = None
    may_be_denied: timedelta = MAY_BE_DENIED
    seen: Seen = Seen()
    why: str = ""
    case: datetime | None = None


MOST_REFUSERS = 5
"""Refusers of one pod that are told apart; further ones count as the last of these."""


class Refused(Struct, frozen=True):
    """How often the eviction of a pod was refused, and by what: `PDB shop/web`, a webhook, the API server.

    An eviction that is not sent, because a PodDisruptionBudget is known to refuse it, counts once.
    """

    by: str
    times: int = 1

    @staticmethod
    def counted(before: tuple[Refused, ...], by: str) -> tuple[Refused, ...]:
        """Return the counts after one more refusal."""
        if all(refused.by != by for refused in before):
            if len(before) < MOST_REFUSERS:
                return (*before, Refused(by))
            by = before[-1].by
        return tuple(
            replace(refused, times=refused.times + 1) if refused.by == by else refused for refused in before
        )


class Eviction(Struct, frozen=True):
    """A pod that was evicted, or `deleted`, and what has refused that before, as this process has seen it."""

    pod: Pod
    deleted: bool = False
    refused: tuple[Refused, ...] = ()


class Phase(StrEnum):
    """The phase of one drain."""

    RUNNING = "running"
    DRAINED = "drained"
    STOPPED = "stopped"
    TIMED_OUT = "timed out"
    FAILED = "failed"
    NODE_GONE = "node gone"


class Blocker(Struct, frozen=True):
    """Why one pod is still there.

    `pod` and `budget` are `namespace/name`; `budget` is empty if none refuses. `leaving`: the pod does not
    count as blocked yet, because the webhook that denies its eviction may have it moved.
    """

    pod: str
    because: str
    budget: str = ""
    leaving: bool = False


class KeptPods(Struct, frozen=True, rename={"names": "pods"}):
    """The pods that a finished drain left on its node: how many, and the first of them (`namespace/name`).

    `coming` are namespaces from which new pods kept coming: later ones stay, too.
    """

    count: Written[int] = 0
    names: Written[Annotated[tuple[str, ...], Meta(max_length=MOST_NAMES)]] = ()
    coming: Written[Annotated[tuple[Coming, ...], Meta(max_length=MOST_NAMES)]] = ()

    @staticmethod
    def of(blockers: Iterable[Blocker], coming: tuple[Coming, ...] = ()) -> KeptPods:
        """Return the pods of these blockers."""
        names = sorted(blocker.pod for blocker in blockers)
        return KeptPods(len(names), tuple(names[:MOST_NAMES]), coming[:MOST_NAMES])

    def words(self, node: str) -> str:
        """Return the result of the drain in words: `drained; 1 pod stays: shop/cache`."""
        return "; ".join(("drained", *self.left(node)))

    def left(self, node: str) -> Iterator[str]:
        """Yield in words what is left on the node: `1 pod stays: shop/cache`; nothing where nothing is."""
        if self.count:
            names = first_of(self.names, len(self.names), count=self.count)
            yield f"{count_of(self.count, 'pod', 'stay')}: {names}"
        yield from (sender.words(node) for sender in self.coming)


class SlotUse(Struct, frozen=True):
    """Whether a drain that runs uses one of the slots of its order (`held`), or could go on if it had one.

    `blocked_since` is when it last made progress (UTC), None while pods leave. `blocked_at` is when that
    changes, or when it gives its slot back, if nothing else happens before (UTC). `counts_from` is from when
    on it counts as blocked, and a pass has to record that (UTC).
    """

    held: bool = False
    awaited: bool = False
    blocked_since: datetime | None = None
    blocked_at: datetime | None = None
    counts_from: datetime | None = None


MOST_HOLDING = 10
"""PodDisruptionBudgets of one case whose time is kept, those that held it longest."""


class HeldBy(Struct, frozen=True):
    """For how many seconds a PodDisruptionBudget (`namespace/name`) has refused evictions of a drain."""

    budget: Name
    seconds: Annotated[int, Meta(ge=0, le=100 * limits.COUNT)]

    @staticmethod
    def together(*held: HeldBy) -> tuple[HeldBy, ...]:
        """Return the time of each budget in all, the longest first, of those that held longest."""
        total: Counter[str] = Counter()
        for spent in held:
            total[spent.budget] += spent.seconds
        longest = sorted(total.items(), key=lambda item: (-item[1], item[0]))[:MOST_HOLDING]
        return tuple(HeldBy(budget, seconds) for budget, seconds in longest if seconds)


class Spell(Struct, frozen=True):
    """How long a budget has refused evictions of a drain `before`, and since when it does now, if it does."""

    budget: str
    before: timedelta
    since: datetime | None = None

    def until(self, now: datetime) -> HeldBy:
        """Return for how long it has held the drain at a moment (aware)."""
        length = self.before if self.since is None else self.before + max(now - self.since, timedelta())
        return HeldBy(self.budget, int(length.total_seconds()))


class DrainProgress(Struct, frozen=True):
    """The progress of one node's drain, as the drainer sees it.

    `escalations` are the stages that were taken, a sentence each. `returned` are the UIDs of the pods
    that came back to the node and stay; they are in `kept`, too. `coming` are the namespaces from which new
    pods keep coming, which stay. `seen` is what the record has to keep. `since` is that of the order.
    `spells` are those of the budgets that have refused its evictions.
    """

    node: str
    uid: str
    phase: Phase
    total: int = 0
    gone: int = 0
    evicted: int = 0
    kept: tuple[Blocker, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    warnings: tuple[str, ...] = ()
    escalations: tuple[str, ...] = ()
    error: str = ""
    finished: datetime | None = None
    since: datetime | None = None
    slot: SlotUse = SlotUse()
    returned: frozenset[str] = frozenset()
    coming: tuple[Coming, ...] = ()
    seen: Seen = Seen()
    spells: tuple[Spell, ...] = ()

    def goes_on(self, uid: str) -> bool:
        """Whether this is a drain of the node with that UID that has not ended."""
        return self.phase is Phase.RUNNING and self.uid == uid
