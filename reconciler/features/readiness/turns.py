"""In which order webhooks are asked about pods."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.drain.workloads import workload_of
from reconciler.model.pod import Pod
from reconciler.model.readiness import Workload


def in_turn(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Return the pods in turns: each workload has one before any has two, so a limit cuts none off."""
    seen: dict[Workload, int] = {}
    turns: list[tuple[int, Pod]] = []
    for pod in sorted(pods, key=lambda pod: (pod.key, pod.uid)):
        workload = workload_of(pod)
        turn = seen[workload] = seen.get(workload, 0) + 1
        turns.append((turn, pod))
    return tuple(pod for _, pod in sorted(turns, key=lambda one: one[0]))
