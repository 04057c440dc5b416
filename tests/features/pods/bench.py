"""What lines about moved pods cost: those that many drains write at once, and a long file that is read.

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
from reconciler.features.pods.moved import moved, to_fields
from reconciler.kubernetes.connection import Connection
from tests.features.pods.many_drains import Lines, evictions, leading
from tests.features.pods.maps import Maps
from tests.support.stub import Answer, Asked, Stub

DRAINS, PODS = 500, 20
LINES = 100_000
READS = (("-n", "team-7"), ("-A",), ("-A", "-o", "json"))


def main() -> None:
    """Print both tables."""
    with TemporaryDirectory() as folder:
        print(f"| {DRAINS} drains of {PODS} pods, with | lines | ms of CPU a line | requests |")
        print("|---|---|---|---|")
        for settings in ("pods: {keep: 0s}", "pods: {keep: 7d}"):
            print(_written(Path(folder), settings))
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
