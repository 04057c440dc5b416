"""An IMDS, an API server with one Node, and how to start an agent between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.sources.imds.agent.fake_node_api import NODE, FakeNodeApi
from tests.sources.imds.agent.running import AgentProcess
from tests.support.fakes.imds import FakeImds

StartAgent = Callable[..., AgentProcess]


@pytest.fixture
def api() -> Iterator[FakeNodeApi]:
    with FakeNodeApi() as server:
        yield server


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n", encoding="utf-8")
    return path


@pytest.fixture
def start_agent(imds: FakeImds, api: FakeNodeApi, token_file: Path, tmp_path: Path) -> Iterator[StartAgent]:
    """Start the agent; what a test gives comes last and so wins."""
    with ExitStack() as stack:

        def start(
            *arguments: str,
            environment: dict[str, str] | None = None,
            python: tuple[str, ...] = (),
            interval: str | None = "0.05",
        ) -> AgentProcess:
            process = AgentProcess(
                tmp_path,
                *("--node", NODE, "--imds-address", imds.address),
                *(() if interval is None else ("--interval", interval)),
                *("--server", api.address, "--token-file", str(token_file), "--listen", "127.0.0.1:0"),
                *arguments,
                environment=environment,
                python=python,
            )
            return stack.enter_context(process)

        yield start
