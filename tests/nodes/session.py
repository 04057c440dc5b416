"""The session inside its namespaces: one cluster, one scenario after the other, and the table at the end."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.nodes.cluster import Cluster
from tests.nodes.scenarios import SCENARIOS
from tests.support.controlplane.binaries import kubernetes_version

INTERRUPTED = 130
"""The exit code after Ctrl-C, as of a shell."""

RESULT = Path(__file__).parents[2] / "docs/reliability.md"
MARKS = "<!-- nodes: begin, written by nox -s nodes -- --write -->", "<!-- nodes: end -->"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a session does, and with which files."""

    names: tuple[str, ...]
    kubelet: str
    image: str
    next_image: str
    plugin: str
    keep: str
    write: bool

    def text(self) -> str:
        """Return it as an argument of the session's process."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Row:
    """What came of a scenario."""

    name: str
    seconds: float
    passed: bool
    seen: str


def main() -> int:
    """Play; 1 if something failed."""
    # Nothing has to be undone: all of it ends with the namespaces.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    folder, plan = Path(sys.argv[1]), Plan(**json.loads(sys.argv[2]))
    began = time.monotonic()
    rows: list[Row] = []
    archives = Path(plan.image), Path(plan.next_image), Path(plan.plugin)
    with Cluster(folder, {"kubelet": Path(plan.kubelet)}, *archives) as cluster:
        ready = time.monotonic() - began
        print(f"{len(cluster.nodes)} nodes are Ready after {ready:.0f} s", flush=True)
        for name in plan.names:
            cluster.kept = Path(plan.keep) / name
            shutil.rmtree(cluster.kept, ignore_errors=True)
            rows.append(row := played(cluster, name))
            print(f"{name}: {'passed' if row.passed else 'FAILED'} in {row.seconds:.0f} s", flush=True)
            if not row.passed:
                cluster.keep()
            try:
                cluster.clean()
            except TimeoutError:
                print("The nodes do not come back. The other scenarios are not played.", flush=True)
                break
        failed = len(rows) < len(plan.names) or not all(row.passed for row in rows)
        heading = (
            f"{datetime.now(UTC):%Y-%m-%d}, Kubernetes {kubernetes_version()}, {_versions()}:"
            f" {len(cluster.nodes)} nodes Ready after {ready:.0f} s, {len(rows)} scenarios in"
            f" {time.monotonic() - began:.0f} s"
        )
    print(table(rows), heading, sep="\n")
    if failed:
        print(f"Logs: {plan.keep}")
    elif plan.write:
        RESULT.write_text(written(RESULT.read_text(encoding="utf-8"), heading, rows), encoding="utf-8")
    return int(failed)


def played(cluster: Cluster, name: str) -> Row:
    """Play a scenario, and return what came of it."""
    began = time.monotonic()
    try:
        seen, passed = SCENARIOS[name](cluster), True
    except Exception as error:  # noqa: BLE001 - the other scenarios are played all the same
        traceback.print_exc()
        reason: BaseException = error
        # What fails while the rest is taken down is no reason, but follows from it.
        while reason.__context__ is not None and not reason.__suppress_context__:
            reason = reason.__context__
        seen, passed = f"{type(reason).__name__}: {reason}".strip(), False
    return Row(name, time.monotonic() - began, passed, seen)


def _versions() -> str:
    """Return the versions of the programs of others."""
    found = []
    for program in ("containerd", "runc"):
        text = subprocess.run(
            [program, "--version"], capture_output=True, encoding="utf-8", check=True
        ).stdout
        version = re.search(r"\d+\.\d+\.\d+", text)
        found.append(f"{program} {version[0] if version else text.strip()}")
    return ", ".join(found)


def table(rows: Sequence[Row]) -> str:
    """Return the result for a terminal."""
    width = max(len(row.name) for row in rows)
    lines = [f"{'scenario':{width}}  seconds  seen"]
    for row in rows:
        seen = row.seen if row.passed else f"FAILED: {row.seen}"
        lines.append(f"{row.name:{width}}  {row.seconds:7.0f}  {seen}")
    return "\n".join(lines)


def written(page: str, heading: str, rows: Sequence[Row]) -> str:
    """Return the page with this result between its marks; ValueError if it has no marks."""
    begin, end = (page.index(mark) for mark in MARKS)
    lines = [f"{heading}.", "", "| scenario | seconds | what was seen |", "|---|---|---|"]
    lines += [f"| {row.name} | {row.seconds:.0f} | {row.seen} |" for row in rows]
    return page[: begin + len(MARKS[0])] + "\n" + "\n".join(lines) + "\n" + page[end:]


if __name__ == "__main__":
    sys.exit(main())
