"""What ARM is asked for a large cluster: lists, pages, time and the size of what is remembered.

`python -m tests.sources.arm.bench [--nodes 1000] [--scale-sets 5] [--hours 1]` runs a pass a minute
against a fake ARM that pages as Azure's does, each with a client of its own as a CronJob's are, and
prints a row.
"""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime, timedelta

from reconciler.model.machine import Scope
from reconciler.model.node import Node
from reconciler.model.polling import Memory
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.sources.arm.client import Arm
from reconciler.sources.arm.source import ArmPlans, Planned
from tests.support import builders
from tests.support.controlplane.fill import Pool
from tests.support.fakes.arm import FakeArm, compute, provider_id, status

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
ARM = ArmPlans()
EVERY = timedelta(minutes=15)


def cluster(azure: FakeArm, nodes: int, scale_sets: int) -> list[Node]:
    """Fill the scale sets, half of the VMs in one wave of maintenance; the nodes of all."""
    found = []
    wave = status(
        offered=True,
        offer=(START - timedelta(days=1), START + timedelta(days=34)),
        window=(START + timedelta(days=34), START + timedelta(days=41)),
    )
    for number in range(scale_sets):
        pool = Pool(f"np{number}")
        instances = range(nodes // scale_sets)
        azure.uniform(*instances, scale_set=pool.scale_set)
        for instance in instances:
            if instance % 2:
                azure.plan(instance, wave, pool.scale_set)
            name = pool.node_name(instance)
            found.append(replace(builders.node(name), provider_id=provider_id(instance, pool.scale_set)))
    return found


def measure(nodes: int, scale_sets: int, hours: float) -> str:
    """Run the passes; the row as Markdown."""
    memory: Memory[Scope, Planned] = Memory()
    asking = []
    with FakeArm() as azure:
        fleet = cluster(azure, nodes, scale_sets)
        passes = int(hours * 60)
        for minute in range(passes):
            now = START + timedelta(minutes=minute)
            began = time.perf_counter()
            client = Arm(compute(azure))
            scopes = ARM.due(fleet, memory, now)
            listings = client.ask(scopes) if scopes else ()
            memory = ARM.kept.of(ARM.kept.put(Ledger(), ARM.remembered(memory, listings, fleet, EVERY, now)))
            events = sum(
                1 for node in fleet if (reading := ARM.reading(node, memory, now)) and reading.signals
            )
            if scopes:
                asking.append(time.perf_counter() - began)
        assert azure.violations == []
        lists, pages, rounds = len(azure.lists), azure.pages, len(asking)
    size = len(ARM.kept.put(Ledger(), memory).new_parts["arm"]) / 1024
    return (
        f"| {nodes} | {scale_sets} | {passes} | {lists} ({lists / rounds:g} an interval) | "
        f"{pages} ({pages / rounds:g}) | {events} | {max(asking):.2f} | {size:.1f} |"
    )


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, default=1000)
    arguments.add_argument("--scale-sets", type=int, default=5)
    arguments.add_argument("--hours", type=float, default=1)
    chosen = arguments.parse_args()
    print("| nodes | scale sets | passes | lists | pages | planned | slowest s | remembered KiB |")
    print("|---|---|---|---|---|---|---|---|")
    print(measure(chosen.nodes, chosen.scale_sets, chosen.hours))


if __name__ == "__main__":
    main()
