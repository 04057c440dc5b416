"""Our programs as pip installs them, in a terminal in which a person types and completes words."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]


def install(folder: Path, *names: str) -> dict[str, str]:
    """Write programs with these names into the folder; return the environment that finds them."""
    for name in names:
        file = folder / name
        text = f"#!{sys.executable}\nimport sys\nfrom jobs.__main__ import main\nsys.exit(main())\n"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
    return {
        "PATH": f"{folder}{os.pathsep}{os.defpath}",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }


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


def completes(shell: list[str], first: str, folder: Path) -> None:
    """Press the tab key in this shell; AssertionError if a word does not become whole.

    `first` is what a person writes into the shell's start file, for a program in `folder`.
    """
    environment = install(folder, "reconciler")
    # No shell shows this line as it is, so that it is not found in what was typed.
    ready = f"{first}\necho rea''dy\n"
    with Terminal(shell, environment) as terminal:
        terminal.type(ready)
        terminal.wait_for("ready")
        terminal.type("reconciler readin\t")
        terminal.wait_for("readiness")
        terminal.type("-o markd\t")
        terminal.wait_for("markdown")
