"""What it costs to write and to read lines about moved pods, and to know those that are to be moved.

Run it with `python -m tests.features.pods.bench`. The times are of the CPU, and depend on the machine.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from jobs.runtime.log_line import log_line
from reconciler.features.pods import EVICTED
from reconciler.features.pods.coming import Foreseen, foreseen
from reconciler.features.pods.moved import moved, to_fields
from reconciler.kubernetes.connection import Connection
from reconciler.model.pod import PodDisruptionBudget
from reconciler.model.selector import LabelSelector
from reconciler.model.values import replace
from reconciler.passes.plugin import Fleet
from tests.features.pods.many_drains import Lines, evictions, leading
from tests.features.pods.maps import Maps
from tests.report.explaining import Explained
from tests.support import builders
from tests.support.builders import REQUEST
from tests.support.stub import Answer, Asked, Stub
from tests.support.worlds import world_of

DRAINS, PODS = 500, 20
NODES, HERE = 500, 30
SOON = '{"kind":"Reboot","notBefore":"2026-11-21T22:15:00Z"}'
LINES = 100_000
READS = (("-n", "team-7"), ("-A",), ("-A", "-o", "json"))


def main() -> None:
    """Print the tables."""
    with TemporaryDirectory() as folder:
        print(f"| {DRAINS} drains of {PODS} pods, with | lines | ms of CPU a line | requests |")
        print("|---|---|---|---|")
        for settings in ("pods: {keep: 0s}", "pods: {keep: 7d}"):
            print(_written(Path(folder), settings))
        print()
        print(f"| what a pass knows of {NODES} nodes with {HERE} pods each | s of CPU |")
        print("|---|---|")
        print(_foreseen())
        print()
        print(f"| `reconciler pods --history` of {LINES:,} lines | s of CPU | peak MiB |")
        print("|---|---|---|")
        history = Path(folder) / "history.jsonl"
        _write(history)
        for options in READS:
            print(_read(history, options))


def _written(folder: Path, settings: str) -> str:
    stubs: list[Stub] = []

    def make(answer: Callable[[Asked], Answer]) -> tuple[Stub, Connection]:
        stubs.append(Stub(answer))
        config = stubs[0].write_kubeconfig(folder / "kubeconfig")
        return stubs[0], Connection(str(config))

    maps, lines = Maps(make), Lines()
    feature = leading(maps, settings, lines)
    feature.drains()
    every = list(evictions(DRAINS, PODS))
    begin = time.process_time()
    for order, eviction in every:
        feature.evicted(order, eviction)
    milliseconds = (time.process_time() - begin) * 1000 / len(every)
    feature.close()
    maps.connection.close()
    stubs[0].close()
    return f"| `{settings}` | {len(lines.all)} | {milliseconds:.3f} | {len(maps.stub.asked)} |"


def _foreseen() -> str:
    """Return the row of a pass that knows all pods of these nodes, ten of each namespace under a budget."""
    nodes = [builders.node(f"n{number}", annotations={REQUEST: SOON}) for number in range(NODES)]
    settings = builders.settings("pods: {publish: true}")
    explained = Explained(world_of(nodes), settings)
    plan, snapshot = explained.found.plan, explained.found.snapshot
    spaces = range(NODES * HERE // 10)
    pods = {
        node.name: tuple(
            builders.pod(f"web-{number}-{each}", node.name, namespace=f"team-{(number * HERE + each) // 10}")
            for each in range(HERE)
        )
        for number, node in enumerate(nodes)
    }
    budgets = tuple(
        PodDisruptionBudget(f"team-{space}", "web", LabelSelector(), 1, 1, 1, 1) for space in spaces
    )
    ahead = replace(snapshot.for_settings.ahead, budgets=budgets)
    snapshot = replace(snapshot, pods=pods, for_settings=replace(snapshot.for_settings, ahead=ahead))
    fleet = Fleet(plan.nodes, {node.name: node for node in nodes}, settings, plan.now, snapshot)
    begin = time.process_time()
    found = foreseen(fleet)
    seconds = time.process_time() - begin
    known = sum(len(part.pods or ()) for part in found.values() if isinstance(part, Foreseen))
    return f"| {known} pods, {len(budgets)} budgets | {seconds:.2f} |"


def _write(path: Path) -> None:
    now = datetime.now(UTC)
    with path.open("w", encoding="utf-8") as file:
        for number, (order, eviction) in enumerate(evictions(DRAINS, LINES // DRAINS)):
            at = now - timedelta(milliseconds=500 * (LINES - number))
            file.write(f"{log_line(EVICTED, **to_fields(moved(order, eviction, at)))}\n")


def _read(history: Path, options: tuple[str, ...]) -> str:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Another process measures it: the peak of all children so far is that of the largest one.
    code = (
        "import resource, subprocess, sys; "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = (sys.executable, "-m", "jobs", "pods", "--history", str(history), *options)
    done = subprocess.run((sys.executable, "-c", code, *command), check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"| `{' '.join(options)}` | {seconds:.2f} | {int(done.stdout) / 1024:.0f} |"


if __name__ == "__main__":
    main()
