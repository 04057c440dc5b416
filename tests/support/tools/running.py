"""A program of others that serves HTTP on a free port of loopback, and ends with its test."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import urllib3

from tests.support.controlplane.waiting import wait_for


class Running:
    """Runs inside the context; what it prints goes to a file."""

    name = ""
    """What a person calls the program."""

    patience = 20.0
    """Seconds in which it must serve."""

    def __init__(self, program: Path, log: Path) -> None:
        """Use this program, and a port that is free now."""
        self._program, self._log = program, log
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{self.address}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it, and wait until it serves."""
        command = [str(self._program), *self.arguments()]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for(self.name, self._is_ready, seconds=self.patience)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def arguments(self) -> list[str]:
        """Return its arguments, and write the files that they name."""
        raise NotImplementedError

    def serves(self) -> bool:
        """Whether it answers now."""
        raise NotImplementedError

    def _is_ready(self) -> bool:
        if self.serves():
            return True
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(self._log.read_text(encoding="utf-8"))
        return False


class RunningOfPrometheus(Running):
    """One of the programs of the Prometheus project, in a folder of its own."""

    def __init__(self, program: Path, folder: Path) -> None:
        """Use this program."""
        super().__init__(program, folder / "log")
        self._folder = folder
        self._pool = urllib3.PoolManager()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        super().__exit__(kind, error, trace)
        self._pool.clear()

    def serves(self) -> bool:
        """Whether it says that it is ready."""
        try:
            answer = self._pool.request("GET", f"{self.url}/-/ready", retries=False, timeout=1)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200
