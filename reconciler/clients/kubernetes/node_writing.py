"""One patch of one node: whatever becomes of the connection, and whoever else writes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from reconciler.clients.kubernetes.connection import MERGE_PATCH, STRATEGIC_PATCH, Connection, Request
from reconciler.clients.kubernetes.objects import get
from reconciler.clients.kubernetes.wire import jsonlists
from reconciler.clients.retrying import patiently
from reconciler.errors import Conflict, Rejected, TooManyRequests, Unreachable
from reconciler.model.moments import to_text
from reconciler.model.node import Condition, Node, Wanted
from reconciler.model.own import is_as_seen, shows_intent
from reconciler.model.plan import ConditionsWrite, NodeWrite

TRIES = 6
"""Kubelets and cloud controllers write a node every few seconds: one or two tries are usual."""

SHOWN_PATIENCE = 2.0
"""Seconds for what is only shown: the next pass looks again."""

Guard = Callable[[], None]


def patch_node(connection: Connection, guard: Guard, write: NodeWrite) -> None:
    """Patch the node, naming the UID and resourceVersion that were seen; `guard` is asked before each try.

    After a 409, or where no answer came, the node is read again. If it is already as wanted, the write has
    happened; if UID, `unschedulable` and our own keys are as they were seen, it is tried again. Raises
    Conflict when somebody changed what is ours, NotFound when the node has gone, Unreachable when the
    server is away.
    """
    wanted = Wanted(frozenset(), write.own_prefix, annotations=frozenset(write.annotations))
    resource_version = write.resource_version
    failure: Conflict | Unreachable | TooManyRequests | None = None
    for attempt in range(TRIES):
        if attempt:
            connection.sleep(_pause(attempt, failure))
        guard()
        try:
            connection.send(_patch(write, resource_version))
            return
        except (Conflict, Unreachable, TooManyRequests) as error:
            failure = error
        except Rejected:
            # A UID that is not the node's is a 422 where the resourceVersion happens to be right.
            if read_node(connection, write.node, wanted).uid == write.uid:
                raise
        node = read_node(connection, write.node, wanted)
        if node.uid == write.uid and shows_intent(node, write):
            return
        if not is_as_seen(node, write):
            raise Conflict(f"node {write.node} is not as it was seen: {_difference(node, write)}", status=409)
        resource_version = node.resource_version
    assert failure is not None
    raise failure


def patch_conditions(connection: Connection, guard: Guard, write: ConditionsWrite) -> None:
    """Put conditions into the node's status and take others away, each by its type, whatever else is there.

    No resourceVersion is named: kubelets write the status every few seconds, and nobody else these types.
    Raises Conflict when the node was made anew, NotFound when it has gone.
    """
    conditions: list[dict[str, Any]] = [_condition(one) for one in write.put]
    conditions += [{"type": kind, "$patch": "delete"} for kind in write.gone]
    request = Request(
        "PATCH",
        f"/api/v1/nodes/{write.node}/status",
        body={"metadata": {"uid": write.uid}, "status": {"conditions": conditions}},
        content_type=STRATEGIC_PATCH,
    )

    def send() -> None:
        guard()
        connection.send(request)

    try:
        patiently(send, patience=SHOWN_PATIENCE, sleep=connection.sleep)
    except Rejected as error:
        # A UID that is not the node's is a 422.
        if read_node(connection, write.node, Wanted(frozenset(), "")).uid == write.uid:
            raise
        raise Conflict(f"node {write.node} was deleted and made anew", status=409) from error


def _condition(one: Condition) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": one.type,
        "status": one.status,
        "reason": one.reason,
        "message": one.message,
    }
    if one.heartbeat is not None:
        body["lastHeartbeatTime"] = to_text(one.heartbeat)
    if one.transition is not None:
        body["lastTransitionTime"] = to_text(one.transition)
    return body


def read_node(connection: Connection, name: str, wanted: Wanted) -> Node:
    """Read one node, with the parts that are wanted; NotFound when it has gone."""
    return jsonlists.to_node(get(connection, f"/api/v1/nodes/{name}", jsonlists.NodeObject), wanted)


def _patch(write: NodeWrite, resource_version: str) -> Request:
    metadata: dict[str, Any] = {"uid": write.uid, "resourceVersion": resource_version}
    if write.labels:
        metadata["labels"] = dict(write.labels)
    if write.annotations:
        metadata["annotations"] = dict(write.annotations)
    body: dict[str, Any] = {"metadata": metadata}
    if write.unschedulable is not None:
        body["spec"] = {"unschedulable": write.unschedulable}
    return Request("PATCH", f"/api/v1/nodes/{write.node}", body=body, content_type=MERGE_PATCH)


def _pause(attempt: int, failure: Conflict | Unreachable | TooManyRequests | None) -> float:
    """Seconds: short, growing, and never in step with another writer."""
    wish = failure.retry_after if failure else None
    backoff = min(0.02 * float(2**attempt), 1.0)
    return max(random.uniform(0.5, 1.5) * backoff, wish or 0.0)


def _difference(node: Node, write: NodeWrite) -> str:
    if node.uid != write.uid:
        return "it was deleted and made anew"
    if node.unschedulable != write.seen_unschedulable:
        return "somebody cordoned it" if node.unschedulable else "somebody uncordoned it"
    return f"somebody changed {write.own_prefix}'s keys on it"
