"""What a pass costs that has nothing to do: whole processes, alternating, on a real API server.

`python -m tests.bench.sweep [--nodes 5000,10000] [--rounds 6]` prints time, peak memory and number of
requests of `reconciler sweep`, of curl fetching the same list as JSON, and of `kubectl get nodes -o name`.
With `--image FILE`, the archive of an image, also of `reconciler sweep` in there. This needs root: it runs in
the files of the image, not in a container.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import yaml

from tests.bench import Row, spread
from tests.support.controlplane.fill import Pool, fill
from tests.support.controlplane.server import ControlPlane

POOLS = (Pool("np"), Pool("batch"))


# Started bare, so that what is measured is not hidden behind this process's own memory: a child's peak
# begins with what its parent had when it was forked.
_LAUNCHER = """
import os, sys, time
began = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[
    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - began
print(os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss / 1024)
"""


def run_once(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a whole process; return wall seconds and its peak resident MiB, as the kernel counts it."""
    launcher = [sys.executable, "-S", "-E", "-c", _LAUNCHER, *command]
    done = subprocess.run(launcher, env=environment, stdout=subprocess.PIPE, encoding="utf-8", check=True)
    code, seconds, peak = done.stdout.split()
    if code != "0":
        raise SystemExit(f"{command[0]} ended with {code}")
    return float(seconds), float(peak)


def curl_command(kubeconfig: Path, url: str) -> list[str]:
    """Return the curl command that fetches every node as JSON, as the kubeconfig's user."""
    curl = shutil.which("curl")
    if curl is None:
        raise SystemExit("curl is not installed")
    document = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    token = document["users"][0]["user"]["token"]
    authority = document["clusters"][0]["cluster"]["certificate-authority"]
    return [
        curl, "-sf", "-o", "/dev/null", "-A", "bench-curl", "--cacert", authority,
        "-H", f"Authorization: Bearer {token}", f"{url}/api/v1/nodes",
    ]  # fmt: skip


def unpack(archive: Path, to: Path) -> None:
    """Unpack the files of an image from what `docker save` or `buildah push` wrote."""
    with tarfile.open(archive) as outer:
        manifest = outer.extractfile("manifest.json")
        assert manifest is not None
        for name in json.load(manifest)[0]["Layers"]:
            with tarfile.open(fileobj=outer.extractfile(name)) as layer:
                layer.extractall(to, filter="tar")


def in_image(root: Path, server: ControlPlane, settings: Path) -> Row:
    """Return the sweep in an unpacked image, with the files that it reads at the same paths in there."""
    document = yaml.safe_load(server.kubeconfig.read_text(encoding="utf-8"))
    authority = Path(document["clusters"][0]["cluster"]["certificate-authority"])
    for file in (server.kubeconfig, authority, settings):
        copy = root / file.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    enter = [shutil.which("chroot") or "chroot", str(root), "/app/bin/python", "-m", "jobs"]
    return Row(
        "the same in the image", [*enter, "sweep", "--config", str(settings)], "node-maintenance-reconciler"
    )


def measure(server: ControlPlane, settings: Path, rounds: int, image: Path | None) -> list[Row]:
    """Run the programs in turn, `rounds` times after one round that is not counted."""
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
    rows = [
        Row(
            "reconciler sweep",
            [sys.executable, "-m", "jobs", "sweep", "--config", str(settings)],
            "node-maintenance-reconciler",
        ),
        Row("curl, JSON", curl_command(server.kubeconfig, server.url), "bench-curl"),
        Row("kubectl get nodes -o name", [str(server.kubectl), "get", "nodes", "-o", "name"], "kubectl"),
    ]
    if image is not None:
        rows.append(in_image(image, server, settings))
    for number in range(rounds + 1):
        # Each goes first in its turn: what one leaves behind in the server, another one meets.
        turn = number % len(rows)
        for row in (*rows[turn:], *rows[:turn]):
            before = len(server.audit_entries(user_agent=row.user_agent))
            seconds, peak = run_once(row.command, environment)
            asked = len(server.audit_entries(user_agent=row.user_agent)) - before
            if number:
                for what, value in (("seconds", seconds), ("peak", peak), ("requests", asked)):
                    row.measured[what].append(value)
    return rows


def table(nodes: int, rows: list[Row]) -> str:
    """Return the rows as Markdown: medians, and the median of the ratios to curl round by round."""
    lines = [
        f"{nodes} nodes, medians of {len(rows[0].measured['seconds'])} rounds in turn:",
        "",
        "| program | seconds | to curl | peak MiB | requests |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        seconds, peaks, requests = (row.measured[what] for what in ("seconds", "peak", "requests"))
        to_curl = zip(seconds, rows[1].measured["seconds"], strict=True)
        ratio = statistics.median(own / curl for own, curl in to_curl)
        lines.append(
            f"| {row.name} | {spread(seconds)} | {ratio:.2f} | "
            f"{statistics.median(peaks):.0f} | {statistics.median(requests):.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Fill a cluster for each size and print its table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", default="5000,10000")
    arguments.add_argument("--rounds", type=int, default=6)
    arguments.add_argument("--image", type=Path, help="the archive of an image, to measure that too")
    chosen = arguments.parse_args()
    for nodes in (int(text) for text in chosen.nodes.split(",")):
        with ControlPlane() as server, tempfile.TemporaryDirectory() as folder:
            fill(server.kubeconfig, nodes=nodes, pools=POOLS)
            settings = Path(folder) / "maintenance.yaml"
            settings.write_text("mode: Enforce\n", encoding="utf-8")
            image = Path(folder) / "image" if chosen.image else None
            if image is not None:
                unpack(chosen.image, image)
            print(table(nodes, measure(server, settings, chosen.rounds, image)), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
