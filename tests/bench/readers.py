"""What the plain way to read costs for a large cluster: `reconciler report` in both ways, in turn.

    python -m tests.bench.readers [--nodes 5000] [--rounds 6]

prints time, CPU time, peak memory and number of requests of whole processes, on a real API server. The plain
way is the same command, with `kubernetes.reader.PlainReader` in place of `CachedCluster`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys

from tests.bench import Row, spread
from tests.support.controlplane.fill import Pool, fill
from tests.support.controlplane.server import ControlPlane

POOLS = (Pool("np"), Pool("batch"))

_PLAIN = """
import os, sys
os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
from jobs import __main__ as program
from jobs.runtime import outside
from reconciler.kubernetes.reader import PlainReader
from reconciler.model.ports import AtOnce

def plain(connection, *, namespace, **_):
    return PlainReader(connection, namespace=namespace)

outside.CachedCluster, outside.ThreadsBeside = plain, lambda came: AtOnce()
sys.argv = ["reconciler", "report"]
sys.exit(program.main())
"""

# Started bare, as in tests/bench/sweep.py: a child's peak begins with what its parent had.
_LAUNCHER = """
import os, sys, time
began = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[
    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
_, status, usage = os.wait4(child, 0)
used = usage.ru_utime + usage.ru_stime
print(os.waitstatus_to_exitcode(status), time.perf_counter() - began, used, usage.ru_maxrss / 1024)
"""


def main() -> None:
    """Measure, after one round that is not counted."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, default=5000)
    arguments.add_argument("--rounds", type=int, default=6)
    chosen = arguments.parse_args()
    agent = "node-maintenance-reconciler"
    rows = [
        Row("at scale", [sys.executable, "-m", "jobs", "report"], agent),
        Row("plain", [sys.executable, "-c", _PLAIN], agent),
    ]
    with ControlPlane() as server:
        fill(server.kubeconfig, nodes=chosen.nodes, pools=POOLS)
        environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
        for number in range(chosen.rounds + 1):
            for row in rows if number % 2 else reversed(rows):
                before = len(server.audit_entries(user_agent=agent))
                launcher = [sys.executable, "-S", "-E", "-c", _LAUNCHER, *row.command]
                done = subprocess.run(
                    launcher, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=True
                )
                code, *measured = map(float, done.stdout.split())
                if code:
                    raise SystemExit(f"{row.name} ended with {code:.0f}")
                asked = len(server.audit_entries(user_agent=agent)) - before
                if number:
                    for what, value in zip(
                        ("seconds", "CPU", "peak", "requests"), (*measured, asked), strict=True
                    ):
                        row.measured[what].append(value)
    print(f"a report of {chosen.nodes} nodes, medians of {chosen.rounds} rounds in turn:\n")
    print("| way | seconds | CPU seconds | peak MiB | requests |\n|---|---|---|---|---|")
    for row in rows:
        of = row.measured
        rest = " | ".join(f"{statistics.median(of[what]):.0f}" for what in ("peak", "requests"))
        print(f"| {row.name} | {spread(of['seconds'])} | {spread(of['CPU'])} | {rest} |")


if __name__ == "__main__":
    main()
