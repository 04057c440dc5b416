"""A small cluster to judge: nodes with room, and pods of Deployments as their controllers name them."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.features.readiness.findings import Finding, Readiness, WebhookAnswers
from reconciler.features.readiness.judging import ClusterState, judge_nodes, summed_up
from reconciler.model.node import Node
from reconciler.model.pod import Owner, Placement, Pod, PodDisruptionBudget, Volume
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from tests.support import builders
from tests.support.builders import NOW

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def node(name: str, zone: str = "", **labels: str) -> Node:
    """A node that is Ready and has room."""
    return replace(builders.node(name, zone=zone, labels=labels), allocatable=ROOM)


def pod(name: str = "web-1", on: str = "a", *, app: str = "web", cpu: str = "100m", **parts: object) -> Pod:
    """A pod of the Deployment `app`; `parts` replace its fields."""
    made = replace(
        builders.pod(name, on),
        labels={"app": app, "pod-template-hash": "6b7f"},
        owner=Owner("ReplicaSet", f"{app}-6b7f", "apps/v1", "uid"),
        placement=Placement(requests=({"cpu": cpu, "memory": "1Mi"},)),
    )
    return replace(made, **parts)  # type: ignore[arg-type]


def budget(name: str = "web", /, **status: int) -> PodDisruptionBudget:
    """A PodDisruptionBudget over the pods of `web`."""
    return PodDisruptionBudget("shop", name, LabelSelector.of({"app": "web"}), **status)  # type: ignore[arg-type]


def judged(
    pods: Iterable[Pod],
    *budgets: PodDisruptionBudget,
    nodes: tuple[Node, ...] = (node("a"), node("b")),
    volumes: tuple[Volume, ...] = (),
    settings: str = "",
    answers: WebhookAnswers | None = None,
) -> Readiness:
    """Judge all nodes."""
    chosen = builders.settings(settings)
    seen = ClusterState(nodes, tuple(pods), budgets, volumes=volumes)
    return summed_up(seen, judge_nodes(seen, chosen, NOW), chosen, NOW, answers)


def only(found: Readiness) -> Finding:
    """The one finding that there is."""
    ((finding,),) = (one.findings for one in found.workloads)
    return finding


def codes(found: Readiness) -> list[tuple[str, str]]:
    """The codes and severities of all findings."""
    return [(one.code.value, one.severity.value) for each in found.workloads for one in each.findings]
