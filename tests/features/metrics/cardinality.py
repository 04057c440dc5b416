"""How many series 5,000 nodes have. Run as a module, it prints the table of the docs."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.features.metrics.metering import Meter
from reconciler.model.drains import Blocker, DrainProgress, Phase
from reconciler.model.plan import Hold, Plan
from reconciler.model.values import replace
from tests.features.metrics.everything import full, plan

NODES = 5_000
DRAINS = 10
"""Drains that run at once, by default."""

CASES = {"no case": 0, "300 nodes with a case": 300, "a case for every node": NODES}


def fleet(cases: int) -> tuple[Plan, dict[str, DrainProgress]]:
    """A fleet where so many nodes wait for their window and their turn, and ten drains are blocked."""
    shown = plan()
    waits = next(node for node in shown.nodes if node.node == "waits")
    waits = replace(waits, holds=(*waits.holds, Hold("waits", "budgetLeft", "all places are taken")))
    drains = next(node for node in shown.nodes if node.node == "drains")
    draining = min(DRAINS, cases)
    nodes = [replace(drains, node=f"aks-np-12345678-vmss{n:06}") for n in range(draining)]
    nodes += [replace(waits, node=f"aks-np-12345678-vmss{n:06}") for n in range(draining, cases)]
    blockers = tuple(Blocker(f"shop{n}/web", "waits", f"shop{n}/web") for n in range(3))
    running = {
        node.node: DrainProgress(node.node, "u", Phase.RUNNING, blockers=blockers)
        for node in nodes[:draining]
    }
    return replace(shown, nodes=tuple(nodes), managed=NODES), running


def series(meter: Meter) -> list[str]:
    """The lines of our series; those of the process itself are Python's."""
    lines = meter.text().decode().splitlines()
    return [line for line in lines if line.startswith("node_maintenance_")]


def rows() -> Iterator[tuple[str, int, int]]:
    """Yield for each fleet its name, its series, and the KiB of a scrape."""
    for name, cases in CASES.items():
        meter = Meter()
        full(meter)
        meter.shows(*fleet(cases))
        lines = series(meter)
        yield name, len(lines), round(sum(len(line) + 1 for line in lines) / 1024)


def table() -> str:
    """Return the table for the page."""
    lines = ["| 5,000 nodes | series | a scrape |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {count:,} | {size:,} KiB |" for name, count, size in rows())])


if __name__ == "__main__":
    print(table())
