"""What there is to do on one node: which pods go, in which order, which are waited for, and which stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.eviction.filters import Action, PodDeleteStatus, judge
from reconciler.model.drains import Blocker, DrainOptions
from reconciler.model.plan import PodVerdict
from reconciler.model.pod import Pod


@dataclass(frozen=True, slots=True)
class Survey:
    """One node's pods, judged; `to_go` in the order in which they go.

    `kept` are those that would go but for a reason that a setting or flag could take away; what is skipped
    (DaemonSet, mirror, told to stay) is in `verdicts` only. `refused` is only ever filled by a strict drain,
    and then nothing at all may be evicted.
    """

    to_go: tuple[PodDeleteStatus, ...] = ()
    waiting: tuple[PodDeleteStatus, ...] = ()
    kept: tuple[Blocker, ...] = ()
    refused: tuple[Blocker, ...] = ()
    verdicts: tuple[PodVerdict, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def drained(self) -> bool:
        """Whether nothing is left that has to go."""
        return not (self.to_go or self.waiting or self.refused)


def survey(
    pods: Iterable[Pod],
    options: DrainOptions,
    *,
    now: datetime,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    own_pod: str | None = None,
) -> Survey:
    """Judge all pods of one node at a moment (UTC); the same for the same pods in any order."""
    return summarise(judge(pod, options, now=now, namespaces=namespaces, own_pod=own_pod) for pod in pods)


def summarise(pods: Iterable[PodDeleteStatus]) -> Survey:
    """Sort judged pods by what happens to them."""
    judged = sorted(pods, key=queue_key)
    return Survey(
        to_go=tuple(one for one in judged if one.goes),
        waiting=tuple(one for one in judged if one.action is Action.WAIT),
        kept=_blockers(judged, Action.KEEP),
        refused=_blockers(judged, Action.REFUSE),
        verdicts=tuple(one.verdict for one in judged),
        warnings=_warnings(judged),
    )


def queue_key(judged: PodDeleteStatus) -> tuple[tuple[int, int], int, str, str, str]:
    """Sort key: tier and order, then the lowest priority first, then by name."""
    pod = judged.pod
    return (judged.group, pod.priority, pod.namespace, pod.name, pod.uid)


def _blockers(judged: Iterable[PodDeleteStatus], action: Action) -> tuple[Blocker, ...]:
    return tuple(Blocker(one.pod.key, "; ".join(one.reasons)) for one in judged if one.action is action)


def _warnings(judged: Iterable[PodDeleteStatus]) -> tuple[str, ...]:
    """One line for each kind of warning, with its pods, as kubectl prints them."""
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
