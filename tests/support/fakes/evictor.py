"""A cluster in memory behind the Evictor port: pods that end and come up elsewhere, budgets that count.

The arithmetic of budgets is the API server's (an eviction takes one of `disruptionsAllowed` at once, the
controller counts anew a little later), so an overdrawn budget is one that the real one could overdraw too.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import Condition, RLock
from types import TracebackType
from typing import Generic, Self, TypeVar

from reconciler.errors import Conflict, NotFound, ReconcilerError, Rejected, TooManyRequests
from reconciler.model.node import Node
from reconciler.model.pod import Owner, Pod, PodDisruptionBudget
from reconciler.model.ports import BudgetChange, BudgetGone, Listed, PodChange, PodGone
from reconciler.model.selector import LabelSelector

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
_TWO_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Request:
    """One write that reached the cluster; `cordoned` is what the node was at that moment."""

    at: datetime
    verb: str
    pod: str
    uid: str
    node: str
    cordoned: bool
    granted: bool
    grace: int | None = None


class FakeWatch(Generic[_Item]):
    """A watch that a thread may iterate and any thread may leave, or that a test polls."""

    def __init__(self, items: Iterable[_Item], forget: Callable[[FakeWatch[_Item]], None]) -> None:
        """Begin with what was listed."""
        self.items: deque[_Item] = deque(items)
        self.on_item: Callable[[], None] | None = None
        self._forget = forget
        self._changed = Condition()
        self._left = False
        self._error: ReconcilerError | None = None

    def tell(self, item: _Item) -> None:
        """Add one item."""
        with self._changed:
            self.items.append(item)
            self._changed.notify_all()
        if self.on_item is not None:
            self.on_item()

    def fail(self, error: ReconcilerError) -> None:
        """End it with an error."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def __enter__(self) -> Iterator[_Item]:
        return self._iterate()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._left = True
            self._changed.notify_all()
        self._forget(self)

    def _iterate(self) -> Iterator[_Item]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self.items or self._left or self._error)
                if self._left:
                    return
                if not self.items and self._error:
                    raise self._error
                item = self.items.popleft()
            yield item


@dataclass(slots=True)
class _BudgetSpec:
    budget: PodDisruptionBudget
    max_unavailable: int | None
    min_available: int | None
    expected: int = 0
    disrupted: set[str] = field(default_factory=set)


class FakeEvictor:
    """The Evictor port over pods and budgets in memory; time moves by `advance`.

    `ready_after` is how long a replacement takes, `lag` how long the disruption controller takes to count,
    `terminates_in` how long a pod takes to end (never longer than its grace), None: as long as its grace.
    `trouble` is asked before each request (verb, pod or None) and may return an error to raise.
    """

    def __init__(
        self,
        *,
        ready_after: float = 2.0,
        lag: float = 0.1,
        terminates_in: float | None = 1.0,
        spare_node: str = "spare",
    ) -> None:
        """Make an empty cluster with one node for replacements."""
        self.now = START
        self.lock = RLock()
        self.requests: list[Request] = []
        self.reads: list[str] = []
        self.restarts: list[str] = []
        self.overdrawn: list[str] = []
        self.attached: dict[str, tuple[str, ...]] = {}
        self.trouble: Callable[[str, Pod | None], ReconcilerError | None] = lambda verb, pod: None
        self.restart_refusal: str = ""
        self._ready_after = timedelta(seconds=ready_after)
        self._lag = timedelta(seconds=lag)
        self._terminates_in = terminates_in
        self._spare = spare_node
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._budgets: dict[str, _BudgetSpec] = {}
        self._pod_watches: dict[str, list[FakeWatch[PodChange]]] = {}
        self._budget_watches: list[FakeWatch[BudgetChange]] = []
        self._later: list[tuple[datetime, int, Callable[[], None]]] = []
        self._number = 0
        self._count_is_due = False
        self.add_node(spare_node)

    # Making it.

    def add_node(self, name: str, *, cordoned: bool = False, uid: str = "") -> Node:
        """Add a node, or put another one under its name."""
        node = Node(name, uid or f"uid-{name}", "1", unschedulable=cordoned)
        self._nodes[name] = node
        return node

    def cordon(self, name: str, *, cordoned: bool = True) -> None:
        """Cordon or uncordon."""
        with self.lock:
            self._nodes[name] = replace(self._nodes[name], unschedulable=cordoned)

    def remove_node(self, name: str) -> None:
        """Take a node away."""
        with self.lock:
            del self._nodes[name]

    def add_pod(self, pod: Pod) -> Pod:
        """Add a pod as it is."""
        with self.lock:
            self._pods[pod.uid] = pod
            self._tell_pod(pod)
            self._count_soon()
        return pod

    def deployment(
        self, name: str, node: str, count: int = 1, *, namespace: str = "shop", grace: int = 30
    ) -> list[Pod]:
        """Add pods of a Deployment, ready, on one node."""
        return [
            self.add_pod(
                Pod(
                    namespace,
                    f"{name}-{index}",
                    f"{namespace}/{name}-{index}#0",
                    node,
                    labels={"app": name},
                    owner=Owner("ReplicaSet", name, "apps/v1"),
                    phase="Running",
                    ready=True,
                    grace=grace,
                )
            )
            for index in range(count)
        ]

    def add_budget(
        self,
        name: str,
        *,
        namespace: str = "shop",
        app: str | None = None,
        max_unavailable: int | None = None,
        min_available: int | None = None,
    ) -> None:
        """Add a budget for the pods labelled `app` (its own name if not told), counted at once."""
        budget = PodDisruptionBudget(namespace, name, LabelSelector.of({"app": app or name}))
        with self.lock:
            expected = sum(budget.covers(pod) for pod in self._pods.values())
            self._budgets[budget.key] = _BudgetSpec(budget, max_unavailable, min_available, expected)
            self._count()

    def change_budget(self, key: str, *, max_unavailable: int) -> None:
        """Let it allow more or less from now on."""
        with self.lock:
            self._budgets[key].max_unavailable = max_unavailable
            self._budgets[key].min_available = None
            self._count()

    def remove_budget(self, key: str) -> None:
        """Delete it."""
        with self.lock:
            del self._budgets[key]
            for watch in self._budget_watches:
                watch.tell(BudgetGone(key))

    def break_watches(self, error: ReconcilerError) -> None:
        """End every watch with an error."""
        with self.lock:
            for watches in self._pod_watches.values():
                for pod_watch in watches:
                    pod_watch.fail(error)
            for budget_watch in self._budget_watches:
                budget_watch.fail(error)

    # Time.

    def next_change(self) -> datetime | None:
        """Tell when something happens by itself."""
        with self.lock:
            return self._later[0][0] if self._later else None

    def advance(self, now: datetime) -> None:
        """Let everything happen that happens until then."""
        with self.lock:
            while self._later and self._later[0][0] <= now:
                at, _, action = heapq.heappop(self._later)
                self.now = max(self.now, at)
                action()
            self.now = max(self.now, now)

    # The port.

    def node(self, name: str) -> Node | None:
        """See the port."""
        self._read("node", None)
        with self.lock:
            return self._nodes.get(name)

    def pods(self, node: str | None = None, *, placement: bool = False) -> tuple[Pod, ...]:
        """See the port."""
        self._read("pods", None)
        return self.there(node)

    def there(self, node: str | None = None) -> tuple[Pod, ...]:
        """Return the pods without a request."""
        with self.lock:
            return tuple(pod for pod in self._pods.values() if node is None or pod.node == node)

    def watch_pods(self, node: str) -> FakeWatch[PodChange]:
        """See the port."""
        self._read("watch pods", None)
        with self.lock:
            watches = self._pod_watches.setdefault(node, [])
            watch: FakeWatch[PodChange] = FakeWatch(
                [*self.there(node), Listed()], lambda one: _drop(watches, one)
            )
            watches.append(watch)
            return watch

    def watch_budgets(self) -> FakeWatch[BudgetChange]:
        """See the port."""
        self._read("watch budgets", None)
        with self.lock:
            listed = [spec.budget for spec in self._budgets.values()]
            watch: FakeWatch[BudgetChange] = FakeWatch(
                [*listed, Listed()], lambda one: _drop(self._budget_watches, one)
            )
            self._budget_watches.append(watch)
            return watch

    def evict(self, pod: Pod, *, grace: int | None) -> None:
        """See the port."""
        self._write("evict", pod, grace)

    def delete(self, pod: Pod, *, grace: int | None) -> None:
        """See the port."""
        self._write("delete", pod, grace)

    def restart(self, pod: Pod, now: datetime) -> str:
        """See the port; the new pod is ready after a while, and the old one goes then."""
        self._raise_trouble("restart", pod)
        with self.lock:
            if self.restart_refusal:
                raise Rejected(self.restart_refusal, status=422)
            name = pod.owner.name if pod.owner else ""
            self.restarts.append(f"{pod.namespace}/{name}")
            self._replace_pod(pod)
            self._after(self._ready_after + self._lag, lambda: self._terminate(pod.uid, pod.grace))
            return f"Deployment {pod.namespace}/{name}"

    def attachments(self, node: str) -> tuple[str, ...]:
        """See the port."""
        self._read("attachments", None)
        return self.attached.get(node, ())

    # How it works.

    def _read(self, verb: str, pod: Pod | None) -> None:
        self.reads.append(verb)
        self._raise_trouble(verb, pod)

    def _raise_trouble(self, verb: str, pod: Pod | None) -> None:
        error = self.trouble(verb, pod)
        if error is not None:
            raise error

    def _write(self, verb: str, pod: Pod, grace: int | None) -> None:
        with self.lock:
            error: ReconcilerError | None = self.trouble(verb, pod)
            if error is None:
                error = self._permission(verb, pod)
            node = self._nodes.get(pod.node)
            cordoned = node is not None and node.unschedulable
            self.requests.append(
                Request(self.now, verb, pod.key, pod.uid, pod.node, cordoned, error is None, grace)
            )
            if error is not None:
                raise error
            current = self._pods[pod.uid]
            self._terminate(pod.uid, current.grace if grace is None else grace)

    def _permission(self, verb: str, pod: Pod) -> ReconcilerError | None:
        named = next((one for one in self._pods.values() if one.key == pod.key), None)
        if named is None:
            return NotFound(f"pods {pod.name} not found", status=404)
        if named.uid != pod.uid:
            return Conflict("the UID in the precondition does not match", status=409)
        current = self._pods[pod.uid]
        if verb == "delete" or current.finished or current.phase == "Pending" or current.deleting_until:
            return None
        covering = [spec for spec in self._budgets.values() if spec.budget.covers(current)]
        if len(covering) > 1:
            return Rejected(_TWO_BUDGETS, status=500)
        for spec in covering:
            budget = spec.budget
            if not current.ready and budget.healthy >= budget.desired > 0:
                continue
            if budget.allowed <= 0:
                cause = (
                    f"The disruption budget {budget.name} needs {budget.desired} healthy pods"
                    f" and has {budget.healthy} currently"
                )
                return TooManyRequests(
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                    status=429,
                    reason="TooManyRequests",
                    causes=("DisruptionBudget", cause),
                )
            spec.disrupted.add(current.uid)
            spec.budget = replace(budget, allowed=budget.allowed - 1)
            self._tell_budget(spec.budget)
        return None

    def _terminate(self, uid: str, grace: int) -> None:
        pod = self._pods.get(uid)
        if pod is None:
            return
        until = self.now + timedelta(seconds=grace)
        if pod.deleting_until is None:
            self._pods[uid] = replace(pod, deleting_until=until, ready=False)
            self._check_budgets(pod)
            if pod.owner is not None and pod.owner.kind == "ReplicaSet" and not self._replaced(pod):
                self._replace_pod(pod)
            takes = grace if self._terminates_in is None else min(grace, self._terminates_in)
            if pod.labels.get("stuck") != "true" or grace == 0:
                self._after(timedelta(seconds=takes), lambda: self._remove(uid))
        else:
            # A second deletion can only shorten.
            shorter = min(pod.deleting_until, until)
            self._pods[uid] = replace(pod, deleting_until=shorter)
            if pod.labels.get("stuck") != "true" or grace == 0:
                self._after(max(timedelta(0), shorter - self.now), lambda: self._remove(uid))
        self._tell_pod(self._pods[uid])
        self._count_soon()

    def _remove(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is None:
            return
        for watch in list(self._pod_watches.get(pod.node, ())):
            watch.tell(PodGone(uid))
        if pod.owner is not None and pod.owner.kind == "StatefulSet":
            self._replace_pod(pod, name=pod.name)
        self._count_soon()

    def _replaced(self, pod: Pod) -> bool:
        return f"{pod.namespace}/{pod.owner.name if pod.owner else ''}" in self.restarts

    def _replace_pod(self, pod: Pod, name: str = "") -> None:
        self._number += 1
        name = name or f"{pod.owner.name if pod.owner else pod.name}-r{self._number}"
        uid = f"{pod.namespace}/{name}#{self._number}"
        new = replace(
            pod, name=name, uid=uid, node=self._spare, ready=False, phase="Pending", deleting_until=None
        )
        self._pods[uid] = new
        self._tell_pod(new)
        self._after(self._ready_after, lambda: self._become_ready(uid))

    def _become_ready(self, uid: str) -> None:
        if uid in self._pods and self._pods[uid].deleting_until is None:
            self._pods[uid] = replace(self._pods[uid], ready=True, phase="Running")
            self._tell_pod(self._pods[uid])
            self._count_soon()

    def _after(self, pause: timedelta, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._later, (self.now + pause, self._number, action))

    def _count_soon(self) -> None:
        if not self._count_is_due:
            self._count_is_due = True
            self._after(self._lag, self._count)

    def _healthy(self, spec: _BudgetSpec) -> int:
        return sum(
            pod.ready and pod.deleting_until is None and pod.uid not in spec.disrupted
            for pod in self._pods.values()
            if spec.budget.covers(pod)
        )

    def _desired(self, spec: _BudgetSpec) -> tuple[int, int]:
        # What the workloads ask for, however many pods there are meanwhile.
        expected = spec.expected
        if spec.max_unavailable is not None:
            return max(0, expected - spec.max_unavailable), expected
        return spec.min_available or 0, expected

    def _count(self) -> None:
        """What the disruption controller does."""
        self._count_is_due = False
        for spec in self._budgets.values():
            spec.disrupted = {
                uid for uid in spec.disrupted if uid in self._pods and not self._pods[uid].deleting_until
            }
            healthy = self._healthy(spec)
            desired, expected = self._desired(spec)
            status = replace(
                spec.budget,
                healthy=healthy,
                desired=desired,
                expected=expected,
                allowed=max(0, healthy - desired) if expected > 0 else 0,
            )
            if status != spec.budget:
                spec.budget = status
                self._tell_budget(status)

    def _check_budgets(self, pod: Pod) -> None:
        for spec in self._budgets.values():
            if pod.ready and spec.budget.covers(pod) and self._healthy(spec) < spec.budget.desired:
                self.overdrawn.append(f"{spec.budget.key} by {pod.key}")

    def _tell_pod(self, pod: Pod) -> None:
        for watch in list(self._pod_watches.get(pod.node, ())):
            watch.tell(pod)

    def _tell_budget(self, budget: PodDisruptionBudget) -> None:
        for watch in list(self._budget_watches):
            watch.tell(budget)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def _drop(watches: list[FakeWatch[_Item]], one: FakeWatch[_Item]) -> None:
    if one in watches:
        watches.remove(one)
