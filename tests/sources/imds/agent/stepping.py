"""The agent in this process, step by step, between an IMDS and a Node that do what the test says."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobs.runtime.log_line import Level
from reconciler.sources.imds.agent.own_node import Access
from reconciler.sources.imds.agent.program import Agent, Arguments, Health
from tests.sources.imds.agent.fake_node_api import NODE, FakeNodeApi
from tests.support.fakes.imds import FakeImds

ALWAYS = 1e-9
"""For `reread`: the agent looks at its Node at every step."""

NEVER = 3600.0
"""For `reread`: it looks at its Node of its own accord no more once it has."""


INTERVAL = 5.0
"""Seconds between two requests to IMDS. A step makes one whenever a test calls it."""


@dataclass(slots=True)
class HandClock:
    """A clock for the agent that stands until a test moves it."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


class World:
    """One agent, and what it lives between."""

    def __init__(
        self,
        imds: FakeImds,
        api: FakeNodeApi,
        token: Path,
        reread: float,
        clock: Callable[[], float],
        interval: float = INTERVAL,
    ) -> None:
        self.imds, self.api = imds, api
        self._clock = clock
        self._arguments = Arguments(
            access=Access(api.address, token, None),
            node=NODE,
            imds_address=imds.address,
            interval=interval,
            prefix="node-maintenance.dev",
            listen=None,
            log_level=Level.INFO,
            reread=reread,
            once=False,
        )
        self.begin()

    def begin(self) -> None:
        """Nothing is scheduled, nothing is on the Node, and the agent has just been started."""
        self.imds.announce()
        self.imds.acknowledged.clear()
        self.imds.requests.clear()
        self.api.node["metadata"]["annotations"] = {}
        self.health = Health()
        self.agent = Agent(self._arguments, self.health, self._clock)

    def step(self, times: int = 1) -> None:
        """Let the agent do what is due."""
        for _ in range(times):
            self.agent.step()

    @property
    def unready(self) -> str:
        """Why /readyz would answer 503 now, empty if it would answer 200."""
        return self.health.why_not(self._clock())

    @property
    def posts(self) -> int:
        """How often Azure was asked to start something, whether it received the request or not."""
        return self.imds.requests.count("POST")

    @property
    def looks(self) -> int:
        """How often the agent has read its Node."""
        return self.api.requests.count("GET")


@contextmanager
def stepped_agent(
    *,
    reread: float,
    starts: bool = True,
    clock: Callable[[], float] = time.monotonic,
    interval: float = INTERVAL,
) -> Iterator[World]:
    """A world of its own; `starts` as for FakeImds, `clock` as for Agent."""
    with FakeImds(starts=starts) as imds, FakeNodeApi() as api, tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text("token\n", encoding="utf-8")
        yield World(imds, api, token, reread, clock, interval)
        assert imds.violations == []
