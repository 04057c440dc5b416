"""The pods that come back to a cordoned node: their owner puts another one there after each eviction."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

from reconciler.model.pod import Pod

MOST = 3
"""How often a pod may come back and be evicted again, if it does not tolerate the cordon.

A scheduler that has not seen the cordon yet can put one there. A Deployment with `spec.nodeName` in its
template, and a scheduler that ignores cordons, put each new pod there.
"""


class Returns(Struct):
    """What is known of the owners whose pods a drain has evicted, over all attempts at the node.

    `left` has the UIDs of the pods that came back and are not evicted any more.
    """

    left: set[str] = field(default_factory=set)
    _evicted: set[str] = field(default_factory=set)
    _first: Counter[str] = field(default_factory=Counter)
    _back: Counter[str] = field(default_factory=Counter)
    _before: frozenset[str] = frozenset()

    def continue_after(self, former: Returns, seen: frozenset[str]) -> None:
        """Count on from an attempt that has ended; `seen` are the UIDs of the pods that it had to move."""
        self.left, self._evicted = set(former.left), set(former._evicted)
        self._first, self._back, self._before = former._first.copy(), former._back.copy(), seen

    def sent(self, pod: Pod) -> None:
        """Note that the eviction of a pod is sent. Its replacement may be seen before the answer."""
        self._evicted.add(_owner(pod))

    def arrived(self, pod: Pod, *, at_start: bool) -> None:
        """Note a pod that is seen for the first time. `at_start`: it was there when the drain began."""
        owner = _owner(pod)
        if pod.uid in self._before:
            return
        if owner not in self._evicted or (at_start and not self._before):
            self._first[owner] += 1
            return
        self._back[owner] += 1
        if pod.tolerates_cordon or self._back[owner] > MOST * self._first[owner]:
            self.left.add(pod.uid)

    def gone(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self.left.discard(uid)


def _owner(pod: Pod) -> str:
    """Return the key of the owner. The owner of a pod without one is whoever creates it by the same name."""
    return pod.key if pod.owner is None else f"{pod.namespace} {pod.owner.uid or pod.owner}"
