"""Readiness of all nodes: what is read, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from reconciler.drain.workloads import workload_of
from reconciler.features.readiness.judging import KIND, Judged
from reconciler.features.readiness.pods import Found
from reconciler.features.readiness.reading import Seen
from reconciler.model.pod import Pod
from reconciler.model.problems import WEBHOOKS, Unseen
from reconciler.model.readiness import (
    Finding,
    FindingCode,
    Readiness,
    Severity,
    WebhookAnswers,
    WebhookRefusal,
    Workload,
    WorkloadFindings,
)
from reconciler.settings.schema import Settings


def in_turn(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the pods in turns: each workload has one before any has two, so a limit cuts none off."""
    seen: dict[Workload, int] = {}
    turns: list[tuple[int, Pod]] = []
    for pod in sorted(pods, key=lambda pod: (pod.key, pod.uid)):
        workload = workload_of(pod)
        turn = seen[workload] = seen.get(workload, 0) + 1
        turns.append((turn, pod))
    return tuple(pod for _, pod in sorted(turns, key=lambda one: one[0]))


_Key = tuple[FindingCode, tuple[str, ...]]


def summed_up(
    seen: Seen, judged: Judged, settings: Settings, now: datetime, answers: WebhookAnswers | None = None
) -> Readiness:
    """Return the whole answer. `answers` are those of webhooks, None if they were not asked."""
    asked = answers or WebhookAnswers()
    found = (*judged.found, *_refused(judged, asked.refusals))
    workloads = sorted(_by_workload(found), key=_place)
    blocking = (one for one in found if one.severity is Severity.BLOCKS)
    unseen = seen.unseen
    if asked.needs:
        follows = "whether they refuse evictions is not known"
        unseen = (*unseen, Unseen(WEBHOOKS, asked.needs, follows, asked.because))
    return Readiness(
        now=now,
        kind=KIND.value,
        nodes=len(judged.nodes),
        pods=judged.pods,
        blocked=tuple(sorted({one.pod.node for one in blocking})),
        workloads=tuple(workloads),
        notes=(*judged.notes, *(_about_webhooks(answers) if answers is not None else ())),
        unseen=unseen,
        unsure=judged.unsure or bool(asked.needs or asked.silent),
        time_zone=settings.time_zone.key,
        settings=settings.version,
        people=judged.people,
    )


def _place(one: WorkloadFindings) -> tuple[int, int, Workload]:
    worst = (finding for finding in one.findings if finding.severity is one.severity)
    return one.severity.rank, -max(len(finding.pods) for finding in worst), one.workload


def _by_workload(found: Iterable[Found]) -> Iterator[WorkloadFindings]:
    grouped: dict[Workload, dict[_Key, list[Found]]] = {}
    for one in found:
        of_workload = grouped.setdefault(workload_of(one.pod), {})
        of_workload.setdefault((one.code, one.about), []).append(one)
    for workload, groups in grouped.items():
        findings = sorted((_finding(same) for same in groups.values()), key=lambda one: one.severity.rank)
        yield WorkloadFindings(workload, tuple(findings))


def _finding(same: list[Found]) -> Finding:
    first = same[0]
    return Finding(
        first.code,
        first.severity,
        first.because,
        first.remedy,
        pods=tuple(sorted({one.pod.name for one in same})),
        nodes=tuple(sorted({one.pod.node for one in same})),
        about=first.about,
    )


def _refused(judged: Judged, refusals: Iterable[WebhookRefusal]) -> Iterator[Found]:
    pods = {(pod.namespace, pod.name): pod for pod in judged.going}
    for one in refusals:
        pod = pods.get((one.namespace, one.pod))
        if pod is None:
            continue
        if one.reached:
            because = f"{one.webhook} refuses its eviction: {one.message}"
            remedy = "Ask the owner of the webhook or policy why, and exclude evictions by drains from it."
        else:
            because = f"{one.webhook} can't be called, so the API server refuses its eviction: {one.message}"
            remedy = "Repair the webhook, or set its failurePolicy to Ignore."
        yield Found(pod, FindingCode.WEBHOOK, Severity.BLOCKS, because, remedy, (one.webhook,))


def _about_webhooks(answers: WebhookAnswers) -> Iterator[str]:
    left = f", and not about {answers.left} more" if answers.left else ""
    yield f"webhooks were asked about evictions of pods: {answers.asked}{left}"
    if answers.silent:
        yield f"no answer to {answers.silent} dry-run evictions: it is not known what webhooks refuse"
