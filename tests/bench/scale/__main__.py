"""Run the protocols, and print what was measured beside what others have published and what is aimed at.

    python -m tests.bench.scale [--quick] [--rounds N] [--program FILE] [PROTOCOL ...]

Notices are written past the API server, in all but one go, and what happens to the nodes is seen by watches.
"""

from __future__ import annotations

import argparse
import compileall
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.bench.scale import alone, protocols
from tests.bench.scale.cluster import Cluster
from tests.bench.scale.protocols import Row
from tests.support.controlplane.server import ControlPlane

ROOT = Path(__file__).parents[3]

Asked = argparse.Namespace
Protocol = Callable[[Cluster, Asked], list[Row]]

PROTOCOLS: Mapping[str, Protocol] = {
    "burst": lambda cluster, asked: protocols.burst(cluster, asked.of((100, 600), (10, 20)), asked.rounds),
    "drains": lambda cluster, asked: protocols.drains(cluster, asked.of(500, 20)),
    "exact": lambda cluster, asked: protocols.exact(
        cluster, asked.some, asked.of(200, 5), asked.of(1_800, 20), asked.later
    ),
    "restarts": lambda cluster, asked: protocols.restarts(cluster, *asked.of((600, 200, 3), (12, 6, 1))),
    "big": lambda cluster, asked: protocols.big(cluster, asked.of(750, 10), 15),
    "requests": lambda cluster, asked: protocols.requests(cluster, asked.of(50, 5), 10),
    "latency": lambda cluster, asked: protocols.latency(cluster, 100, asked.of(15, 3)),
    "twenty": lambda cluster, asked: protocols.twenty(cluster, asked.of(20, 3), asked.of(20, 5), 8),
    "steady": lambda cluster, asked: protocols.steady(cluster, asked.some, 0.5, asked.of(60, 10)),
    "idle": lambda cluster, asked: protocols.idle(cluster, asked.some, asked.of(60, 5)),
}
ALONE: Mapping[str, Callable[[Asked], list[Row]]] = {
    "hundred-thousand": lambda asked: alone.hundred_thousand(
        asked.nodes or asked.of(100_000, 2_000), asked.of(15, 2), asked.program
    ),
    "simulated": lambda asked: alone.simulated(asked.of((500, 2_000, 5_000), (50, 100))),
}
"""Those that need no API server."""


def main() -> None:
    """Run what was chosen, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    names = [*PROTOCOLS, *ALONE, "sweep"]
    parser.add_argument(
        "protocols", nargs="*", metavar="PROTOCOL", help=f"of {', '.join(names)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see whether it runs")
    parser.add_argument("--nodes", type=int, help="of those with thousands of them")
    parser.add_argument(
        "--later", type=float, default=120, help="seconds until exact looks again (default: 120)"
    )
    parser.add_argument("--rounds", type=int, default=2, help="of bursts (default: 2)")
    parser.add_argument("--program", nargs="+", default=["-m", "jobs"], help="what is run as `reconciler`")
    asked = parser.parse_args()
    asked.of = lambda whole, small: small if asked.quick else whole
    asked.some = asked.nodes or asked.of(10_000, 60)
    chosen = asked.protocols or names
    if unknown := set(chosen) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    # As in an image.
    for folder in ("reconciler", "jobs"):
        compileall.compile_dir(ROOT / folder, quiet=2)
    print("| protocol | published | aim | measured | holds |\n|---|---|---|---|---|", flush=True)
    for name in chosen:
        if name in ALONE:
            show(ALONE[name](asked))
    if on_cluster := [name for name in chosen if name in PROTOCOLS]:
        with ControlPlane() as plane:
            cluster = Cluster(plane, asked.program)
            for name in on_cluster:
                show(PROTOCOLS[name](cluster, asked))
    if "sweep" in chosen:
        size = ["--nodes", str(asked.of(5_000, 50)), "--rounds", str(asked.of(6, 1))]
        subprocess.run([sys.executable, "-m", "tests.bench.sweep", *size], check=True)


def show(rows: list[Row]) -> None:
    """Print rows of the table."""
    for row in rows:
        cells = (row.protocol, row.published, row.aim, row.measured, "yes" if row.holds else "NO")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
