"""The shared watch of pods begins with the first node, and ends with the last one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.kubernetes.scale import pod_watches
from reconciler.kubernetes.scale.pod_watches import NodePods, SharedPods


class Watch:
    """A watch that shows nothing until it is left, and notes that."""

    made: list[Watch]

    def __init__(self, *_: object) -> None:
        self._over = threading.Event()
        self.made.append(self)

    def __enter__(self) -> Iterator[None]:
        self._over.wait(30)
        return iter(())

    def __exit__(self, *_: object) -> None:
        """Do nothing."""

    @property
    def left(self) -> bool:
        """Whether it was left."""
        return self._over.is_set()

    def leave(self) -> None:
        """Note it."""
        self._over.set()


@pytest.fixture
def watches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Watch]]:
    Watch.made = []
    monkeypatch.setattr(pod_watches, "Watching", Watch)
    yield Watch.made
    for watch in Watch.made:
        watch.leave()


def shared() -> SharedPods:
    nothing: Any = None
    return SharedPods(nothing, nothing, lambda: None)


def test_the_watch_ends_with_the_last_node_and_another_begins_with_the_next(watches: list[Watch]) -> None:
    pods = shared()
    first, second = NodePods(pods, "a"), NodePods(pods, "b")
    pods.join(first)
    pods.join(second)
    pods.leave(first)
    assert (pods.is_watched("a"), pods.is_watched("b")) == (False, True)
    assert [one.left for one in watches] == [False]

    pods.leave(second)
    assert not pods.is_watched("b")
    assert [one.left for one in watches] == [True]
    pods.join(first)
    assert [one.left for one in watches] == [True, False]


def test_two_drains_of_one_node_are_told_each_until_it_leaves(watches: list[Watch]) -> None:
    pods = shared()
    first, second = NodePods(pods, "a"), NodePods(pods, "a")
    pods.join(first)
    pods.join(second)
    pods.leave(first)
    pods.begin()

    assert pods.is_watched("a")
    assert (first.queue.qsize(), second.queue.qsize()) == (0, 1)
    assert [one.left for one in watches] == [False]


def test_the_next_watch_is_not_taken_for_one_that_goes_on(watches: list[Watch]) -> None:
    pods = shared()
    first, second = NodePods(pods, "a"), NodePods(pods, "b")
    pods.join(first)
    pods.begin()
    pods.leave(first)
    pods.join(second)

    # Only its own begin says that it misses nothing.
    assert second.queue.qsize() == 0
    assert len(watches) == 2
