"""What needs no API server: passes in the simulation, and `serve` before a server that makes up its nodes."""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import urllib3

from jobs.__main__ import COLLECTS
from reconciler.model.event import Kind
from reconciler.simulation.platform import Reporter, VmEvent
from tests.bench.scale.cluster import LAUNCH, SETTINGS, SETTLES, Serve
from tests.bench.scale.protocols import Row
from tests.support import builders, stub
from tests.support.builders import NOW
from tests.support.worlds import look, world_of


def simulated(counts: Sequence[int]) -> list[Row]:
    """CPU time of a pass in which all cases wait, and of the one in which all of them start."""
    gc.set_threshold(*COLLECTS)
    rows = []
    for what, start, aim in (("waiting", "Late", 0.3), ("all start at once", "Early", 0.6)):
        each = [1000 * _pass(count, start) / count for count in counts]
        holds = max(each) <= min(aim, 1.5 * each[0])
        measured = ", ".join(f"{took:.2f} ms at {count}" for count, took in zip(counts, each, strict=True))
        rows.append(Row(f"a pass in the simulation, a case: {what}", "–", f"{aim} ms", measured, holds))
    return rows


def _pass(count: int, start: str) -> float:
    """Return the seconds of CPU of a pass over so many nodes, each with a reboot tomorrow."""
    settings = builders.settings(
        f"budget: {{maxUnavailable: 100%}}\ndrain: {{maxConcurrentNodes: {count}}}\n"
        f"events: {{Reboot: {{start: {start}}}}}\n"
    )
    quiet = [builders.node(f"n{number}", conditions=(builders.quiet(),)) for number in range(count)]
    world = world_of(builders.on_vm(node, number) for number, node in enumerate(quiet))
    for node in quiet:
        reboot = VmEvent(node.name, Kind.REBOOT, NOW + timedelta(days=1), reported_by=Reporter.CONDITION)
        world.platform.announce(reboot)
    if start == "Late":
        # The first one writes the records.
        look(world, settings)
    began = time.process_time()
    look(world, settings)
    took = time.process_time() - began
    assert {node.unschedulable for node in world.cluster.nodes.values()} == {start == "Early"}
    return took


def hundred_thousand(nodes: int, changes: int, program: Sequence[str]) -> list[Row]:
    """Start `serve` before so many nodes, and let some of them change."""
    command = [*LAUNCH, sys.executable, "-m", "tests.bench.scale.many", "--nodes", str(nodes)]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as many,
    ):
        try:
            assert many.stdout is not None
            address = many.stdout.readline().strip()
            kubeconfig = Path(folder) / "kubeconfig"
            kubeconfig.write_text(json.dumps(stub.kubeconfig(address, {"token": "token"})), encoding="utf-8")
            began = time.monotonic()
            with Serve(kubeconfig, SETTINGS.format(budget=changes), program) as serve:
                serve.wait_until_ready()
                first, cpu = time.monotonic() - began - SETTLES, serve.cpu
                took = []
                for _ in range(changes):
                    answer = urllib3.request("POST", f"{address}/change", timeout=610)
                    took.append(1000 * float(answer.json()["seconds"]))
                    time.sleep(1.5)
                peak, each = serve.peak, (serve.cpu - cpu) / changes
        finally:
            many.kill()
    change = statistics.median(took)
    measured = f"{peak:.0f} MiB, {first:.0f} s ({cpu:.0f} of CPU), {change:.0f} ms ({1000 * each:.0f} of CPU)"
    holds = peak <= 512 and first <= 60 and change <= 50
    what, published = f"{nodes} nodes: peak, first plan, a change decided", "187 GB in all parts"
    return [Row(what, published, "512 MiB, 60 s, 50 ms", measured, holds)]
