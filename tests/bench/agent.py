"""How much memory the node agent takes, as a process of its own between an IMDS and a Node.

`python -m tests.bench.agent [--events 20]` lets it poll a hundred times a second, and announces events of its
VM among those of a hundred others. The Node has 25 KB, as on AKS. What is printed is its resident memory.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.sources.imds.agent.fake_node_api import NODE, VM, FakeNodeApi
from tests.sources.imds.agent.running import AgentProcess
from tests.support.fakes.imds import FakeImds, event, started


def main() -> None:
    """Measure once."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=20)
    chosen = arguments.parse_args()
    with FakeImds() as imds, FakeNodeApi() as api, tempfile.TemporaryDirectory() as folder:
        api.node["status"] = {"images": [{"names": ["x" * 200]}] * 100}
        token = Path(folder) / "token"
        token.write_text("token\n", encoding="utf-8")
        flags = ["--node", NODE, "--server", api.address, "--token-file", str(token)]
        flags += ["--imds-address", imds.address, "--interval", "0.01", "--reread", "0.1"]
        with AgentProcess(Path(folder), *flags) as agent:
            for number in range(chosen.events):
                freeze = event(VM, event_id=f"A{number}")
                imds.announce(freeze, *(event(f"vmss_{other}", event_id=f"{other}") for other in range(100)))
                api.wait_for_events(f"A{number}")
                imds.announce(started(freeze))
                imds.wait_for_requests(10)
            print(f"resident: {agent.resident_kib() / 1024:.1f} MiB after {len(imds.requests)} requests")


if __name__ == "__main__":
    main()
