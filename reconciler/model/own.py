"""Which keys of a node a decision used, so that a write notices a change since the node was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.model.keys import keys_of
from reconciler.model.node import MECHANIC_LABEL, Node
from reconciler.model.writes import ListChanges, NodeWrite

NO_LISTS = ListChanges()

CORDON = "cordon"
LISTS = "lists"

REWRITTEN = "removed:record"
"""What `rewritten` names: a record that a pass writes again, because somebody has removed it."""


def own_keys(node: Node, prefix: str, extra_labels: Iterable[str] = ()) -> dict[str, str]:
    """Return our labels and annotations with their values, as `NodeWrite.seen_own` holds them.

    Ours are all keys `prefix/...`, and the labels in `extra_labels` (those of adopted tools, which a write
    names). Labels become `label:<key>`, annotations `annotation:<key>`; absent keys have no entry.
    """
    keys = keys_of(prefix)
    extra = frozenset(extra_labels)
    labels = {f"label:{key}": value for key, value in node.labels.items() if keys.owns(key) or key in extra}
    annotations = {f"annotation:{key}": value for key, value in node.annotations.items() if keys.owns(key)}
    return labels | annotations


def used_keys(node: Node, labels: Iterable[str], annotations: Iterable[str]) -> dict[str, str | None]:
    """Return these keys of the node with their values, as `NodeWrite.seen_by_checks` holds them.

    Labels become `label:<key>`, annotations `annotation:<key>`; an absent key has the value None.
    """
    found = {f"label:{key}": node.labels.get(key) for key in labels}
    return found | {f"annotation:{key}": node.annotations.get(key) for key in annotations}


def node_write(
    node: Node,
    prefix: str,
    *,
    unschedulable: bool | None = None,
    labels: Mapping[str, str | None] | None = None,
    annotations: Mapping[str, str | None] | None = None,
    lists: ListChanges = NO_LISTS,
) -> NodeWrite:
    """Return the patch with these changes to the node as it was read; see NodeWrite."""
    named = labels or {}
    return NodeWrite(
        node=node.name,
        uid=node.uid,
        resource_version=node.resource_version,
        seen_unschedulable=node.unschedulable,
        seen_own=own_keys(node, prefix, named),
        own_prefix=prefix,
        unschedulable=unschedulable,
        labels=named,
        annotations=annotations or {},
        lists=lists,
    )


def changes(write: NodeWrite) -> frozenset[str]:
    """Return the names of what a write changes: `cordon`, `lists`, `label:<key>` and `annotation:<key>`."""
    named = {f"label:{key}" for key in write.labels} | {f"annotation:{key}" for key in write.annotations}
    cordon = {CORDON} if write.unschedulable is not None else set()
    return frozenset(named | cordon | ({LISTS} if write.lists.any else set()))


def essential(write: NodeWrite) -> frozenset[str]:
    """Return those of `changes` without which the action of the write has not happened.

    Other labels and annotations of ours only show something.
    """
    keys = keys_of(write.own_prefix)
    kept = {CORDON, LISTS, f"annotation:{keys.record}", f"annotation:{keys.workflow_data}"}
    kept.add(f"label:{keys.record_kept}")
    of_triggers = {f"label:{key}" for key in labels_of_triggers(write)}
    return changes(write) & (kept | of_triggers)


def rewritten(write: NodeWrite) -> frozenset[str]:
    """Return `REWRITTEN` if a write only gives a node in maintenance the record that it does not have.

    The cordon or the label with the state shows the maintenance. A write that cordons waits for nothing.
    """
    keys, seen = keys_of(write.own_prefix), write.seen_own
    had, shown = f"annotation:{keys.record}" in seen, f"label:{keys.state}" in seen
    again = (write.seen_unschedulable or shown) and not had and bool(write.annotations.get(keys.record))
    return frozenset({REWRITTEN} if again and not write.unschedulable else ())


def labels_of_triggers(write: NodeWrite) -> frozenset[str]:
    """Return the labels that a workflow is to change: without them its step has not happened."""
    keys = keys_of(write.own_prefix)
    return frozenset(key for key in write.labels if not keys.owns(key) and key != MECHANIC_LABEL)


def not_kept(node: Node, write: NodeWrite) -> frozenset[str]:
    """Return those of `changes` that the node, as the answer to the write shows it, does not have."""
    kept = {f"label:{key}" for key, text in write.labels.items() if node.labels.get(key) == text}
    kept |= {
        f"annotation:{key}" for key, text in write.annotations.items() if node.annotations.get(key) == text
    }
    if write.unschedulable == node.unschedulable:
        kept.add(CORDON)
    if _has_lists(node, write):
        kept.add(LISTS)
    return changes(write) - kept


def shows_part(node: Node, write: NodeWrite) -> bool:
    """Whether the node has the record that the write has, but not all of it stayed.

    All else that the decision used is as it was seen, or as the write wants it.
    """
    key = keys_of(write.own_prefix).record
    fresh = (write.annotations.get(key) or "") != write.seen_own.get(f"annotation:{key}", "")
    landed = fresh and f"annotation:{key}" in changes(write) - not_kept(node, write)
    if node.uid != write.uid or not landed or changed_for_checks(node, write):
        return False
    wanted = {f"label:{key}" for key in write.labels} | {f"annotation:{key}" for key in write.annotations}
    have, seen = own_keys(node, write.own_prefix, write.labels), write.seen_own
    others = (have.keys() | seen.keys()) - wanted
    return all(have.get(key) == seen.get(key) for key in others)


def taken_back(node: Node, write: NodeWrite) -> NodeWrite | None:
    """Return the write that takes back what stayed of a write, None if nothing did.

    `node` is as the answer shows it. Keys of others and lists stay: the next try sets them again.
    """
    stayed = changes(write) - not_kept(node, write)
    labels = {key: write.seen_own.get(f"label:{key}") for key in write.labels if f"label:{key}" in stayed}
    annotations = {
        key: write.seen_own.get(f"annotation:{key}")
        for key in write.annotations
        if f"annotation:{key}" in stayed and keys_of(write.own_prefix).owns(key)
    }
    cordon = write.seen_unschedulable if CORDON in stayed and not _is_quiet(write) else None
    if not labels and not annotations and cordon is None:
        return None
    return node_write(node, write.own_prefix, unschedulable=cordon, labels=labels, annotations=annotations)


def _is_quiet(write: NodeWrite) -> bool:
    return write.unschedulable == write.seen_unschedulable


def shows_intent(node: Node, write: NodeWrite) -> bool:
    """Whether the node is already as the write wants it."""
    return not not_kept(node, write)


def is_as_seen(node: Node, write: NodeWrite) -> bool:
    """Whether UID, `unschedulable` and the keys that the decision used are unchanged since then."""
    return (
        node.uid == write.uid
        and node.unschedulable == write.seen_unschedulable
        and own_keys(node, write.own_prefix, write.labels) == dict(write.seen_own)
        and not changed_for_checks(node, write)
    )


def changed_for_checks(node: Node, write: NodeWrite) -> tuple[str, ...]:
    """Return the keys of `seen_by_checks` that have another value by now, sorted."""
    have = used_keys(node, _of_kind("label", write), _of_kind("annotation", write))
    return tuple(
        sorted(key.split(":", 1)[1] for key, text in write.seen_by_checks.items() if have[key] != text)
    )


def annotations_seen(write: NodeWrite) -> frozenset[str]:
    """Return the annotations without our prefix that a write changes, or compares with what was seen."""
    return frozenset({*write.annotations, *_of_kind("annotation", write)})


def _of_kind(kind: str, write: NodeWrite) -> tuple[str, ...]:
    start = f"{kind}:"
    return tuple(key.removeprefix(start) for key in write.seen_by_checks if key.startswith(start))


def _has_lists(node: Node, write: NodeWrite) -> bool:
    finalizers, taints = write.lists.of_finalizers(node.finalizers), write.lists.of_taints(node.taints)
    return set(finalizers) == set(node.finalizers) and set(taints) == set(node.taints)
