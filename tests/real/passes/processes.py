"""The program as its users run it: `python -m jobs …`, what it said, and how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tests.real.forks import Forks
from tests.support.controlplane.processes import wait_for

Object = dict[str, Any]

ROOT = Path(__file__).parents[3]
ENFORCE = "mode: Enforce\nuncordon: {settle: 0s}\n"
# A crash in a library then shows where it happened.
OUTPUT = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}


@dataclass(frozen=True, slots=True)
class Done:
    """A process that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Object:
        """What `--output json` printed."""
        found: Object = json.loads(self.out)
        return found

    def node(self, name: str) -> Object:
        """The part of its output about a node."""
        return next((one for one in self.document["nodes"] if one["name"] == name), {})


class Running:
    """A process that runs; its output is read as it comes.

    With `forks` it is a fork of a process that has loaded the program, without them a fresh interpreter.
    """

    def __init__(
        self, arguments: Sequence[str], pod: Mapping[str, str] | None = None, forks: Forks | None = None
    ) -> None:
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("POD_", "NODE_", "KUBE", "COV_"))
        }
        environment = {**inherited, **(pod or {}), **OUTPUT}
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        try:
            self.process = (
                _started(arguments, environment, out_end, err_end)
                if forks is None
                else forks.start(arguments, environment, out_end, err_end)
            )
        finally:
            os.close(out_end)
            os.close(err_end)
        self._streams = {"out": open(out, encoding="utf-8"), "err": open(err, encoding="utf-8")}  # noqa: SIM115
        self._lines: dict[str, list[str]] = {"out": [], "err": []}
        self._readers = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in self._streams.items()
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self, event: str) -> list[Object]:
        """The log lines of an event so far (`serve` writes JSON lines)."""
        lines = [json.loads(line) for line in list(self._lines["out"]) if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    def wait_for(self, event: str, *, seconds: float = 60, count: int = 1) -> list[Object]:
        """Wait until it has said so often what is asked; all of it."""

        def heard() -> list[Object] | None:
            found = self.said(event)
            if len(found) < count and self.process.poll() is not None:
                msg = f"it ended with {self.process.returncode} and no {event!r}: {self.everything()}"
                raise AssertionError(msg)
            return found if len(found) >= count else None

        return wait_for(f"log line {event!r}", heard, seconds=seconds)

    def does(self, what: str, condition: Callable[[], object], *, seconds: float = 60) -> None:
        """Wait for something that it is to bring about; where it ends before, say what it said."""

        def done() -> bool:
            if condition():
                return True
            if self.process.poll() is not None and not condition():
                msg = f"it ended with {self.process.returncode} and no {what}: {self.everything()}"
                raise AssertionError(msg)
            return False

        wait_for(what, done, seconds=seconds)

    def everything(self) -> str:
        return "".join([*self._lines["out"], *self._lines["err"]])

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = 120) -> Done:
        """Wait for its end; AssertionError with what each of its threads does if it goes on."""
        try:
            code = self.process.wait(seconds)
        except (TimeoutError, subprocess.TimeoutExpired):
            self.signal(signal.SIGABRT)
            self.process.wait(60)
            self._readers[-1].join(60)
            msg = f"it still ran after {seconds:g} s: {self.everything()}"
            raise AssertionError(msg) from None
        for reader in self._readers:
            reader.join(60)
        return Done(code, "".join(self._lines["out"]), "".join(self._lines["err"]))

    def terminate(self) -> Done:
        """Ask it to end, and wait for that."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it at once; again is no harm."""
        self.signal(signal.SIGKILL)
        self.wait(60)
        for stream in self._streams.values():
            stream.close()

    def _read(self, name: str, stream: IO[str]) -> None:
        for line in stream:
            self._lines[name].append(line)


def _started(
    arguments: Sequence[str], environment: Mapping[str, str], out: int, err: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "jobs", *arguments],
        stdout=out,
        stderr=err,
        cwd=ROOT,
        # It must not outlive a test run that was interrupted on the terminal, nor be interrupted by it.
        start_new_session=True,
        env=dict(environment),
    )


class Programs:
    """Starts the program against one kubeconfig; leaving kills what still runs.

    With `forks`, processes are forked from one that has loaded the program.
    """

    def __init__(self, kubeconfig: Path, folder: Path, forks: Forks | None = None) -> None:
        self.kubeconfig = kubeconfig
        self.folder = folder
        self.forks = forks
        self._running: list[Running] = []
        self._lock = threading.Lock()
        self.configure(ENFORCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._running:
            process.kill()

    @property
    def config(self) -> Path:
        return self.folder / "maintenance.yaml"

    def configure(self, text: str) -> Path:
        """Write the settings file, as an editor does: whole or not at all."""
        fresh = self.folder / "fresh.yaml"
        fresh.write_text(text, encoding="utf-8")
        return fresh.rename(self.config)

    def start(
        self,
        *arguments: str,
        kubeconfig: Path | None = None,
        config: Path | None = None,
        pod: Mapping[str, str] | None = None,
    ) -> Running:
        """Start a command; sweep, serve, report and plan are given settings, unless they name some.

        `pod` is the part of the environment that the downward API would set.
        """
        command = [*arguments]
        named = any(argument.startswith("--config=") for argument in arguments)
        if arguments[0] in ("sweep", "serve", "report", "plan") and not named:
            command += ["--config", str(config or self.config)]
        command += ["--kubeconfig", str(kubeconfig or self.kubeconfig)]
        process = Running(command, pod, self.forks)
        with self._lock:
            self._running.append(process)
        return process

    def run(self, *arguments: str, kubeconfig: Path | None = None, config: Path | None = None) -> Done:
        """Run a command to its end."""
        return self.start(*arguments, kubeconfig=kubeconfig, config=config).wait()

    def sweep(self, *arguments: str, kubeconfig: Path | None = None, config: Path | None = None) -> Done:
        """Run a sweep that tells JSON."""
        return self.run("sweep", "--output", "json", *arguments, kubeconfig=kubeconfig, config=config)
