"""The pods of a node, as a drain with certain options would treat them."""

from __future__ import annotations

from reconciler.decide.context import PassContext
from reconciler.eviction.survey import Survey, survey
from reconciler.model.drains import DrainOptions
from reconciler.model.node import Node


def pods_left(node: Node, options: DrainOptions, context: PassContext) -> Survey | None:
    """Return what a drain with these options finds on the node, None if its pods were not read."""
    snapshot = context.snapshot
    pods = snapshot.pods.get(node.name)
    if pods is None:
        return None
    return survey(
        pods, options, now=context.now, namespaces=snapshot.for_settings.namespaces, own_pod=snapshot.own_pod
    )
