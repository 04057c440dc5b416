"""How long a command takes to its first request: what a person waits for before anything happens.

`python -m tests.bench.start [--rounds 15]` starts `reconciler drain`, `kubectl drain` and `reconciler sweep`
in turn on a real API server with one empty node. The time runs from the start of the process to the moment
at which the API server receives its first request, by the audit log. Both drains are dry runs, so that all
rounds are alike; a dry run differs from a drain only after its first requests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.bench import Row, spread
from tests.support.controlplane.fill import Pool, fill
from tests.support.controlplane.server import ControlPlane

POOL = Pool("np")


def starts(server: ControlPlane, settings: Path) -> list[Row]:
    """Return the commands that are compared."""
    node = POOL.node_name(0)
    ours = [sys.executable, "-m", "jobs"]
    flags = ["--ignore-daemonsets"]
    return [
        Row("reconciler drain", [*ours, "drain", node, *flags, "--dry-run"], "node-maintenance-reconciler"),
        Row("kubectl drain", [str(server.kubectl), "drain", node, *flags, "--dry-run=client"], "kubectl"),
        Row("reconciler sweep", [*ours, "sweep", "--config", str(settings)], "node-maintenance-reconciler"),
    ]


def run(server: ControlPlane, row: Row) -> tuple[float, float]:
    """Run the command; return the seconds to its first request and to its end."""
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    began = datetime.now(UTC)
    done = subprocess.run(row.command, env=environment, capture_output=True, text=True, check=False)
    ended = datetime.now(UTC)
    if done.returncode:
        raise SystemExit(f"{row.name} ended with {done.returncode}: {done.stderr}")
    first = min(entry.timestamp for entry in server.audit_entries(user_agent=row.user_agent, since=began))
    return (first - began).total_seconds(), (ended - began).total_seconds()


def table(rows: list[Row]) -> str:
    """Return the rows as Markdown."""
    lines = ["| command | seconds to the first request (median, least–most) | to the end |", "|---|---|---|"]
    lines += [f"| {row.name} | {' | '.join(map(spread, row.measured.values()))} |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    """Measure, after one round that is not counted."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=15)
    chosen = arguments.parse_args()
    with ControlPlane() as server, tempfile.TemporaryDirectory() as folder:
        fill(server.kubeconfig, nodes=1, pools=(POOL,))
        settings = Path(folder) / "maintenance.yaml"
        settings.write_text("mode: Enforce\n", encoding="utf-8")
        rows = starts(server, settings)
        for number in range(chosen.rounds + 1):
            for row in rows:
                first, end = run(server, row)
                if number:
                    row.measured["first"].append(first)
                    row.measured["end"].append(end)
        print(table(rows), flush=True)


if __name__ == "__main__":
    main()
