"""One patch of one node, safe against lost answers and other writers."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from reconciler.http.retrying import Guard, patiently, write_until_settled
from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import NODES, PROTOBUF, STRATEGIC_PATCH, Connection, Request
from reconciler.kubernetes.json_patch import INVALID, Patch, send_patch
from reconciler.kubernetes.nodes import node_of, read_encoded, read_node
from reconciler.kubernetes.objects import is_denied
from reconciler.kubernetes.wire import protobuf
from reconciler.model import limits
from reconciler.model.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NotFound,
    NotKept,
    Rejected,
    TooManyRequests,
    Unreachable,
)
from reconciler.model.moments import to_text
from reconciler.model.node import Condition, Node, Taint, Wanted
from reconciler.model.snapshot import FIRST_PAUSE
from reconciler.model.values import replace
from reconciler.model.writes import (
    CORDON,
    LISTS,
    ConditionsWrite,
    LabelsWrite,
    ListChanges,
    NodeWrite,
    TaintWrite,
    WriteAnswer,
    annotations_seen,
    changed_for_checks,
    copies_on,
    is_as_seen,
    not_kept,
    shows_intent,
    shows_part,
    taken_back,
)

log = logging.getLogger(__name__)

REMEMBERED = 20_000
"""Nodes whose labels were written last: for these, it is known how often that was."""

_ADVICE = (
    "set keys.stateLabel: false if a policy of the cluster denies changes of node labels, "
    "and leave hints.label off"
)
_TAINT_ADVICE = "set hints.taint: false if a policy of the cluster denies changes of node taints"

_REMOVED = "an admission webhook or policy of the cluster removes it in the same request"

SHOWN_PATIENCE = 2.0
"""The limit of retries for a condition, in seconds.

It only shows something, and the next pass compares again.
"""


Wrote = Callable[[bytes], object]
"""Gets what the server answers to a write of a node: the node in protobuf, as the server has it."""


def nobody(answer: bytes) -> None:
    """Keep nothing of the answer."""


def patch_node(
    connection: Connection,
    guard: Guard,
    field_manager: str,
    write: NodeWrite,
    *,
    dry_run: bool = False,
    wrote: Wrote = nobody,
) -> WriteAnswer:
    """Patch the node, and return what people should know, empty if everything was written and stayed.

    An admission policy may deny changes of node labels and permit all else, as in AKS Automatic. Our labels
    only show something, so the rest is then written without them. For the errors, see `_patch_whole`.
    `field_manager` is the name of the writer in `metadata.managedFields`, empty for that of passes. A dry run
    changes nothing. `wrote` gets each answer.
    """
    query = {"fieldManager": field_manager} if field_manager else {}
    query |= {"dryRun": "All"} if dry_run else {}
    # What a dry run answers is not what the node has.
    server = _Server(connection, guard, nobody if dry_run else wrote, query)
    try:
        return _patch_whole(server, write)
    except (Forbidden, Rejected) as error:
        if isinstance(error, NotKept) or not write.labels or not is_denied(error):
            raise
        if write.labels_of_triggers or write.keys.record_kept in write.labels:
            raise
        rest = replace(write, labels={})
        if rest.annotations or rest.unschedulable is not None or rest.lists.any:
            _patch_whole(server, rest)
        keys = ", ".join(sorted(write.labels))
        said = f"the labels of the node stay as they are ({keys}): {error}; {_ADVICE}"
        log.warning("node %s: %s", write.node, said)
        return WriteAnswer(said, write.changes - rest.changes)


class _Server(Struct, frozen=True):
    """Where patches of nodes are sent, with these parameters; `wrote` gets each node that it answers."""

    connection: Connection
    guard: Guard
    wrote: Wrote
    query: Mapping[str, str]

    def patch(self, node: str, patch: Patch) -> bytes:
        self.guard()
        answer = send_patch(self.connection, NODES / node, patch, self.query, PROTOBUF)
        self.wrote(answer)
        return answer

    def read(self, node: str) -> bytes:
        answer = read_encoded(self.connection, node)
        self.wrote(answer)
        return answer


def _patch_whole(server: _Server, write: NodeWrite) -> WriteAnswer:
    """Patch the node, and compare what the server answers with what was sent.

    If something essential did not stay, such as the cordon or the record, the rest is taken back, and NotKept
    is raised: a node is never left with one of the two.
    """
    wanted = Wanted(frozenset(), write.own_prefix, annotations=annotations_seen(write))
    answered = _send_whole(server, wanted, write)
    lost = not_kept(answered, write)
    if not lost:
        return WriteAnswer("", lost)
    said = f"{_words(lost)} did not stay on the node: {_REMOVED}"
    if lost.isdisjoint(write.essential):
        log.warning("node %s: %s", write.node, said)
        return WriteAnswer(said, lost)
    back = taken_back(answered, write)
    if back is not None and "dryRun" not in server.query:
        try:
            _send_whole(server, wanted, back)
        except ClusterError as error:
            said = f"{said}; the rest can't be taken back: {error}"
    raise NotKept(said, lost)


def _words(lost: Iterable[str]) -> str:
    """Return what is lost in words, such as `spec.unschedulable, the annotation example.com/record`."""
    names = {CORDON: "spec.unschedulable", LISTS: "taints or finalizers"}
    words = [names.get(name) or f"the {name.replace(':', ' ', 1)}" for name in sorted(lost)]
    return ", ".join(words)


class _Shown(Struct, frozen=True):
    """What a read of a node shows besides what its write expects.

    `copied` is as in NodeWrite. `absent` are `labels` or `annotations` if the node has none. `node` is None
    before the first read. `version` is the resourceVersion if it is to be tested in place of all else.
    """

    copied: Mapping[str, str]
    absent: frozenset[str] = frozenset()
    node: Node | None = None
    version: str = ""


def _send_whole(server: _Server, wanted: Wanted, write: NodeWrite) -> Node:
    """Patch the node if it is as the write expects; return it as the server then has it.

    The lock is checked first. If a test of the patch failed, or no answer came, it reads the node again.
    If the node has the record of the write, the write has happened; if it is still as expected, it tries
    again. Raises Conflict if it is not, NotFound if the node is gone, Unreachable if the server does not
    answer.
    """
    shown, answered = _Shown(write.copied), [Node(write.node, write.uid, "")]
    refusal: Conflict | None = None

    def read() -> _Shown:
        answer = server.read(write.node)
        node = answered[0] = node_of(answer, wanted)
        metadata = protobuf.parse(protobuf.Node, protobuf.unwrapped(answer)).metadata
        maps = {"labels": metadata.labels, "annotations": metadata.annotations}
        return _Shown(copies_on(node), frozenset(name for name, texts in maps.items() if not texts), node)

    def check(node: Node) -> None:
        if not is_as_seen(node, write):
            raise Conflict(f"node {write.node} is not as it was seen: {_difference(node, write)}", status=409)

    def patch() -> None:
        nonlocal refusal
        refusal = None
        try:
            answered[0] = node_of(server.patch(write.node, _patch_of(write, shown)), wanted)
        except Conflict as error:
            refusal = error
            raise

    def settled() -> bool:
        nonlocal shown
        before, shown = shown, read()
        node = answered[0]
        if (node.uid == write.uid and shows_intent(node, write)) or shows_part(node, write):
            return True
        check(node)
        refused = refusal is not None and refusal.status == INVALID
        if refused and (shown.copied, shown.absent) == (before.copied, before.absent):
            # All that is tested is as expected: it has changed back, or the server compares in another way.
            if before.version == node.resource_version:
                raise Rejected(str(refusal), status=INVALID)
            shown = replace(shown, version=node.resource_version)
        return False

    if write.lists.any:
        shown = read()
        check(answered[0])
    on = (Conflict, Unreachable, TooManyRequests)
    write_until_settled(patch, settled, on=on, sleep=server.connection.sleep)
    return answered[0]


def _patch_of(write: NodeWrite, shown: _Shown) -> Patch:
    patch = Patch(write.uid, shown.version)
    patch.expect(write.seen_unschedulable or None, "spec", "unschedulable")
    expected = {**write.expected, **shown.copied}
    for kind, changes in (("label", write.labels), ("annotation", write.bound_annotations)):
        known = {
            key: text
            for name, text in expected.items()
            # The rest of a longer text was not read.
            if (key := name.removeprefix(f"{kind}:")) != name and len(text or "") <= limits.ANNOTATION
        }
        patch.change_texts(known, changes, "metadata", f"{kind}s", exists=f"{kind}s" not in shown.absent)
    if write.unschedulable is not None:
        patch.put(write.unschedulable, "spec", "unschedulable")
    if shown.node is not None:
        _change_lists(patch, shown.node, write.lists)
    return patch


def _change_lists(patch: Patch, node: Node, changes: ListChanges) -> None:
    patch.change_list(node.finalizers, changes.of_finalizers(node.finalizers), "metadata", "finalizers")
    before, after = map(_as_sent, node.taints), map(_as_sent, changes.of_taints(node.taints))
    patch.change_list([*before], [*after], "spec", "taints")


def patch_conditions(connection: Connection, guard: Guard, write: ConditionsWrite) -> None:
    """Add and remove conditions of the node's status, each by its type; other conditions stay.

    It names no resourceVersion: kubelets write the status every few seconds, and only we write these types.
    Raises Conflict if the node was deleted and created again, NotFound if it is gone.
    """
    conditions: list[dict[str, Any]] = [_condition(one) for one in write.put]
    conditions += [{"type": kind, "$patch": "delete"} for kind in write.gone]
    request = Request(
        "PATCH",
        NODES / write.node / "status",
        body={"metadata": {"uid": write.uid}, "status": {"conditions": conditions}},
        content_type=STRATEGIC_PATCH,
    )
    _show(connection, guard, request, write)


def _show(
    connection: Connection, guard: Guard, request: Request, write: ConditionsWrite | LabelsWrite
) -> None:
    """Send a patch that names the UID of the node; Conflict if that is another one."""
    try:
        objects.send(connection, guard, request, patience=SHOWN_PATIENCE)
    except Rejected as error:
        # A wrong UID is a 422.
        if read_node(connection, write.node, Wanted(frozenset(), "")).uid == write.uid:
            raise
        raise Conflict(f"node {write.node} was deleted and created again", status=409) from error


def _unless_denied(node: str, kept: str, send: Callable[[], object], advice: str = "") -> str:
    """Send a write that only shows something; return what people should know if a policy denies it."""
    try:
        send()
    except (Forbidden, Rejected) as error:
        if not is_denied(error):
            raise
        said = f"{kept}: {error}{advice}"
        log.warning("node %s: %s", node, said)
        return said
    return ""


class LabelWriter:
    """Sets labels that only show something. After each try that does not stay, the pause is longer."""

    def __init__(
        self, connection: Connection, guard: Guard, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Use this connection; `clock` is in seconds."""
        self._connection, self._guard, self._clock = connection, guard, clock
        self._written: OrderedDict[str, tuple[Mapping[str, str], int, float]] = OrderedDict()

    def write(self, write: LabelsWrite) -> str:
        """Set the labels, and return what people should know, empty if they were written.

        A pass asks for the same again only if it did not stay. A denial by an admission policy is no error.
        Raises Conflict if the node was deleted and created again, NotFound if it is gone.
        """
        now = self._clock()
        labels, times, until = self._written.get(write.uid, (write.labels, 0, now))
        if labels != write.labels:
            times = 0
        elif now < until:
            names = ", ".join(sorted(labels))
            return f"the labels did not stay ({names}), and are written again in {int(until - now) + 1}s"
        pause = FIRST_PAUSE.total_seconds() * 2 ** min(times, 20)
        self._written[write.uid] = (write.labels, times + 1, now + pause)
        self._written.move_to_end(write.uid)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)
        return self._send(write)

    def _send(self, write: LabelsWrite) -> str:
        # Without a resourceVersion: nobody else writes these labels.
        body = {"metadata": {"uid": write.uid, "labels": dict(write.labels)}}
        request = Request("PATCH", NODES / write.node, body=body, content_type=STRATEGIC_PATCH)
        what = f"the labels of the node stay as they are ({', '.join(sorted(write.labels))})"
        return _unless_denied(write.node, what, partial(_show, self._connection, self._guard, request, write))


def patch_taint(connection: Connection, guard: Guard, write: TaintWrite) -> str:
    """Add or remove one taint, and return what people should know, empty if the node is as wanted.

    Each try reads the node, and every other taint stays with all of its fields. Raises NotFound if the node
    is gone, also if another one has its name, and Conflict if other clients keep writing its taints. A denial
    by an admission policy is no error, because the taint only shows something.
    """
    wanted = Wanted(frozenset(), "")
    lists = ListChanges(taints=(write.taint,)) if write.wanted else ListChanges(gone_taints=(write.taint,))

    def send() -> None:
        node = node_of(connection.send(Request("GET", NODES / write.node, accept=PROTOBUF)), wanted)
        if node.uid != write.uid:
            raise NotFound(f"node {write.node} was deleted and created again", status=404)
        # One with another value stays as it is.
        if any((taint.key, taint.effect) == _identity(write) for taint in node.taints) is write.wanted:
            return
        patch = Patch(write.uid)
        _change_lists(patch, node, lists)
        guard()
        send_patch(connection, NODES / write.node, patch)

    tries = partial(patiently, send, patience=SHOWN_PATIENCE, sleep=connection.sleep)
    settled = partial(write_until_settled, tries, sleep=connection.sleep)
    what = f"the taints of the node stay as they are ({write.taint.key})"
    return _unless_denied(write.node, what, settled, f"; {_TAINT_ADVICE}")


def _identity(write: TaintWrite) -> tuple[str, str]:
    return write.taint.key, write.taint.effect


def _as_sent(taint: Taint) -> dict[str, str | None]:
    return {"key": taint.key, "effect": taint.effect, "value": taint.value or None}


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


def _difference(node: Node, write: NodeWrite) -> str:
    if node.uid != write.uid:
        return "it was deleted and created again"
    if node.unschedulable != write.seen_unschedulable:
        return "someone cordoned it" if node.unschedulable else "someone uncordoned it"
    used = changed_for_checks(node, write)
    if used:
        return f"someone changed {', '.join(used)}, which a check of its profiles read"
    return f"someone changed the keys of {write.own_prefix} on it"
