"""The time from an event to the cordon: a serving program and the node agent with a fake IMDS.

    python -m tests.bench.wake [--rounds N] [--nodes N]

Each round reports a Preempt on one node, in turn by its condition and by IMDS, waits for the cordon, and lets
the event pass. The next report comes at a random moment of the agent's second, once the node has rested: a
node that changes twice in a second waits for the rest of it. The node is a spot node of a real API server
with so many others beside it; the agent runs at its own pace there, a question a second.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

from jobs.runtime.pass_loop import APART
from reconciler.model.node import SPOT_LABEL
from tests.bench import spread
from tests.real.passes.processes import Programs
from tests.real.passes.scene import Scene
from tests.real.passes.test_serving import serving
from tests.sources.imds.agent.running import AgentProcess, as_admin
from tests.support.controlplane.fill import Pool, fill
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.server import ControlPlane
from tests.support.fakes import imds

_OTHERS = Pool("others")


def main() -> None:
    """Run the rounds and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--nodes", type=int, default=1000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as server, imds.FakeImds() as fake:
        took = measure(server, fake, Path(folder), chosen.nodes, chosen.rounds)
    print(f"\n{chosen.rounds} rounds among {chosen.nodes} nodes\n")
    print("| reported by | seconds to the cordon (median, least–most) |\n|---|---|")
    for source, seconds in took.items():
        print(f"| {source} | {spread(seconds)} |")


def measure(
    server: ControlPlane, fake: imds.FakeImds, folder: Path, nodes: int, rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of each round, by the source that reported."""
    fill(server.kubeconfig, nodes=nodes, pools=[_OTHERS])
    took: dict[str, list[float]] = defaultdict(list)
    with closing(Scene(server)) as scene, Programs(server.kubeconfig, folder) as programs:
        node = scene.node(labels={SPOT_LABEL: "spot"})
        words: dict[str, tuple[Callable[[], None], Callable[[], None]]] = {
            "node condition": (
                lambda: scene.condition_tells(node, "Preempt", minutes=0.5),
                lambda: scene.condition_silent(node),
            ),
            "IMDS, through the agent": (
                lambda: fake.announce(scene.event(0, "Preempt", minutes=0.5)),
                fake.announce,
            ),
        }
        agent = ("--node", node, "--imds-address", fake.address, *as_admin(server, folder))
        with AgentProcess(folder, *agent) as running:
            running.wait_for_line("watching")
            serving(programs)
            for number, source in product(range(rounds + 1), words):
                tell, silence = words[source]
                time.sleep(rested())
                scene.clock.set(datetime.now(UTC))
                seconds = until_cordoned(scene, node, tell)
                silence()
                wait_for("the uncordon", lambda: not scene.cordoned(node), seconds=60)
                # The first round finds no watch, maybe.
                if number:
                    took[source].append(seconds)
    return took


def rested() -> float:
    """Seconds until the last event delays no pass any more, and up to a second more, by chance."""
    return APART + random.uniform(0, 1)


def until_cordoned(scene: Scene, node: str, tell: Callable[[], None]) -> float:
    """Seconds from the change to the cordon."""
    tell()
    began = time.monotonic()
    wait_for("a cordon", lambda: scene.cordoned(node), seconds=60, every=0.005)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
