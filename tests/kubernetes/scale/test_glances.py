"""A glance at a node sees whether anything has changed but heartbeats and the version."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kubernetes.scale.glances import NodeForm
from reconciler.kubernetes.wire import protobuf
from reconciler.model.errors import Rejected
from reconciler.model.node import Node, Wanted
from reconciler.model.values import replace
from tests.support import shapes

PREFIX = "node-maintenance.dev"
READ = frozenset({"Ready", "VMEventScheduled"})
KEYS = ["a", "b.example", "é", "other.example/record"]
WANTED = [
    Wanted(READ, PREFIX),
    Wanted(READ, PREFIX, labels=frozenset({"a"}), annotations=frozenset({"b.example"})),
    Wanted(READ, PREFIX, labels=frozenset({"é"}), names=frozenset({"record"}), capacity=True),
]
FORMS = [NodeForm(wanted) for wanted in WANTED]
forms = st.sampled_from(FORMS)
some_moments = st.sampled_from(["1999-01-01T00:00:00Z", "2026-05-01T00:00:00Z", "2026-05-01T00:05:00Z"])
pairs = st.dictionaries(st.sampled_from(KEYS) | shapes.names, st.sampled_from(["", "1", "é"]), max_size=4)
words = st.sampled_from(["", "True", "é"])


def condition(kind: str) -> st.SearchStrategy[shapes.Object]:
    """As the API server writes it: all its texts are there."""
    texts = {"type": st.just(kind), "status": words, "reason": words, "message": words}
    times = {"lastHeartbeatTime": some_moments, "lastTransitionTime": some_moments}
    return st.fixed_dictionaries(texts, optional=times)


PARTS: dict[str, st.SearchStrategy[Any]] = {
    "metadata.name": words,
    "metadata.uid": words,
    "metadata.resourceVersion": words,
    "metadata.labels": pairs,
    "metadata.annotations": pairs,
    "metadata.finalizers": shapes.some(words),
    "spec.providerID": words,
    "spec.unschedulable": st.booleans(),
    "spec.taints": shapes.some(st.fixed_dictionaries({"key": words, "value": words, "effect": words})),
    "status.allocatable": shapes.quantities,
    "status.conditions": shapes.some(st.sampled_from([*sorted(READ), "Other"]).flatmap(condition)),
    "status.nodeInfo": st.fixed_dictionaries({"bootID": words, "kubeletVersion": words}),
}


def encoded(document: shapes.Object) -> bytes:
    """The node as the API server encodes it: maps have the order of their keys."""
    message = protobuf.Node.FromString(shapes.encoded(protobuf.Node(), document))
    result: bytes = message.SerializeToString(deterministic=True)
    return result


def steady(node: Node) -> Node:
    """The node without what changes with each update of its kubelet."""
    conditions = tuple(
        replace(
            each, heartbeat=None, unreadable=tuple(part for part in each.unreadable if part != "heartbeat")
        )
        for each in node.conditions
    )
    return replace(node, resource_version="", conditions=conditions)


documents = st.fixed_dictionaries(PARTS).map(
    lambda parts: {
        above: {path.partition(".")[2]: value for path, value in parts.items() if path.startswith(above)}
        for above in ("metadata", "spec", "status")
    }
)


@pytest.mark.parametrize("path", PARTS)
@given(documents, st.data(), forms)
def test_the_same_mark_means_that_nothing_changed_but_versions_and_heartbeats(
    path: str, before: shapes.Object, data: st.DataObject, form: NodeForm
) -> None:
    after = copy.deepcopy(before)
    above, part = path.split(".")
    after[above][part] = data.draw(PARTS[path])
    first, second = form.glance(encoded(before)), form.glance(encoded(after))
    node, newer = form.node(encoded(before)), form.node(encoded(after))

    assert first.mark != second.mark or second.renewed(node) == newer
    assert (second.renewed(node) == newer) == (steady(node) == steady(newer))


@given(documents, words, some_moments, shapes.some(condition("Other")), forms)
def test_heartbeats_versions_and_conditions_that_are_not_read_leave_the_mark(
    document: shapes.Object, version: str, beat: str, unread: list[shapes.Object], form: NodeForm
) -> None:
    after = copy.deepcopy(document)
    after["metadata"]["resourceVersion"] = version
    for each in after["status"]["conditions"]:
        each["lastHeartbeatTime"] = beat
    after["status"]["conditions"][:0] = unread

    assert form.glance(encoded(after)).mark == form.glance(encoded(document)).mark


@given(shapes.nodes, forms)
def test_a_glance_is_of_any_node_that_can_be_read(document: shapes.Object, form: NodeForm) -> None:
    glance, node = form.glance(encoded(document)), form.node(encoded(document))

    assert (glance.name, glance.uid, glance.resource_version) == (node.name, node.uid, node.resource_version)
    assert glance.renewed(node) == node


def test_a_label_that_becomes_an_annotation_is_a_change() -> None:
    ours = {f"{PREFIX}/x": "1"}
    form = FORMS[0]

    marks = {form.glance(encoded({"metadata": {kind: ours}})).mark for kind in ("labels", "annotations")}
    assert len(marks) == 2


def test_a_text_that_is_no_utf_8_is_no_error_and_a_broken_node_is_one() -> None:
    message = protobuf.GlancedNode()
    message.metadata.name = b"\xff"
    message.status.conditions.append(b"\n\x05Ready\x32\x01\xff")
    glance = FORMS[0].glance(message.SerializeToString())

    assert glance.name == FORMS[0].node(message.SerializeToString()).name
    for broken in (b"\x0a\xff", b"\x1a\x04\x22\x02\x12\xff"):
        with pytest.raises(Rejected):
            FORMS[0].glance(broken)


def test_a_condition_counts_wherever_its_type_stands() -> None:
    message = protobuf.GlancedNode()
    message.status.conditions.append(b"\x12\x04True\n\x05Ready\x1a\x02\x08\x05")
    turned = message.SerializeToString()

    assert FORMS[0].glance(turned).renewed(FORMS[0].node(turned)) == FORMS[0].node(turned)
    assert len(FORMS[0].glance(turned).beats) == 1


def test_a_condition_that_is_gone_is_a_change() -> None:
    kept, gone = ({"type": kind, "status": "True"} for kind in ("Ready", "VMEventScheduled"))
    form = FORMS[0]
    before = form.node(encoded({"metadata": {}, "status": {"conditions": [kept, gone]}}))
    after = encoded({"metadata": {}, "status": {"conditions": [kept]}})

    assert form.glance(after).renewed(before) != form.node(after)
