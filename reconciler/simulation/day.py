"""One day of a small AKS cluster: what the demo shows, as a script."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from reconciler.model.event import Kind
from reconciler.model.node import Node
from reconciler.model.selector import LabelSelector
from reconciler.simulation.platform import Reporter, SimulatedPool, VmEvent
from reconciler.simulation.workloads import BudgetSpec, Workload
from reconciler.simulation.world import World

SETTINGS = """\
apiVersion: node-maintenance.dev/v1alpha1
kind: MaintenancePolicy
mode: Enforce
timeZone: Europe/Berlin
windows:
- {name: night, start: "22:00", end: "05:00"}
events:
  # Short pauses hurt nobody. From 10 seconds on, drain.
  Freeze:
    drain: true
    minDuration: 10s
    leadTime: 10m
    outsideWindow: AtDeadline
budget:
  maxUnavailable: 2
  perZone: 1
overrides:
# Long-lived connections do not survive a migration:
# drain before it, also outside of a window.
- nodeSelector: {agentpool: chat}
  events:
    LiveMigration:
      drain: true
      outsideWindow: AtDeadline
"""

ZONE = ZoneInfo("Europe/Berlin")
START = datetime(2026, 12, 2, 8, 0, tzinfo=ZONE)
END = datetime(2026, 12, 3, 0, 0, tzinfo=ZONE)

WEB, CHAT, SPOT = SimulatedPool("web"), SimulatedPool("chat"), SimulatedPool("spot", spot=True)


class Chapter(Struct, frozen=True):
    """One story of the day: its title, its start, and its actions."""

    title: str
    at: datetime
    begin: Callable[[World], None]


def build(world: World) -> None:
    """Fill a world with the cluster: 13 nodes in three pools and zones, and their workloads."""
    cluster = world.cluster
    for pool, count in ((WEB, 6), (CHAT, 3), (SPOT, 4)):
        for instance in range(count):
            cluster.add_node(pool.node(instance))
    second = timedelta(seconds=1)
    for workload in (
        Workload("kube-system", "kube-proxy", "DaemonSet", priority_class="system-node-critical"),
        Workload(
            "kube-system", "coredns", replicas=2, pools=("web",), priority_class="system-cluster-critical"
        ),
        Workload("shop", "web", replicas=12, pools=("web",)),
        Workload("shop", "checkout", replicas=4, pools=("web",), starts_after=20 * second),
        Workload("shop", "ledger", pools=("web",), starts_after=25 * second),
        Workload(
            "chat",
            "gateway",
            replicas=9,
            pools=("chat",),
            grace=60,
            starts_after=35 * second,
            stops_after=20 * second,
        ),
        Workload("batch", "render", replicas=8, pools=("spot",), grace=10, stops_after=8 * second),
    ):
        cluster.add_workload(workload)
    for spec in (
        BudgetSpec("kube-system", "coredns", _app("coredns"), max_unavailable=1),
        BudgetSpec("shop", "web", _app("web"), max_unavailable="25%"),
        BudgetSpec("shop", "checkout", _app("checkout"), max_unavailable=1),
        BudgetSpec("shop", "ledger", _app("ledger"), min_available=1),
        BudgetSpec("chat", "gateway", _app("gateway"), max_unavailable=1),
    ):
        cluster.add_budget(spec)


def chapters() -> tuple[Chapter, ...]:
    """Return the day's stories, in the order in which they begin."""
    return (
        Chapter(
            "A freeze below the threshold is ignored",
            _at(8, 40),
            lambda world: _announce(world, WEB.node(1).name, Kind.FREEZE, minutes=15, seconds=5),
        ),
        Chapter(
            "A live migration: pods with long-lived connections are moved before it",
            _at(9, 30),
            _live_migration,
        ),
        Chapter(
            "A redeploy whose deadline does not wait for the window",
            _at(11, 0),
            lambda world: _announce(world, WEB.node(3).name, Kind.REDEPLOY, minutes=60),
        ),
        Chapter("A reboot is cancelled during its drain", _at(12, 30), _cancelled),
        Chapter("A spot VM is evicted with a notice of 30 seconds", _at(14, 20), _preempt),
        Chapter("Two reboots in one zone are announced for the night, and wait", _at(15, 30), _reboots),
        Chapter("Three reboots at one time: one of them can't be served", _at(16, 0), _too_many),
        Chapter("A PodDisruptionBudget blocks a drain until someone helps", _at(17, 0), _blocked),
        Chapter(
            "One of the three is cancelled, so the others can be served",
            _at(19, 0),
            lambda world: world.platform.cancel(_reboot(SPOT.node(0), _at(20, 30))),
        ),
        Chapter("Night: the window opens, one node per zone at a time", _at(22, 0), lambda _: None),
        Chapter(
            "Shortly before midnight",
            _at(23, 52),
            lambda world: _announce(world, WEB.node(0).name, Kind.FREEZE, minutes=15, seconds=3),
        ),
    )


def _live_migration(world: World) -> None:
    event = VmEvent(
        CHAT.node(1).name,
        Kind.LIVE_MIGRATION,
        world.now + timedelta(minutes=15),
        seconds=5,
        lasts=timedelta(minutes=5),
        reported_by=Reporter.BOTH,
    )
    world.platform.announce(event)


def _cancelled(world: World) -> None:
    event = VmEvent(CHAT.node(2).name, Kind.REBOOT, world.now + timedelta(minutes=15))
    world.platform.announce(event)
    world.clock.after(timedelta(seconds=70), lambda: world.platform.cancel(event))


def _preempt(world: World) -> None:
    event = VmEvent(
        SPOT.node(2).name, Kind.PREEMPT, world.now + timedelta(seconds=30), reported_by=Reporter.BOTH
    )
    world.platform.announce(event)
    world.clock.after(timedelta(minutes=6), lambda: world.cluster.add_node(SPOT.node(5)))


def _reboots(world: World) -> None:
    # A predicted hardware failure is the only kind of event that Azure announces long before.
    for instance, at in ((2, _at(23, 20)), (5, _at(23, 20) + timedelta(minutes=90))):
        world.platform.announce(_reboot(WEB.node(instance), at))


def _too_many(world: World) -> None:
    for node in (SPOT.node(0), WEB.node(1), SPOT.node(5)):
        world.platform.announce(_reboot(node, _at(20, 30)))


def _reboot(node: Node, at: datetime) -> VmEvent:
    return VmEvent(node.name, Kind.REBOOT, at.astimezone(UTC))


def _blocked(world: World) -> None:
    ledger = next(pod for pod in world.cluster.pods.values() if pod.labels["app"] == "ledger")
    _announce(world, ledger.node, Kind.REDEPLOY, minutes=30)
    world.clock.after(timedelta(minutes=22), lambda: world.cluster.scale("shop/ledger", 2))


def _announce(world: World, node: str, kind: Kind, *, minutes: int, seconds: int = -1) -> None:
    world.platform.announce(VmEvent(node, kind, world.now + timedelta(minutes=minutes), seconds=seconds))


def _app(name: str) -> LabelSelector:
    return LabelSelector.of({"app": name})


def _at(hour: int, minute: int) -> datetime:
    return START.replace(hour=hour, minute=minute)
