"""What the agent costs each node: memory, and nothing loaded that it does not need."""

from __future__ import annotations

import gc
import re
import sys

import pytest

from tests.sources.imds.agent.conftest import StartAgent
from tests.sources.imds.agent.fake_node_api import VM, FakeNodeApi
from tests.sources.imds.agent.stepping import ALWAYS, HandClock, World, stepped_agent
from tests.support.fakes.imds import FakeImds, event, started

pytestmark = pytest.mark.heavy


OURS = {
    "reconciler.model.azure",
    "jobs",
    "jobs.runtime",
    "jobs.runtime.health",
    "jobs.runtime.log_line",
    "jobs.runtime.unblocked",
    "reconciler",
    "reconciler.http",
    "reconciler.plugins",
    "reconciler.threads",
    "reconciler.http.plain",
    "reconciler.model.errors",
    "reconciler.model",
    "reconciler.model.event",
    "reconciler.model.keys",
    "reconciler.model.limits",
    "reconciler.model.moments",
    "reconciler.sources",
    "reconciler.sources.imds",
    "reconciler.sources.imds.agent",
    "reconciler.sources.imds.agent.figures",
    "reconciler.sources.imds.agent.imds",
    "reconciler.sources.imds.agent.own_node",
    "reconciler.sources.imds.agent.plain_http",
    "reconciler.sources.imds.agent.program",
    "reconciler.sources.imds.keys",
    "reconciler.sources.imds.scheduled_events",
}


def test_it_holds_no_more_after_a_hundred_polls_and_dozens_of_writes() -> None:
    with stepped_agent(reread=ALWAYS, clock=HandClock()) as world:
        live(world, 6)
        before = held()
        live(world, 10)

        # An answer of IMDS has 202. The fakes keep each write.
        assert held() - before < 400
        assert len(world.api.writes) == 2 * 16


def live(world: World, events: int) -> None:
    """Let the agent see so many events of its VM, among those of a hundred others."""
    others = [event(f"vmss_{other}", event_id=f"{other}") for other in range(100)]
    for number in range(events):
        freeze = event(VM, event_id=f"A{number}")
        for now in (freeze, started(freeze)):
            world.imds.announce(now, *others)
            world.step(times=3)


def held() -> int:
    """How many dicts and lists there are in this process."""
    gc.collect()
    return sum(isinstance(one, dict | list) for one in gc.get_objects())


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
    assert {"reconciler.sources.imds.scheduled_events", "ssl"} <= loaded
