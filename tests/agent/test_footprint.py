"""What the agent costs each node: memory, and nothing loaded that it does not need."""

from __future__ import annotations

import re
import sys

from tests.agent.conftest import StartAgent
from tests.agent.fake_node_api import VM, FakeNodeApi
from tests.support.fakes.imds import FakeImds, event, started

LIMIT_KIB = 25 * 1024
OURS = {
    "jobs",
    "jobs.agent",
    "jobs.agent.figures",
    "jobs.agent.program",
    "jobs.runtime",
    "jobs.runtime.health",
    "jobs.runtime.log_line",
    "jobs.runtime.log_words",
    "reconciler",
    "reconciler.clients",
    "reconciler.clients.agent",
    "reconciler.clients.agent.imds",
    "reconciler.clients.agent.own_node",
    "reconciler.clients.agent.plain_http",
    "reconciler.clients.retry_after",
    "reconciler.errors",
    "reconciler.model",
    "reconciler.model.event",
    "reconciler.model.keys",
    "reconciler.model.limits",
    "reconciler.model.names",
    "reconciler.model.moments",
    "reconciler.model.printable",
    "reconciler.sources",
    "reconciler.sources.imds",
}


def test_it_stays_under_25_mib_after_hundreds_of_polls_and_dozens_of_writes(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    api.node["status"] = {"images": [{"names": ["x" * 200]}] * 100}  # a Node of AKS has 25 KB
    agent = start_agent("--interval", "0.01", "--reread", "0.1")
    for number in range(20):
        freeze = event(VM, event_id=f"A{number}")
        imds.announce(freeze, *(event(f"vmss_{other}", event_id=f"{other}") for other in range(100)))
        api.wait_for_events(f"A{number}")
        imds.announce(started(freeze))
        imds.wait_for_requests(10)

    assert agent.resident_kib() < LIMIT_KIB
    print(f"resident: {agent.resident_kib()} KiB")


def test_it_loads_the_standard_library_and_a_handful_of_our_own(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    imds.announce(event(VM, event_id="A"))
    agent = start_agent(python=("-X", "importtime"))
    api.wait_for_events("A")
    agent.process.terminate()
    agent.process.wait(60)

    loaded = set(re.findall(r"\|\s+([\w.]+)$", agent.errors.read_text(encoding="utf-8"), re.MULTILINE))
    foreign = {name for name in loaded - OURS if name.partition(".")[0] not in sys.stdlib_module_names}
    # A virtual environment's own hooks are not in the image; `copy` looks in vain for Jython's `org`.
    hooks = {"_distutils_hack", "_virtualenv", "sitecustomize", "org"}
    assert {name.partition(".")[0] for name in foreign} <= hooks
    assert {"reconciler.sources.imds", "ssl"} <= loaded
