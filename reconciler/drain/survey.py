"""The pods of one node: which are evicted, in which order, which the drain waits for, and which stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from reconciler.drain.filters import Action, PodDeleteStatus, judge
from reconciler.model.drains import Blocker, DrainOptions
from reconciler.model.plan import PodVerdict
from reconciler.model.pod import Pod


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
    return Survey(
        to_go=tuple(one for one in judged if one.goes),
        waiting=tuple(one for one in judged if one.action is Action.WAIT),
        kept=_blockers(judged, Action.KEEP),
        spared=_blockers((one for one in judged if one.spared), Action.SKIP),
        refused=_blockers(judged, Action.REFUSE),
        verdicts=tuple(one.verdict for one in judged),
        warnings=_warnings(judged),
    )


QueueKey = tuple[tuple[int, int], int, str, str, str]

NO_KEY: QueueKey = ((0, 0), 0, "", "", "")


def queue_key(judged: PodDeleteStatus) -> QueueKey:
    """Return the sort key: tier and order, then the lowest priority first, then the name."""
    pod = judged.pod
    return (judged.group, pod.priority, pod.namespace, pod.name, pod.uid)


def _blockers(judged: Iterable[PodDeleteStatus], action: Action) -> tuple[Blocker, ...]:
    return tuple(Blocker(one.pod.key, "; ".join(one.reasons)) for one in judged if one.action is action)


def _warnings(judged: Iterable[PodDeleteStatus]) -> tuple[str, ...]:
    """Return one line per kind of warning, with its pods, like kubectl."""
    lines: dict[str, list[str]] = {}
    for one in judged:
        if one.goes:
            texts = one.warnings
        elif one.action is Action.SKIP:
            texts = tuple(reason for reason in one.reasons if reason.startswith("ignoring "))
        else:
            texts = ()
        for text in texts:
            lines.setdefault(text, []).append(one.pod.key)
    return tuple(f"{text}: {', '.join(sorted(pods))}" for text, pods in sorted(lines.items()))
