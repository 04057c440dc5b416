"""Records that their node can't hold: which text counts, and what has no room."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.kubernetes.kept_records import (
    MOST,
    Change,
    Kept,
    dump,
    load,
    patch_node,
    sign,
    unreadable,
    with_record,
)
from reconciler.model.errors import Forbidden
from reconciler.model.keys import keys_of
from reconciler.model.node import Node
from reconciler.model.record import Unreadable, record_of
from reconciler.model.writes import NodeWrite, WriteAnswer, node_write
from tests.support.builders import PREFIX
from tests.support.builders import node as a_node

KEYS = keys_of(PREFIX)
DENIED = Forbidden('admission webhook "a" denied the request: no', status=403)


class Cluster:
    """A cluster that denies records on nodes."""

    def __init__(self, kept: Mapping[str, Kept] | None = None, *, denies_all: bool = False) -> None:
        self.data = dump(kept or {})
        self.denies_all = denies_all
        self.sent: list[NodeWrite] = []

    def send(self, write: NodeWrite, *, dry_run: bool = False) -> WriteAnswer:
        if self.denies_all or write.annotations.get(KEYS.record):
            raise DENIED
        if not dry_run:
            self.sent.append(write)
        return WriteAnswer("", frozenset())

    def change(self, change: Change) -> None:
        self.data = dump(change(load(self.data)))

    def patch(self, node: Node, text: str | None, nodes: frozenset[str] = frozenset()) -> None:
        write = node_write(node, PREFIX, unschedulable=text is not None, annotations={KEYS.record: text})
        patch_node(self.send, self.change, write, nodes)


def marked(text: str) -> Node:
    return a_node(labels={KEYS.record_kept: sign(text)})


def read(node: Node, kept: Mapping[str, Kept]) -> str | None:
    return with_record(node, PREFIX, kept).annotations.get(KEYS.record)


def test_the_label_of_the_node_says_which_text_counts() -> None:
    kept = {a_node().name: Kept(a_node().uid, ("first", "second"))}
    assert read(marked("first"), kept) == "first"
    assert read(marked("second"), kept) == "second"
    assert read(marked("third"), kept) is None
    assert read(a_node(), kept) is None


def test_a_record_on_the_node_and_a_node_of_the_same_name_are_not_taken_for_it() -> None:
    node = marked("text")
    assert read(node, {node.name: Kept("another", ("text",))}) is None
    own = a_node(labels=dict(node.labels), annotations={KEYS.record: "own"})
    assert read(own, {node.name: Kept(node.uid, ("text",))}) == "own"


def test_without_the_right_to_read_it_the_record_is_unreadable() -> None:
    assert isinstance(record_of(unreadable(marked("text"), PREFIX), PREFIX), Unreadable)
    assert unreadable(a_node(), PREFIX) == a_node()


def test_the_text_that_counts_stays_until_the_node_names_the_next() -> None:
    node = a_node()
    cluster = Cluster()
    cluster.patch(node, "first")
    assert load(cluster.data)[node.name].texts == ("first",)
    assert cluster.sent[-1].labels == {KEYS.record_kept: sign("first")}
    cluster.patch(with_record(marked("first"), PREFIX, load(cluster.data)), "second")
    assert load(cluster.data)[node.name].texts == ("first", "second")
    cluster.patch(with_record(marked("second"), PREFIX, load(cluster.data)), None)
    assert cluster.data == ""
    assert cluster.sent[-1].labels == {KEYS.record_kept: None}


def test_without_room_the_first_refusal_is_raised_and_nothing_is_written() -> None:
    cluster = Cluster({f"node-{number}": Kept("uid", ("text",)) for number in range(MOST)})
    before = cluster.data
    with pytest.raises(Forbidden, match="denied the request: no"):
        cluster.patch(a_node(), "text")
    assert (cluster.data, cluster.sent) == (before, [])


def test_a_record_of_a_cordon_that_is_refused_too_is_not_kept() -> None:
    cluster = Cluster(denies_all=True)
    with pytest.raises(Forbidden):
        cluster.patch(a_node(), "text")
    assert cluster.data == ""


def test_records_of_nodes_that_are_gone_make_room() -> None:
    cluster = Cluster({f"node-{number}": Kept("uid", ("text",)) for number in range(MOST)})
    cluster.patch(a_node(), "text", frozenset({"node-3"}))
    assert sorted(load(cluster.data)) == sorted([a_node().name, "node-3"])


@pytest.mark.parametrize("text", ["", None, "{", "[1]", '{"a":1}', '{"a":{"uid":"u"}}', "null"])
def test_a_text_that_can_t_be_read_is_taken_for_none(text: str | None) -> None:
    assert load(text) == {}
