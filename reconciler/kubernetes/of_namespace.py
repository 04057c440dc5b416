"""Reads the pods of one namespace, for people who may not list those of the cluster."""

from __future__ import annotations

from reconciler.kubernetes.connection import Connection, budgets_in, core
from reconciler.kubernetes.wire.formats import budget_format, pod_format
from reconciler.kubernetes.wire.lists import list_all
from reconciler.model.errors import ClusterError
from reconciler.model.explanation import Examination
from reconciler.model.pod import Pod
from reconciler.model.problems import BUDGETS, PODS, Unseen
from reconciler.model.values import replace

OTHERS = "the pods of other namespaces"


def with_own_pods(examination: Examination, connection: Connection, namespace: str) -> Examination:
    """Return the examination with the pods and budgets of a namespace, if those of the cluster were refused.

    What a drain would do with these pods does not depend on the others. What may not be read here either
    stays unseen.
    """
    unseen = examination.snapshot.problems.refused
    if PODS not in unseen:
        return examination
    try:
        pods = list_all(connection, core(namespace) / "pods", pod_format(placement=True)).items
        budgets = list_all(connection, budgets_in(namespace), budget_format()).items
    except ClusterError:
        return examination
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        by_node.setdefault(pod.node, []).append(pod)
    follows = "what else keeps the drains of their nodes is not known"
    others = Unseen(OTHERS, unseen[PODS].needs, follows, unseen[PODS].because)
    left = (others, *(each for each in unseen.values() if each.what not in (PODS, BUDGETS)))
    snapshot = replace(
        examination.snapshot,
        pods={node: tuple(of_node) for node, of_node in by_node.items()},
        budgets=tuple(budgets),
        problems=replace(examination.snapshot.problems, unseen=left),
    )
    return Examination(replace(examination.plan, unseen=left), snapshot)
