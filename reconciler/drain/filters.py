"""Which pods go, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from typing import NamedTuple

from msgspec import Struct

from reconciler.drain.rules import others_end, others_word, own_word, rule_for
from reconciler.model.drains import Behavior, Blocker, DrainOptions, Refusals, keeps_coming
from reconciler.model.moments import shifted, to_text
from reconciler.model.plan import PodVerdict
from reconciler.model.pod import Pod
from reconciler.model.steps import HeldStep, holders_of

_CRITICAL = frozenset({"system-cluster-critical", "system-node-critical"})


class Tier(IntEnum):
    """A tier starts when the previous one is gone. `OWN` is the pod of the reconciler itself."""

    ORDINARY = 0
    DAEMONSET = 1
    CRITICAL = 2
    CRITICAL_DAEMONSET = 3
    OWN = 4


def tier_of(pod: Pod, own_pod: str | None = None) -> Tier:
    """Return the tier of a pod. `own_pod` is the `namespace/name` of the reconciler's own pod."""
    if own_pod is not None and pod.key == own_pod:
        return Tier.OWN
    daemonset = pod.owner is not None and pod.owner.kind == "DaemonSet"
    if pod.spec.priority_class in _CRITICAL:
        return Tier.CRITICAL_DAEMONSET if daemonset else Tier.CRITICAL
    return Tier.DAEMONSET if daemonset else Tier.ORDINARY


DAEMONSET_REFUSED = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
DAEMONSET_IGNORED = "ignoring DaemonSet-managed Pods"
EMPTY_DIR_REFUSED = Refusals().empty_dir
EMPTY_DIR_DELETED = "deleting Pods with local storage"
RETURNS_TOLERATING = "comes back because it tolerates the cordon"
RETURNS = "comes back although the node is cordoned"
_KUBELET_DELETES_WITHIN = timedelta(minutes=1)
UNMANAGED_REFUSED = Refusals().unmanaged
UNMANAGED_DELETED = "deleting Pods that declare no controller"


class Action(StrEnum):
    """What happens to a pod. `WAIT`: the drain waits until the pod terminates or completes by itself."""

    EVICT = "evict"
    DELETE = "delete"
    SKIP = "skip"
    KEEP = "keep"
    WAIT = "wait"
    REFUSE = "refuse"


class PodDeleteStatus(Struct, frozen=True):
    """What a drain does with a pod, and why.

    `reasons` are why it stays or what the drain waits for. `warnings` are what is lost with it. Both use the
    texts of kubectl if there are any. `spared` is set for a pod that runs and that a rule or its own label
    skips. Pods with a lower (`tier`, `order`) go first. `until` (UTC) is when the
    verdict changes by itself. `overruled` says which wish of the pod's author is no longer followed.
    """

    pod: Pod
    action: Action
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tier: Tier = Tier.ORDINARY
    order: int = 0
    until: datetime | None = None
    overruled: str = ""
    spared: bool = False

    @property
    def goes(self) -> bool:
        """Whether the drain evicts or deletes it."""
        return self.action in (Action.EVICT, Action.DELETE)

    @property
    def group(self) -> tuple[int, int]:
        """The tier and the order. Pods of the same group go together."""
        return (int(self.tier), self.order)

    @property
    def verdict(self) -> PodVerdict:
        """The same, for reports."""
        return PodVerdict(self.pod.key, self.pod.uid, str(self.action), (*self.reasons, *self.warnings))


class _Circumstances(NamedTuple):
    options: DrainOptions
    now: datetime
    namespaces: Mapping[str, Mapping[str, str]]
    daemonset_gone: bool
    returned: str


class _Word(NamedTuple):
    """The answer of one filter. With `final`, later filters are skipped."""

    refuses: str = ""
    warns: str = ""
    final: Action | None = None
    because: str = ""
    until: datetime | None = None
    overruled: str = ""
    spares: bool = False


_FINE = _Word()
_Filter = Callable[[Pod, _Circumstances], _Word]


def judge(
    pod: Pod,
    options: DrainOptions,
    *,
    now: datetime,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    own_pod: str | None = None,
    returned: str = "",
) -> PodDeleteStatus:
    """Return what a drain does with a pod `now` (UTC), with all reasons.

    `returned` is why a pod stays that the drain has seen come to the node, empty if it does not stay.
    """
    gone = pod.owner is not None and f"{pod.namespace}/{pod.owner.name}" in options.gone_daemonsets
    around = _Circumstances(options, now, namespaces or {}, gone, returned)
    refusals: list[str] = []
    warnings: list[str] = []
    action, because = Action.DELETE if options.use_delete else Action.EVICT, ""
    until, overruled, spared = None, "", False
    for ask in _FILTERS:
        word = ask(pod, around)
        refusals += [word.refuses] if word.refuses else []
        warnings += [word.warns] if word.warns else []
        until, overruled = until or word.until, overruled or word.overruled
        if word.final is not None:
            action, because, spared = word.final, word.because, word.spares and not pod.finished
            break
    going = pod.deleting_until is not None and (action in (Action.EVICT, Action.DELETE, Action.WAIT))
    if refusals and not (going and not options.strict):
        action = Action.REFUSE if options.strict else Action.KEEP
    elif going:
        # The pod may not be evicted, but someone has already deleted it.
        action, because, refusals = Action.WAIT, "is already terminating", []
    rule = rule_for(pod, options.rules, around.namespaces)
    return PodDeleteStatus(
        pod,
        action,
        reasons=(*refusals, *([because] if because else [])),
        warnings=tuple(warnings),
        tier=tier_of(pod, own_pod),
        order=rule.order if rule is not None else 0,
        until=until,
        overruled=overruled,
        spared=spared,
    )


def _selected(pod: Pod, around: _Circumstances) -> _Word:
    selector = around.options.pod_selector
    if selector is None or selector.matches(pod.labels):
        return _FINE
    return _Word(final=Action.SKIP, because="the pod selector does not match it")


def _long_terminating(pod: Pod, around: _Circumstances) -> _Word:
    patience = around.options.skip_terminating_after
    if not patience or pod.deleting_until is None:
        return _FINE
    # kubectl compares whole seconds (int(time.Since(...).Seconds()) > n).
    if int((around.now - pod.deleting_until).total_seconds()) <= patience.total_seconds():
        return _FINE
    return _Word(
        final=Action.SKIP,
        because=f"has been terminating for more than {patience.total_seconds():.0f}s, so it is skipped",
    )


def _only_an_object(pod: Pod, around: _Circumstances) -> _Word:
    """Do not wait for the object of a pod whose containers have ended: a finalizer can keep it forever.

    A kubelet reports the end of a pod, and then deletes the object within seconds, after the volumes.
    """
    if not pod.finished or pod.deleting_until is None:
        return _FINE
    until = shifted(pod.deleting_until, _KUBELET_DELETES_WITHIN)
    if around.now < until:
        return _Word(until=until)
    return _Word(final=Action.SKIP, because="has ended, and only a finalizer keeps its object")


def _daemonset(pod: Pod, around: _Circumstances) -> _Word:
    if pod.owner is None or pod.owner.kind != "DaemonSet" or pod.finished:
        return _FINE
    if around.daemonset_gone:
        missing = f'daemonsets.apps "{pod.owner.name}" not found'
        return _Word(warns=missing) if around.options.evict_unmanaged else _Word(refuses=missing)
    if around.options.ignore_daemonsets:
        return _Word(final=Action.SKIP, because=DAEMONSET_IGNORED)
    if not around.options.strict:
        return _FINE
    # With --ignore-daemonsets the pod would be skipped, so the reasons of later filters do not matter.
    return _Word(refuses=DAEMONSET_REFUSED, final=Action.KEEP)


def _mirror(pod: Pod, _: _Circumstances) -> _Word:
    if not pod.mirror:
        return _FINE
    return _Word(
        final=Action.SKIP, because="is the mirror of a static pod, which an eviction does not remove"
    )


def _returned(pod: Pod, around: _Circumstances) -> _Word:
    """Keep a pod that came to the cordoned node: after an eviction, somebody puts another one there."""
    comebacks = around.options.comebacks
    begun, because = comebacks.begun, around.returned
    since = begun is not None and pod.created is not None and pod.created > begun
    if not because and since:
        # Also one that has ended: the next one comes after its eviction.
        too_many = any(one.namespace == pod.namespace for one in comebacks.coming)
        because = one_too_many(pod.namespace) if too_many else ""
    back = pod.uid in comebacks.uids or (since and pod.spec.tolerates_cordon)
    if not because and back and not pod.finished:
        because = returns_because(pod)
    return _Word(final=Action.KEEP, because=because) if because else _FINE


def one_too_many(namespace: str) -> str:
    """Return why a pod stays that came late from a namespace that sends too many."""
    return f"came after the start of the drain; {keeps_coming(namespace)}"


def returns_because(pod: Pod) -> str:
    """Return why a pod stays whose owner puts it on the cordoned node again and again."""
    return RETURNS_TOLERATING if pod.spec.tolerates_cordon else RETURNS


def _own_word(pod: Pod, around: _Circumstances) -> _Word:
    """Follow the pod's own label. It keeps the drain waiting for a limited time only.

    Everyone who may create pods can write it, so an unlimited wait would hold the node forever.
    """
    word = own_word(pod, around.options.prefix)
    if word is None:
        return _FINE
    behavior, who = word
    if behavior is Behavior.SKIP:
        # Whoever may create pods can write it, so it holds nothing else longer than any other wish of theirs.
        limit = around.options.waits.own
        spares = limit is None or around.now < limit.ends(around.options.grace.capped(pod.spec.grace_period))
        return _Word(final=Action.SKIP, because=f"{who} says to skip it", spares=spares)
    return _wish(pod, who, around)


def _wish(pod: Pod, who: str, around: _Circumstances) -> _Word:
    """Return the answer about a pod that asks to complete first: the drain waits for a limited time."""
    if pod.finished:
        return _FINE
    wish = f"{who} says to wait until it has completed"
    limit = around.options.waits.own
    if limit is None:
        return _Word(final=Action.WAIT, because=wish)
    until = limit.ends(around.options.grace.capped(pod.spec.grace_period))
    if around.now < until:
        return _Word(final=Action.WAIT, because=f"{wish}, until {to_text(until)} at most", until=until)
    over = f"{wish}, but the wait ended at {to_text(until)} ({limit.reason(until)})"
    return _Word(warns=over, overruled=over)


def _rule(pod: Pod, around: _Circumstances) -> _Word:
    word = own_word(pod, around.options.prefix)
    rule = rule_for(pod, around.options.rules, around.namespaces)
    if rule is None or (word is not None and pod.finished):
        return _FINE
    if rule.behavior is Behavior.SKIP:
        return _Word(final=Action.SKIP, because=f"rule {rule.name} says to skip it", spares=True)
    if rule.behavior is Behavior.WAIT_COMPLETED and not pod.finished:
        return _Word(final=Action.WAIT, because=f"rule {rule.name} says to wait until it has completed")
    return _FINE


def _others_word(pod: Pod, around: _Circumstances) -> _Word:
    """Follow what the pod asks of an autoscaler, unless its own label or a rule says what a drain does."""
    who = others_word(pod)
    if not who or own_word(pod, around.options.prefix) is not None:
        return _FINE
    if rule_for(pod, around.options.rules, around.namespaces) is not None:
        return _FINE
    ends, word = others_end(pod), _wish(pod, who, around)
    if ends is None or pod.finished or (word.until is not None and word.until <= ends):
        return word
    if ends <= around.now:
        return _FINE
    if word.final is not Action.WAIT:
        return word
    return _Word(final=Action.WAIT, because=f"{who} says to leave it until {to_text(ends)}", until=ends)


def _held(pod: Pod, around: _Circumstances) -> _Word:
    """Wait for the pod's own `pre-drain` annotations, for a limited time, the same for all of them.

    Everyone who may create pods can write them, so they hold the eviction of their own pod and nothing else.
    """
    waits = around.options.waits
    limit = waits.held
    if limit is None or pod.finished:
        return _FINE
    holders = holders_of(pod.annotations, around.options.prefix)
    names = ", ".join(str(holder) for holder in holders if holder.step is HeldStep.PRE_DRAIN)
    if not names:
        return _FINE
    until = limit.ends(timedelta())
    if around.now < until:
        because = f"its {waits.called} {names} holds its eviction, until {to_text(until)} at most"
        return _Word(final=Action.WAIT, because=because, until=until)
    over = f"its {waits.called} {names} held its eviction until {to_text(until)}"
    return _Word(warns=over, overruled=over)


def _empty_dir(pod: Pod, around: _Circumstances) -> _Word:
    if not pod.spec.empty_dir or pod.finished:
        return _FINE
    if around.options.evict_empty_dir:
        return _Word(warns=EMPTY_DIR_DELETED)
    return _Word(refuses=around.options.refusals.empty_dir)


def _unmanaged(pod: Pod, around: _Circumstances) -> _Word:
    if pod.owner is not None or pod.finished:
        return _FINE
    if around.options.evict_unmanaged:
        return _Word(warns=UNMANAGED_DELETED)
    return _Word(refuses=around.options.refusals.unmanaged)


_FILTERS: tuple[_Filter, ...] = (
    _selected,
    _long_terminating,
    _only_an_object,
    _daemonset,
    _mirror,
    _returned,
    _own_word,
    _rule,
    _others_word,
    _empty_dir,
    _unmanaged,
    _held,
)


class Survey(Struct, frozen=True):
    """The verdicts on one node's pods. `to_go` is in the order of eviction.

    `kept` are pods that another setting or flag would evict, `spared` those that a rule or their own label
    skips. Other skipped pods (of a DaemonSet, mirrors, pods that have ended) are only in `verdicts`.
    `refused` has entries only in a strict drain; then no pod may be evicted.
    """

    to_go: tuple[PodDeleteStatus, ...] = ()
    waiting: tuple[PodDeleteStatus, ...] = ()
    kept: tuple[Blocker, ...] = ()
    spared: tuple[Blocker, ...] = ()
    refused: tuple[Blocker, ...] = ()
    verdicts: tuple[PodVerdict, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def drained(self) -> bool:
        """Whether no pods are left to evict or to wait for."""
        return not (self.to_go or self.waiting or self.refused)


def survey(
    pods: Iterable[Pod],
    options: DrainOptions,
    *,
    now: datetime,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    own_pod: str | None = None,
) -> Survey:
    """Return the verdicts on all pods of one node `now` (UTC). The order of `pods` does not matter."""
    return summarise(judge(pod, options, now=now, namespaces=namespaces, own_pod=own_pod) for pod in pods)


def summarise(pods: Iterable[PodDeleteStatus]) -> Survey:
    """Group pods by what happens to them."""
    judged = sorted(pods, key=queue_key)
    # One line per kind of warning, with its pods, like kubectl.
    warned: dict[str, list[str]] = {}
    for status in judged:
        if status.goes:
            texts = status.warnings
        elif status.action is Action.SKIP:
            texts = tuple(reason for reason in status.reasons if reason.startswith("ignoring "))
        else:
            texts = ()
        for text in texts:
            warned.setdefault(text, []).append(status.pod.key)
    return Survey(
        to_go=tuple(status for status in judged if status.goes),
        waiting=tuple(status for status in judged if status.action is Action.WAIT),
        kept=_blockers(judged, Action.KEEP),
        spared=_blockers((status for status in judged if status.spared), Action.SKIP),
        refused=_blockers(judged, Action.REFUSE),
        verdicts=tuple(status.verdict for status in judged),
        warnings=tuple(f"{text}: {', '.join(sorted(keys))}" for text, keys in sorted(warned.items())),
    )


QueueKey = tuple[tuple[int, int], int, str, str, str]

NO_KEY: QueueKey = ((0, 0), 0, "", "", "")


def queue_key(judged: PodDeleteStatus) -> QueueKey:
    """Return the sort key: tier and order, then the lowest priority first, then the name."""
    pod = judged.pod
    return (judged.group, pod.spec.priority, pod.namespace, pod.name, pod.uid)


def _blockers(judged: Iterable[PodDeleteStatus], action: Action) -> tuple[Blocker, ...]:
    return tuple(
        Blocker(status.pod.key, "; ".join(status.reasons)) for status in judged if status.action is action
    )
