"""A program on a terminal, typed at as a person does."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self


class Terminal:
    """A program with a terminal of its own; leaving kills it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._shown = b""
        self._pid, self._file = pty.fork()
        if self._pid == 0:
            try:
                os.execve(command[0], [*command], dict(environment))
            finally:
                os._exit(127)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.close(self._file)
        os.waitpid(self._pid, 0)

    def type(self, text: str) -> None:
        """Press these keys; what was shown before no longer counts."""
        self._shown = b""
        os.write(self._file, text.encode())

    def wait_for(self, text: str, seconds: float = 60) -> str:
        """Wait until the terminal shows the text; return all that it showed since the last keys."""
        end = time.monotonic() + seconds
        while text.encode() not in self._shown:
            ready, _, _ = select.select([self._file], [], [], max(end - time.monotonic(), 0))
            more = b""
            if ready:
                with suppress(OSError):
                    more = os.read(self._file, 65536)
            if not more:
                raise AssertionError(f"the terminal does not show {text!r}: {self._shown!r}")
            self._shown += more
        return self._shown.decode(errors="replace")
