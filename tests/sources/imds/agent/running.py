"""The agent as a process of its own, by its real entry point."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.support.controlplane.processes import _LAUNCH, wait_for
from tests.support.controlplane.server import ControlPlane

SERVICE = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "NODE_NAME", "IMDS_ADDRESS")


def as_admin(server: ControlPlane, folder: Path) -> tuple[str, ...]:
    """The arguments by which an agent speaks to a real API server as its admin; a token is written."""
    config = yaml.safe_load(server.kubeconfig.read_text(encoding="utf-8"))
    token = folder / "token"
    token.write_text(config["users"][0]["user"]["token"], encoding="utf-8")
    authority = config["clusters"][0]["cluster"]["certificate-authority"]
    return "--server", server.url, "--token-file", str(token), "--ca-file", authority


class AgentProcess:
    """Runs from `with` to its end; its parent's death is its own."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        environment: dict[str, str] | None = None,
        python: Sequence[str] = (),
    ) -> None:
        self.output = folder / "agent.out"
        self.errors = folder / "agent.err"
        inherited = {key: value for key, value in os.environ.items() if key not in SERVICE}
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid())),
                    *(sys.executable, *python, "-m", "reconciler.sources.imds.agent", *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env={**inherited, **(environment or {})},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()

    def lines(self, message: str | None = None) -> list[dict[str, Any]]:
        """What it has logged: all, or the lines of one message."""
        text = self.output.read_text(encoding="utf-8")
        logged = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
        return [line for line in logged if message in (None, line["event"])]

    def wait_for_line(self, message: str, *, seconds: float = 20) -> dict[str, Any]:
        """Return the first line of that message once it is there."""
        return wait_for(f"log line {message!r}", lambda: self.lines(message), seconds=seconds)[0]

    def readiness(self) -> tuple[int, str]:
        """Ask as a kubelet does: the status and the reason."""
        return self.asked("/readyz")

    def asked(self, path: str) -> tuple[int, str]:
        """Return the status and the text that a path has."""
        host, _, port = self.wait_for_line("listening")["address"].rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode().strip()
        finally:
            connection.close()

    def wait_until_ready(self) -> None:
        """Return once /readyz says 200."""
        wait_for("readiness of the agent", lambda: self.readiness()[0] == 200)

    def resident_kib(self) -> int:
        """VmRSS: anonymous memory and mapped files."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1])
