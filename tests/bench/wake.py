"""How long from a word to the cordon: a serving program and the node agent before a fake IMDS.

    python -m tests.bench.wake [--rounds N] [--nodes N]

Each round tells of a Preempt on one node, in turn by its condition and by IMDS, at a random moment of the
agent's second, waits for the cordon, and lets the event pass. The node is a spot node of a real API server
with so many others beside it; the agent runs at its own pace there, a question a second.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from tests.agent.running import AgentProcess
from tests.controlplane.api import Api
from tests.controlplane.fill import Pool, fill, no_vm_event, patch_conditions, vm_event
from tests.controlplane.server import ControlPlane
from tests.controlplane.waiting import wait_for
from tests.fakes import imds
from tests.passes.processes import ENFORCE, Programs

_SPOT = Pool("spot", spot=True)
_OTHERS = Pool("np")


def main() -> None:
    """Run the rounds and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--nodes", type=int, default=1000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as server, imds.FakeImds() as fake:
        took = measure(server, fake, Path(folder), chosen.nodes, chosen.rounds)
    print(f"\n{chosen.rounds} rounds among {chosen.nodes} nodes\n")
    print("| told by | seconds to the cordon (median, least–most) |\n|---|---|")
    for source, seconds in took.items():
        print(f"| {source} | {statistics.median(seconds):.2f} ({min(seconds):.2f}–{max(seconds):.2f}) |")


def measure(
    server: ControlPlane, fake: imds.FakeImds, folder: Path, nodes: int, rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of each round by who told."""
    fill(server.kubeconfig, nodes=nodes, pools=[_OTHERS])
    api = server.api
    node = str(api.create("nodes", _SPOT.node(0))["metadata"]["name"])
    config = yaml.safe_load(server.kubeconfig.read_text())
    token = folder / "token"
    token.write_text(config["users"][0]["user"]["token"])
    agent = (
        *("--node", node, "--imds-address", fake.address, "--server", server.url),
        *("--token-file", str(token)),
        *("--ca-file", config["clusters"][0]["cluster"]["certificate-authority"]),
    )
    words: tuple[tuple[str, Callable[[], None], Callable[[], None]], ...] = (
        ("node condition", lambda: _condition(api, node), lambda: _no_condition(api, node)),
        ("IMDS, through the agent", lambda: _imds(fake), fake.tell),
    )
    took: dict[str, list[float]] = defaultdict(list)
    with AgentProcess(folder, *agent) as running, Programs(server.kubeconfig, folder) as programs:
        programs.configure(ENFORCE)
        running.wait_for_line("watching")
        programs.start("serve", "--every", "1h").wait_for("leading")
        for number in range(rounds + 1):
            for source, tell, silence in words:
                time.sleep(random.uniform(0, 1))
                seconds = _until_cordoned(api, node, tell)
                silence()
                wait_for("the uncordon", lambda: not _is_cordoned(api, node), seconds=60)
                # The first round finds no watch, maybe.
                if number:
                    took[source].append(seconds)
    return took


def _until_cordoned(api: Api, node: str, tell: Callable[[], None]) -> float:
    tell()
    began = time.perf_counter()
    wait_for("a cordon", lambda: _is_cordoned(api, node), seconds=60, every=0.005)
    return time.perf_counter() - began


def _is_cordoned(api: Api, node: str) -> bool:
    return bool(api.get("nodes", node)["spec"].get("unschedulable", False))


def _condition(api: Api, node: str) -> None:
    now = datetime.now(UTC)
    patch_conditions(api, node, vm_event("Preempt", now + timedelta(seconds=30), now=now))


def _no_condition(api: Api, node: str) -> None:
    patch_conditions(api, node, no_vm_event(now=datetime.now(UTC)))


def _imds(fake: imds.FakeImds) -> None:
    when = datetime.now(UTC) + timedelta(seconds=30)
    fake.tell(
        imds.event(
            _SPOT.vm_name(0),
            "Preempt",
            event_id=f"{random.getrandbits(128):032X}",
            not_before=when.strftime("%a, %d %b %Y %H:%M:%S GMT"),
            duration=-1,
        )
    )


if __name__ == "__main__":
    main()
