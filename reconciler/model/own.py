"""Which keys of a node a decision used, so that a write notices a change since the node was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.model.plan import ListChanges, NodeWrite

NO_LISTS = ListChanges()


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


def shows_intent(node: Node, write: NodeWrite) -> bool:
    """Whether the node is already as the write wants it."""
    return (
        write.unschedulable in (None, node.unschedulable)
        and _agrees(node.labels, write.labels)
        and _agrees(node.annotations, write.annotations)
        and set(write.lists.of_finalizers(node.finalizers)) == set(node.finalizers)
        and set(write.lists.of_taints(node.taints)) == set(node.taints)
    )


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


def _agrees(have: Mapping[str, str], wanted: Mapping[str, str | None]) -> bool:
    return all(have.get(key) == value for key, value in wanted.items())
