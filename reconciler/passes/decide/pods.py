"""The pods of a node, as a drain with certain options would treat them."""

from __future__ import annotations

from datetime import datetime

from reconciler.drain.filters import Survey, survey
from reconciler.model.drains import DrainOptions, DrainProgress
from reconciler.model.node import Node
from reconciler.model.record import DrainRecord
from reconciler.model.values import replace
from reconciler.passes.decide.context import PassContext


def pods_left(node: Node, options: DrainOptions, context: PassContext) -> Survey | None:
    """Return what a drain with these options finds on the node, None if its pods were not read."""
    snapshot = context.snapshot
    pods = snapshot.pods.get(node.name)
    if pods is None:
        return None
    return survey(
        pods,
        options,
        now=context.now,
        namespaces=snapshot.for_settings.namespaces,
        own_pod=snapshot.itself.pod,
    )


def with_returns(
    options: DrainOptions, drain: DrainRecord, begun: datetime | None, drained: DrainProgress | None
) -> DrainOptions:
    """Return the options with what tells the pods that come back to the cordoned node.

    `begun` is when the maintenance of the node began (UTC; None: with this attempt). The first attempt evicts
    pods that came between the cordon and its own start, and no later one evicts what the first left.
    """
    since = drain.since if drain.attempt == 1 else begun or drain.since
    return replace(options, begun=since, returned=drained.returned if drained is not None else frozenset())
