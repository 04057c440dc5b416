"""Drains over a simulated cluster: the simulation's own driver of the core, with what the tests ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Self

from reconciler.drain.drainer import DrainCore, Limits
from reconciler.drain.drainer.messages import BudgetNews, Command, Event, Evict, Request, Watch
from reconciler.model.drains import MAY_BE_DENIED, DrainOptions, DrainOrder, DrainProgress, Escalation, Seen
from reconciler.model.errors import ReconcilerError, Rejected, Unreachable
from reconciler.model.node import Node
from reconciler.model.pod import Owner, Pod, PodDisruptionBudget, PodSpec
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.simulation.api import Call, PodRequest, SimulatedApi
from reconciler.simulation.clock import Actor, Happening, VirtualClock
from reconciler.simulation.cluster import SimulatedCluster
from reconciler.simulation.workloads import BudgetSpec, Workload
from reconciler.simulation.world import SteppedDrainer

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
HALF_AN_HOUR = timedelta(minutes=30)
PLAIN = DrainOptions()
NEVER = Escalation()
NOTHING_SEEN = Seen()

Trouble = Callable[[str, Pod | None], ReconcilerError | None]


class CountedSelector(LabelSelector, frozen=True):
    """A selector that counts how often it, or another one like it, was matched with labels."""

    _matches: ClassVar[list[int]] = [0]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """As any selector."""
        self._matches[0] += 1
        return LabelSelector.matches(self, labels)

    @classmethod
    def taken(cls) -> int:
        """Return the count since the last call."""
        count, cls._matches[0] = cls._matches[0], 0
        return count


class CountingCore(DrainCore):
    """A core that counts the matches of counted selectors, and not those of the simulated cluster.

    `heard` counts the budgets that watches sent to it, by namespace.
    """

    matches = 0

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits)
        self.heard: Counter[str] = Counter()

    def step(self, event: Event, now: datetime) -> tuple[Command, ...]:
        """As the core."""
        if isinstance(event, BudgetNews) and isinstance(event.change, PodDisruptionBudget):
            self.heard[event.change.namespace] += 1
        CountedSelector.taken()
        commands = super().step(event, now)
        self.matches += CountedSelector.taken()
        return commands


def no_trouble(verb: str, pod: Pod | None) -> ReconcilerError | None:
    """Let every request through."""
    del verb, pod
    return None


class Scene:
    """A simulated cluster to drain: a node `spare` for replacements, and what the server was asked for.

    In seconds: `ready_after` is how long a replacement takes, `lag` how long the disruption controller takes
    to count, `terminates_in` how long a pod takes to end (never longer than its grace). `trouble` is asked
    about each request and may return an error to raise.
    """

    def __init__(
        self,
        *cordoned: str,
        ready_after: float = 2.0,
        lag: float = 0.1,
        terminates_in: float = 1.0,
        start: datetime = START,
    ) -> None:
        """Make a cluster with one empty node, and these cordoned ones."""
        self.clock = VirtualClock(start)
        self.cluster = SimulatedCluster(self.clock)
        self.cluster.budget_lag = timedelta(seconds=lag)
        self.cluster.log.listeners.append(self._heard)
        self.api = SimulatedApi(self.cluster)
        self.api.before_read = self.api.before_write = self._ask_for_trouble
        self.trouble: Trouble = no_trouble
        self.restart_refusal = ""
        self.reads: list[str] = []
        self.overdrawn: list[str] = []
        self._ready_after = timedelta(seconds=ready_after)
        self._terminates_in = timedelta(seconds=terminates_in)
        self.cluster.add_node(Node("spare", "uid-spare", "1", labels={"agentpool": "spare"}))
        for node in cordoned:
            self.add_node(node, cordoned=True)

    @property
    def now(self) -> datetime:
        """The time (aware, UTC)."""
        return self.clock.now()

    @property
    def requests(self) -> list[PodRequest]:
        """Every eviction and deletion that the server was asked for."""
        return self.api.pod_requests

    @property
    def restarts(self) -> list[str]:
        """The Deployments that were restarted, as `namespace/name`."""
        return [one.subject for one in self.cluster.log.of(Actor.US, "restart")]

    @property
    def attached(self) -> dict[str, tuple[str, ...]]:
        """The volumes that are still attached, by node."""
        return self.cluster.attached

    def add_node(self, name: str, *, cordoned: bool = False, uid: str = "") -> Node:
        """Add a node, or put another one in the place of the one with its name."""
        node = Node(name, uid or f"uid-{name}", "1", unschedulable=cordoned)
        return self.cluster.replace_node(node)

    def there(self, node: str | None = None) -> tuple[Pod, ...]:
        """Return the pods of a node, or all, without a request."""
        return tuple(pod for pod in self.cluster.pods.values() if node is None or pod.node == node)

    def deployment(
        self, name: str, node: str, count: int = 1, *, grace: int = 30, allowed: int | None = None
    ) -> list[Pod]:
        """Add ready pods of a Deployment on one node; its budget lets so many of them be unavailable."""
        pods = [
            Pod(
                "shop",
                f"{name}-{index}",
                f"shop/{name}-{index}#0",
                node,
                labels={"app": name},
                owner=Owner("ReplicaSet", name, "apps/v1"),
                phase="Running",
                ready=True,
                spec=PodSpec(grace=grace),
            )
            for index in range(count)
        ]
        self.deploy(name, *pods)
        if allowed is not None:
            self.add_budget(name, max_unavailable=allowed)
        return pods

    def deploy(self, name: str, *pods: Pod) -> None:
        """Give the Deployment of that name these pods more."""
        known = self.cluster.workloads.get(f"shop/{name}")
        replicas = (known.replicas if known else 0) + len(pods)
        self._adopt(Workload("shop", name, replicas=replicas, grace=pods[0].spec.grace), *pods)

    def stateful_set(self, name: str, node: str, count: int = 1) -> list[Pod]:
        """Add ready pods of a StatefulSet on one node; their UIDs end in `#old`."""
        pods = [
            Pod(
                "shop",
                f"{name}-{index}",
                f"{name}-{index}#old",
                node,
                {"app": name},
                owner=Owner("StatefulSet", name, "apps/v1"),
                phase="Running",
                ready=True,
            )
            for index in range(count)
        ]
        self._adopt(Workload("shop", name, "StatefulSet", replicas=count), *pods)
        return pods

    def change_pod(self, pod: Pod) -> None:
        """Let a kubelet or a person change a pod."""
        self.cluster.add_pod(pod)

    def add_budget(
        self,
        name: str,
        *,
        app: str | None = None,
        max_unavailable: int | None = None,
        min_available: int | None = None,
    ) -> None:
        """Add a budget for the pods labelled `app`, its own name by default; it is counted at once."""
        selector = LabelSelector.of({"app": app or name})
        self.cluster.add_budget(BudgetSpec("shop", name, selector, min_available, max_unavailable))

    def change_budget(self, key: str, *, max_unavailable: int) -> None:
        """Let a budget allow more or less from now on."""
        spec = self.cluster.budget_specs[key]
        self.cluster.add_budget(replace(spec, max_unavailable=max_unavailable, min_available=None))

    def _adopt(self, workload: Workload, *pods: Pod) -> None:
        # Replacements come up on the spare node alone, also while a node that is drained is not cordoned.
        timed = replace(
            workload, pools=("spare",), starts_after=self._ready_after, stops_after=self._terminates_in
        )
        self.cluster.adopt(timed, *pods)

    def _ask_for_trouble(self, call: Call) -> None:
        pod = call.content if isinstance(call.content, Pod) else None
        if pod is None:
            self.reads.append(call.what)
        error = self.trouble(call.what, pod)
        if error is None and call.what == "restart" and self.restart_refusal:
            error = Rejected(self.restart_refusal, status=422)
        if error is not None:
            raise error

    def _heard(self, happening: Happening) -> None:
        """Notice an eviction that leaves a budget with less than it wants, as the pods themselves are."""
        if (happening.actor, happening.what) != (Actor.US, "evict"):
            return
        pod = self.cluster.find_pod(happening.subject)
        if pod is None or not pod.ready or pod.deleting_until is not None:
            return
        for budget in self.cluster.budgets.values():
            covered = [one for one in self.cluster.pods.values() if budget.covers(one)]
            healthy = sum(one.ready and one.deleting_until is None for one in covered)
            if budget.covers(pod) and healthy - 1 < budget.desired:
                self.overdrawn.append(f"{budget.key} by {pod.key}")


class Drive:
    """The drains of one process; `latency` (seconds) is how long a request takes there and back."""

    def __init__(self, scene: Scene, *, limits: Limits | None = None, latency: float = 0.02) -> None:
        self.scene = scene
        half = timedelta(seconds=latency / 2)
        self._drainer = SteppedDrainer(scene.api, scene.clock, limits=limits, latency=half)
        self.counting = CountingCore(limits)
        self._drainer.core = self.counting

    def hang(self, namespace: str, seconds: float) -> None:
        """Let each eviction in a namespace take so much longer, as a webhook that does not answer does."""

        def hangs(command: Watch | Request) -> timedelta:
            late = isinstance(command, Evict) and command.pod.namespace == namespace
            return timedelta(seconds=seconds if late else 0)

        self._drainer.hangs = hangs

    @property
    def core(self) -> DrainCore:
        """The core that is driven."""
        return self._drainer.core

    @property
    def commands(self) -> list[tuple[datetime, Command]]:
        """Every command so far."""
        return self._drainer.commands

    @property
    def now(self) -> datetime:
        """The time (aware, UTC)."""
        return self.scene.now

    def start(
        self,
        node: str,
        *,
        since: datetime = START,
        timeout: timedelta = HALF_AN_HOUR,
        options: DrainOptions = PLAIN,
        escalation: Escalation = NEVER,
        own_pod: str | None = None,
        restart_singletons: bool = False,
        node_ready: bool = True,
        slots: int | None = None,
        may_be_denied: timedelta = MAY_BE_DENIED,
        seen: Seen = NOTHING_SEEN,
    ) -> Self:
        """Start a node's drain now, and return this; `since` is when the attempt began."""
        order = order_for(node, since=since, timeout=timeout, options=options)
        self._drainer.start(
            replace(
                order,
                escalation=escalation,
                own_pod=own_pod,
                restart_singletons=restart_singletons,
                node_ready=node_ready,
                slots=slots,
                may_be_denied=may_be_denied,
                seen=seen,
            )
        )
        return self

    def stop(self, node: str) -> None:
        """Stop it now."""
        self._drainer.stop(node)

    def hear(self, event: Event) -> None:
        """Give the core an event that the simulation itself would not make."""
        self._drainer.feed(event)

    def lose_watches(self) -> None:
        """Cut every open watch."""
        self.scene.cluster.break_watches(Unreachable("cut"))

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something so long after the start."""
        self.scene.clock.at(START + timedelta(seconds=seconds), action)

    def run(self, seconds: float = 3600) -> dict[str, DrainProgress]:
        """Run until every drain has ended, or until so long after the start."""
        end, clock = START + timedelta(seconds=seconds), self.scene.clock
        turns = 0
        while self.core.running() and (moment := clock.next()) is not None and moment <= end:
            turns = turns + 1 if moment == clock.now() else 0
            assert turns < 100_000, "the core turns without time moving"
            clock.step()
        if self.core.running():
            clock.advance(end)
        return dict(self.core.progress())


def order_for(
    node: str,
    *,
    since: datetime = START,
    timeout: timedelta = HALF_AN_HOUR,
    options: DrainOptions = PLAIN,
    own_pod: str | None = None,
) -> DrainOrder:
    """Return an order with defaults that suit a scene."""
    return DrainOrder(node, f"uid-{node}", since, timeout, options, own_pod=own_pod)
