"""The situations of docs/not-drained.md by its headings, played on the simulation: what the program prints.

All but one are what `reconciler explain` prints about a node, on a terminal of `WIDTH` columns.
docs/holds.md has its examples from them, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from reconciler.model.errors import Rejected
from reconciler.model.node import Node, Taint
from reconciler.model.plan import NodePlan
from reconciler.model.pod import Pod
from reconciler.model.reconciler import Reconciler, Running
from reconciler.model.selector import EVERYTHING
from reconciler.model.snapshot import Agents, Ledger
from reconciler.report.document import to_report
from reconciler.report.table import as_table
from reconciler.report.text import as_text
from reconciler.run import examine
from reconciler.simulation.api import Call
from reconciler.simulation.workloads import BudgetSpec, Workload
from reconciler.simulation.world import World
from tests.laws.histories import History, by_hand
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.builders import IMDS, NOW, PREFIX, REQUEST, minutes
from tests.support.worlds import look, world_of

WIDTH = 80
NODE = "aks-np-12345678-vmss000000"
OTHER = "aks-np-12345678-vmss000001"

NIGHTS = 'windows: [{name: nights, start: "22:00", end: "05:00"}]'


@dataclass(frozen=True, slots=True)
class Scene:
    """What the program prints about the node, and its plan."""

    text: str
    plan: NodePlan


def explained(world: World, settings: str = "", reconciler: Reconciler | None = None) -> Scene:
    """Return what `reconciler explain` prints about the node; `reconciler` is what it knows of the one."""
    seen = Explained(world, settings, reconciler=reconciler)
    return Scene(seen.text(WIDTH, node=NODE), seen.node(NODE).plan)


def due(
    within: float = 20,
    *,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: tuple[str, ...] = (),
) -> Node:
    """A node for which somebody has requested a reboot in so many minutes."""
    asked = {"kind": "Reboot", "notBefore": (NOW + minutes(within)).strftime("%Y-%m-%dT%H:%M:%SZ")}
    keys = {REQUEST: json.dumps(asked), **(annotations or {})}
    return builders.node(NODE, annotations=keys, labels=labels, taints=taints)


def word(what: str, **of: object) -> dict[str, str]:
    """The annotation of a person's word about the node."""
    return {f"{PREFIX}/{what}": json.dumps({"by": "ada@laptop", "at": "2026-11-21T09:00:00Z", **of})}


def announced(message: str, status: str = "True") -> Node:
    """A node on which AKS's condition says this."""
    return builders.node(NODE, conditions=(builders.condition("VMEventScheduled", status, message),))


def scheduled(kind: str, duration: int, description: str) -> Node:
    """A node with such an event in 14 minutes, in the words of AKS's condition."""
    rest = f"DurationInSeconds: {duration}. {description} For more information, see"
    return announced(
        f"{kind} Scheduled: Sat, 21 Nov 2026 12:14:00 GMT. {rest} https://aka.ms/aks/scheduledevents."
    )


def pod(name: str = "ledger-0", **shape: object) -> Pod:
    """A pod on the node."""
    return builders.pod(name, on=NODE, **shape)  # type: ignore[arg-type]


def played(world: World, settings: str = "", *, wait: timedelta = timedelta()) -> World:
    """Return the world after the passes of a reconciler with these settings, now and after this time."""
    history = History(world, builders.settings(settings))
    history.until_still()
    if wait:
        history.wait(wait)
        history.until_still()
    return world


def _a_condition_on_most_nodes() -> Scene:
    broken = builders.condition("StorageReady", "True", "the storage answers")
    nodes = [builders.node(name, conditions=(broken,)) for name in (NODE, OTHER)]
    return explained(world_of(nodes), "conditions: {StorageReady: {}}")


def _an_older_reconciler() -> Scene:
    older = Reconciler(Running.RUNNING, lock="platform", since=NOW - timedelta(days=9))
    ours = Reconciler(
        Running.RUNNING,
        lock="node-maintenance",
        since=NOW,
        others=("platform",),
        yields_to="platform",
        rivals=(older,),
    )
    return explained(world_of([due()]), reconciler=ours)


def refused_by_a_budget() -> Scene:
    """What is printed of a node with a reboot and a pod that its budget never lets go."""
    world = world_of(
        [scheduled("Reboot", -1, "Host server is undergoing maintenance."), builders.node(OTHER)]
    )
    world.cluster.add_workload(Workload("shop", "ledger", "StatefulSet", labels={"app": "ledger"}))
    world.cluster.clear_node(OTHER)
    world.cluster.add_budget(BudgetSpec("shop", "ledger", EVERYTHING, min_available=1))
    world.advance(minutes(1))
    return explained(world)


def report_of_a_fleet() -> str:
    """What `reconciler report` prints at 80 columns of two reboots for one place, a later one, and a hold."""
    names = [f"aks-np-12345678-vmss00000{number}" for number in range(5)]
    asked = [
        {REQUEST: json.dumps({"kind": "Reboot", "notBefore": (NOW + minutes(after)).isoformat()})}
        for after in (46, 46, 1441)
    ]
    keys = [*asked, word("hold", reason="disk copy"), {}]
    world = world_of([builders.node(name, annotations=said) for name, said in zip(names, keys, strict=True)])
    settings = builders.settings(f"{NIGHTS}\nbudget: {{maxUnavailable: 1}}")
    plan = examine(world.outside, settings, world.now, with_preview=True).plan
    return "".join(f"{line.text}\n" for line in as_table(to_report(plan, rehearsed=True), WIDTH))


def _refused_by_a_webhook() -> Scene:
    world = world_of([due(), builders.node(OTHER)], [pod()])

    def refuse(call: Call) -> None:
        if call.what == "evict":
            raise Rejected('admission webhook "guard.example.com" denied the request: not today', status=403)

    world.api.before_write = refuse
    played(world, wait=minutes(11))
    plan, _ = look(world, builders.settings())
    return Scene(as_text(to_report(plan, rehearsed=False), WIDTH), builders.plan_of(plan, NODE))


def _a_pod_that_does_not_end() -> Scene:
    world = world_of([due(), builders.node(OTHER)], [pod()])
    world.cluster.finalizers.add("uid-shop-ledger-0")
    return explained(played(world, wait=minutes(12)))


def _uncordoned() -> Scene:
    world = played(world_of([due()], [pod()]))
    world.cluster.cordon(NODE, on=False)
    return explained(played(world))


def _drained_by_hand() -> Scene:
    world = world_of([due()], [pod()])
    by_hand(History(world, builders.settings()), NODE)
    return explained(world)


def _without_its_agent() -> Scene:
    reboot = {"EventId": "A1", "EventType": "Reboot", "EventStatus": "Scheduled"}
    world = world_of([builders.on_vm(builders.node(NODE), 0)])
    world.cluster.annotate(NODE, IMDS, builders.published(reboot, vm=builders.vm_name(0)))
    played(world)
    world.cluster.agents = Agents()
    world.cluster.annotate(NODE, IMDS, None)
    return explained(world)


def _not_ready() -> Scene:
    world = played(world_of([due()], [pod()]))
    world.cluster.annotate(NODE, REQUEST, None)
    world.cluster.node_down(NODE)
    return explained(played(world, wait=minutes(5)))


def _remediated() -> Scene:
    world = played(world_of([due()], [pod()]))
    world.cluster.annotate(NODE, REQUEST, None)
    world.cluster.taint(NODE, [Taint("remediator.kubernetes.azure.com/unschedulable", effect="NoSchedule")])
    return explained(played(world, wait=minutes(5)))


SITUATIONS: Mapping[str, Callable[[], Scene]] = MappingProxyType(
    {
        "No source announces maintenance": lambda: explained(
            world_of([builders.node(NODE, conditions=(builders.quiet(),))])
        ),
        "The kind of event drains nothing": lambda: explained(
            world_of([scheduled("Freeze", 9, "Host server is undergoing maintenance.")])
        ),
        "A user started the event": lambda: explained(
            world_of(
                [
                    scheduled(
                        "Reboot",
                        -1,
                        "Virtual machine is going to be restarted as requested by authorized user.",
                    )
                ]
            )
        ),
        "The event can't be read": lambda: explained(
            world_of([builders.node(NODE, annotations={REQUEST: '{"kind":"Rebooot"}'})])
        ),
        "A source can't be read": lambda: explained(
            world_of([announced("IMDS query failed, exit code: 28", "Unknown")])
        ),
        "The node is left out": lambda: explained(world_of([due(labels={f"{PREFIX}/ignore": "true"})])),
        "The mode is Observe": lambda: explained(world_of([due()]), "mode: Observe"),
        "The mode is Finish": lambda: explained(world_of([due()]), "mode: Finish"),
        "No reconciler runs": lambda: explained(
            world_of([due()]), reconciler=Reconciler(Running.OVERDUE, last_pass=NOW - minutes(9))
        ),
        "No window is open": lambda: explained(world_of([due(1440)]), NIGHTS),
        "A freeze is on": lambda: explained(
            world_of([due(1440)]), "notAllowed: [{name: sale, start: 2026-11-20, end: 2026-11-30}]"
        ),
        "Its start is planned for later": lambda: explained(world_of([due(1440)])),
        "The budget has no place": lambda: explained(
            world_of([due(60), builders.node(OTHER, unschedulable=True)]), "budget: {maxUnavailable: 1}"
        ),
        "Another drain has just started": lambda: explained(
            _last_start(world_of([due()])), "budget: {spacing: 10m}"
        ),
        "Nobody has approved it": lambda: explained(
            world_of([due(60)]), "events: {Reboot: {approval: true}}"
        ),
        "A person holds it": lambda: explained(
            world_of([due(60, annotations=word("hold", reason="disk copy"))])
        ),
        "A person deferred it": lambda: explained(
            world_of([due(1440, annotations=word("defer", until="2026-11-21T20:00:00Z", reason="a release"))])
        ),
        "Another tool works on the node": lambda: explained(
            world_of([due(60, taints=("ToBeDeletedByClusterAutoscaler",))])
        ),
        "Somebody drains it by hand": _drained_by_hand,
        "A hook holds it": lambda: explained(
            played(world_of([due(annotations={f"{PREFIX}/pre-drain.backup": "database"})], [pod()]))
        ),
        "Most nodes have the condition": _a_condition_on_most_nodes,
        "Another reconciler acts on the same nodes": _an_older_reconciler,
        "Somebody uncordoned it": _uncordoned,
        "A PodDisruptionBudget refuses": refused_by_a_budget,
        "A webhook refuses": _refused_by_a_webhook,
        "A pod does not end": _a_pod_that_does_not_end,
        "Pods stay on the node": lambda: explained(
            world_of([due(), builders.node(OTHER)], [pod("cache-0", empty_dir=True), pod("debug", owner="")])
        ),
        "The event is not over": lambda: explained(played(world_of([due()], [pod()]))),
        "What reported the event is gone": _without_its_agent,
        "The node is not Ready": _not_ready,
        "AKS works on the node": _remediated,
    }
)


def _last_start(world: World) -> World:
    world.cluster.ledger = Ledger(NOW - minutes(2))
    return world


if __name__ == "__main__":
    # For whoever writes the page.
    for heading, play in SITUATIONS.items():
        print(f"\n== {heading}\n{play().text}")
