"""Workloads of a simulated cluster, their pods, and the arithmetic of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from hashlib import blake2b

from msgspec import Struct, field

from reconciler.model.pod import Owner, Pod, PodDisruptionBudget, PodSpec
from reconciler.model.selector import LabelSelector

# The letters of generated names in Kubernetes: no vowels, and no letters that look alike.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_OWNERS = {"Deployment": "ReplicaSet", "StatefulSet": "StatefulSet", "DaemonSet": "DaemonSet", "Job": "Job"}


class Workload(Struct, frozen=True):
    """A controller and its pods' template.

    `kind` is Deployment, StatefulSet, DaemonSet, Job or empty (pods that no controller creates again).
    `pools` are the node pools on which it may run, empty for any. `starts_after` is the time from binding to
    Ready, `stops_after` the time from SIGTERM to the end, limited by the grace period. With
    `tolerates_cordon` its pods may run on cordoned nodes. `node_name` is `spec.nodeName` of the template: all
    of its pods run there, cordoned or not.
    """

    namespace: str
    name: str
    kind: str = "Deployment"
    replicas: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    pools: tuple[str, ...] = ()
    grace: int = 30
    starts_after: timedelta = timedelta(seconds=8)
    stops_after: timedelta = timedelta(seconds=3)
    priority: int = 0
    priority_class: str = ""
    empty_dir: bool = False
    claims: tuple[str, ...] = ()
    tolerates_cordon: bool = False
    node_name: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def pod(self, number: int, ordinal: int = 0) -> Pod:
        """Return the workload's pod with this number.

        Pods of a StatefulSet have their ordinal in the name.
        """
        template = letters(self.key, 9)
        names = {
            "Deployment": f"{self.name}-{template}-{letters(f'{self.key}/{number}', 5)}",
            "StatefulSet": f"{self.name}-{ordinal}",
            "": self.name if self.replicas == 1 else f"{self.name}-{ordinal}",
        }
        owner = None
        if self.kind:
            name = f"{self.name}-{template}" if self.kind == "Deployment" else self.name
            owner = Owner(_OWNERS[self.kind], name, "batch/v1" if self.kind == "Job" else "apps/v1")
        return Pod(
            namespace=self.namespace,
            name=names.get(self.kind, f"{self.name}-{letters(f'{self.key}/{number}', 5)}"),
            uid=f"pod-{number:06d}",
            node="",
            labels={"app": self.name, **self.labels},
            owner=owner,
            phase="Pending",
            spec=PodSpec(
                self.priority,
                self.priority_class,
                self.grace,
                self.empty_dir,
                self.claims,
                self.tolerates_cordon,
            ),
        )


def letters(text: str, count: int) -> str:
    """Return a name part like the random ones of Kubernetes, but always the same for the same text."""
    return "".join(
        _LETTERS[byte % len(_LETTERS)] for byte in blake2b(text.encode(), digest_size=count).digest()
    )


class BudgetSpec(Struct, frozen=True):
    """The spec of a PodDisruptionBudget: one of the two limits, as a number or a percentage such as "50%"."""

    namespace: str
    name: str
    selector: LabelSelector | None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_always: bool = False

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def budget_status(
    spec: BudgetSpec, pods: Iterable[Pod], scale: Callable[[Pod], tuple[str, int] | None]
) -> PodDisruptionBudget:
    """Return the budget with its status, as in Kubernetes' pkg/controller/disruption.

    `scale` returns a pod's controller and its desired number of pods, None for a pod without one.
    """
    bare = PodDisruptionBudget(
        spec.namespace, spec.name, spec.selector, unhealthy_always=spec.unhealthy_always
    )
    covered = [pod for pod in pods if bare.covers(pod)]
    expected = sum(dict(found for pod in covered if (found := scale(pod)) is not None).values())
    if spec.max_unavailable is not None:
        desired = max(0, expected - _scaled(spec.max_unavailable, expected))
    elif isinstance(spec.min_available, str):
        desired = _scaled(spec.min_available, expected)
    else:
        desired, expected = spec.min_available or 0, len(covered)
    healthy = sum(pod.ready and pod.deleting_until is None for pod in covered)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    return PodDisruptionBudget(
        spec.namespace,
        spec.name,
        spec.selector,
        allowed=allowed,
        desired=desired,
        healthy=healthy,
        expected=expected,
        unhealthy_always=spec.unhealthy_always,
    )


def _scaled(value: int | str, total: int) -> int:
    """Return a number or a percentage of a total, rounded up as GetScaledValueFromIntOrPercent does."""
    if isinstance(value, int):
        return value
    return -(-int(value.removesuffix("%")) * total // 100)
