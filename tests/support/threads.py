"""A simulated cluster that threads may use: one lock around it, watches that wait, and time that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from reconciler.model.node import Node
from reconciler.model.pod import Pod
from reconciler.model.ports import BudgetChange, PodChange
from reconciler.simulation.api import SimulatedApi
from reconciler.simulation.clock import SimulatedWatch, VirtualClock

_Item = TypeVar("_Item")


class ThreadedApi:
    """The Evictor port over a simulated cluster, for several threads at once."""

    def __init__(self, api: SimulatedApi) -> None:
        """Use this port of one thread."""
        self._api = api
        self.changed = threading.Condition(threading.RLock())
        """Held around every call, and notified after each; hold it to look at the cluster."""

    def node(self, name: str) -> Node | None:
        """Return one node as it is now."""
        return self._call(partial(self._api.node, name))

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """Return the pods of one node, or of all."""
        return self._call(partial(self._api.pods, node, placement=placement))

    def watch_pods(self, node: str) -> AbstractContextManager[Iterator[PodChange]]:
        """List, then watch the pods of one node."""
        return _WaitingWatch(self._call(partial(self._api.watch_pods, node)), self.changed)

    def watch_budgets(self, namespace: str = "") -> AbstractContextManager[Iterator[BudgetChange]]:
        """List, then watch the budgets of a namespace, or all."""
        return _WaitingWatch(self._call(partial(self._api.watch_budgets, namespace)), self.changed)

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """Evict a pod."""
        self._call(partial(self._api.evict, pod, grace=grace))

    def delete(self, pod: Pod, *, grace: int | None) -> None:
        """Delete a pod."""
        self._call(partial(self._api.delete, pod, grace=grace))

    def restart(self, pod: Pod, now: datetime) -> str:
        """Restart the pod's Deployment."""
        return self._call(partial(self._api.restart, pod, now))

    def attachments(self, node: str) -> tuple[str, ...]:
        """Return the volumes still attached."""
        return self._call(partial(self._api.attachments, node))

    def _call(self, request: Callable[[], _Item]) -> _Item:
        with self.changed:
            try:
                return request()
            finally:
                self.changed.notify_all()


class _WaitingWatch(AbstractContextManager[Iterator[_Item]]):
    """A watch that waits for more until it is left from any thread."""

    def __init__(self, watch: SimulatedWatch[_Item], changed: threading.Condition) -> None:
        self._watch = watch
        self._changed = changed
        self._left = False

    def __enter__(self) -> Iterator[_Item]:
        return self._each()

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._left = True
            self._watch.close()
            self._changed.notify_all()

    def _each(self) -> Iterator[_Item]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._left or self._watch.items or self._watch.error)
                if self._left:
                    return
                if not self._watch.items and self._watch.error is not None:
                    raise self._watch.error
                item = self._watch.items.popleft()
            yield item


@contextmanager
def running(api: ThreadedApi, clock: VirtualClock) -> Iterator[None]:
    """Let the cluster's time run as the machine's does."""
    over = threading.Event()

    def live() -> None:
        while not over.wait(0.005):
            with api.changed:
                clock.advance(datetime.now(UTC))
                api.changed.notify_all()

    thread = threading.Thread(target=live)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
