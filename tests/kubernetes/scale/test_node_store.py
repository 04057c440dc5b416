"""The store of nodes: after any watch it is what the API server has, and never goes back."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kubernetes.scale import node_store
from reconciler.kubernetes.scale.glances import Glance
from reconciler.kubernetes.scale.node_store import COUNT_EVERY, FRESH, NodeChange, NodeStore, Update
from reconciler.model.node import Node, Wanted
from reconciler.model.values import replace
from tests.support import builders

WANTED = Wanted(frozenset({"Ready"}), builders.PREFIX)
NAMES = ("a", "b", "c")


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def _store(*nodes: Node, clock: _Clock | None = None) -> NodeStore:
    store = NodeStore(clock or _Clock())
    store.begin(WANTED)
    list(store.listed(nodes, "1"))
    return store


def _node(name: str = "a", version: int = 1, uid: str = "u", *, cordoned: bool = False) -> Node:
    return replace(
        builders.node(name, uid=f"{name}-{uid}", unschedulable=cordoned), resource_version=str(version)
    )


def _update(node: Node) -> Update:
    mark = hash((node.uid, node.unschedulable))
    return Update(Glance(node.name, node.uid, node.resource_version, mark, (None,)), lambda: node)


def _nodes(store: NodeStore) -> dict[str, Node]:
    followed = store.followed(WANTED)
    assert followed is not None
    return dict(followed.nodes)


class _Server:
    """Nodes that change at random, and the events of that, by their versions."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.version = 1
        self.nodes: dict[str, Node] = {}

    def change(self) -> tuple[Node, bool]:
        """Change a node; return its event: the node, and whether it is gone."""
        self.version += 1
        name = self._chance.choice(NAMES)
        before = self.nodes.pop(name, None)
        if before is not None and self._chance.random() < 0.3:
            return replace(before, resource_version=str(self.version)), True
        uid = before.uid.rpartition("-")[2] if before is not None else str(self.version)
        node = _node(name, self.version, uid, cordoned=self._chance.random() < 0.5)
        self.nodes[name] = node
        return node, False


def _delivered(events: list[tuple[Node, bool]], chance: random.Random) -> Iterator[tuple[Node, bool]]:
    """Yield the events as a bad watch does: some late, doubled or lost."""
    late: list[tuple[Node, bool]] = []
    for event in events:
        fate = chance.choice(("kept", "kept", "doubled", "late", "lost"))
        yield from {"kept": [event], "doubled": [event, event]}.get(fate, [])
        late += [event] if fate == "late" else []
        if chance.random() < 0.3:
            yield from late
            late.clear()
    yield from late


@given(st.integers(0, 10**6))
def test_after_a_list_the_store_is_what_the_server_has_whatever_the_watch_and_our_writes_showed(
    seed: int,
) -> None:
    chance = random.Random(seed)
    server, store = _Server(chance), _store()
    seen: dict[str, Node] = {}
    for _ in range(4):
        events = [server.change() for _ in range(chance.randrange(12))]
        for node, gone in _delivered(events, chance):
            if not gone and chance.random() < 0.2:
                store.note_written(node)
            store.saw(_update(node), gone=gone)
            for name, now in _nodes(store).items():
                before = seen.get(name)
                assert before is None or before.uid != now.uid or _version(now) >= _version(before)
                seen[name] = now
        list(store.listed(server.nodes.values(), str(server.version)))
        assert _nodes(store) == server.nodes
        seen = dict(server.nodes)


def _version(node: Node) -> int:
    return int(node.resource_version)


def test_what_changed_is_told_once() -> None:
    store = _store(_node("a"), _node("b"))
    assert store.followed(WANTED) is not None

    store.saw(_update(_node("a", 2, cordoned=True)), gone=False)
    store.saw(_update(_node("b", 3)), gone=True)
    store.saw(_update(_node("c", 4)), gone=False)

    followed = store.followed(WANTED)
    assert followed is not None
    assert followed.changed == frozenset({"a", "b", "c"})
    again = store.followed(WANTED)
    assert again is not None
    assert again.changed == frozenset()


def test_a_heartbeat_makes_no_node_of_what_came_and_wakes_nobody() -> None:
    store = _store(_node("a"))
    store.saw(_update(_node("a", 2)), gone=False)
    beat = replace(_update(_node("a", 3)), read=lambda: pytest.fail("it was read"))

    assert store.saw(beat, gone=False) is None
    assert _nodes(store)["a"].resource_version == "3"


def test_a_pass_reads_its_own_write_before_the_watch_shows_it() -> None:
    store = _store(_node("a"))
    store.note_written(_node("a", 5, cordoned=True))

    assert _nodes(store)["a"].unschedulable
    # An older event comes after it.
    assert store.saw(_update(_node("a", 4)), gone=False) is None
    assert _nodes(store)["a"].unschedulable
    shown = replace(_update(_node("a", 5, cordoned=True)), read=lambda: pytest.fail("it was read"))
    assert store.saw(shown, gone=False) == NodeChange("a")
    assert store.saw(shown, gone=False) is None
    for version, cordoned in ((4, True), (6, False)):
        store.saw(_update(_node("a", version)), gone=False)
        assert _nodes(store)["a"].unschedulable is cordoned


def test_a_late_answer_to_a_write_brings_no_node_back() -> None:
    store = _store(_node("a"))
    store.saw(_update(_node("a", 6)), gone=True)
    store.note_written(_node("a", 5))

    assert _nodes(store) == {}


def test_a_node_recreated_under_its_name_takes_the_place_of_the_first() -> None:
    store = _store(_node("a"))
    store.saw(_update(_node("a", 3, "second")), gone=False)
    store.saw(_update(_node("a", 2)), gone=True)

    assert _nodes(store)["a"].uid == "a-second"


def test_a_silent_watch_is_not_believed() -> None:
    clock = _Clock()
    store = _store(_node("a"), clock=clock)
    clock.now = FRESH + 1
    assert store.followed(WANTED) is None

    store.heard()
    assert store.followed(WANTED) is not None
    store.lost()
    store.heard()
    assert store.followed(WANTED) is None


def test_a_count_that_differs_twice_makes_a_new_list() -> None:
    clock = _Clock()
    store = _store(_node("a"), clock=clock)
    assert not store.count_is_due()
    for stale in (False, True):
        clock.now += COUNT_EVERY
        store.heard()
        assert store.count_is_due()
        assert not store.count_is_due()
        store.counted(2)
        assert store.stale is stale
    list(store.listed([_node("a"), _node("b")], "9"))
    assert not store.stale


def test_other_parts_of_nodes_are_not_followed() -> None:
    assert _store(_node("a")).followed(replace(WANTED, system_uuid=True)) is None


def test_a_pass_waits_for_the_first_list(monkeypatch: pytest.MonkeyPatch) -> None:
    store = NodeStore()
    store.begin(WANTED)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(store.followed(WANTED)))
    thread.start()
    list(store.listed([_node("a")], "1"))
    thread.join(30)
    assert found[0] is not None

    monkeypatch.setattr(node_store, "FIRST_LIST", 0.01)
    store.begin(WANTED)
    assert store.followed(WANTED) is None


def test_an_agent_that_publishes_other_events_counts_as_one_that_works_for_a_while() -> None:
    clock = _Clock()

    def published(text: str, version: int) -> Update:
        node = replace(_node(version=version), annotations={f"{builders.PREFIX}/imds": text})
        return Update(Glance(node.name, node.uid, node.resource_version, version, (None,)), lambda: node)

    store = _store(_node(), clock=clock)
    assert store.published(60.0) == set()
    for version, text in enumerate(("first", "second"), start=2):
        clock.now += 100.0
        store.saw(published(text, version), gone=False)
        assert store.published(60.0) == {"a"}
        clock.now += 61.0
        assert store.published(60.0) == set()
