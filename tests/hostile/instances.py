"""Two instances of `serve` that a session can harm, and that start again as a kubelet would start them."""

from __future__ import annotations

import os
import re
import resource
import signal
import threading
from contextlib import suppress
from fcntl import F_SETPIPE_SZ, fcntl
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from reconciler.kubernetes.reader import NAMESPACE
from reconciler.kubernetes.reconcilers import LOCK
from tests.real.passes.processes import ENFORCE, ROOT, Running
from tests.support.controlplane.api import Api
from tests.support.controlplane.processes import wait_for

# Neither a budget nor a time-out is what a healthy node waits for.
_SETTINGS = f"""{ENFORCE}
budget: {{maxUnavailable: 100%}}
publish: [node-conditions]
drain:
  timeout: 1d
  rules:
  - {{name: kept, namespaces: {{matchLabels: {{keep: "yes"}}}}, behavior: Skip}}
"""
_NO_THREADS = """
from pathlib import Path
from tests.support.fakes.threads import refused

as_long_as_this_module = refused(lambda name: Path({file!r}).exists())
as_long_as_this_module.__enter__()
"""
_SMALLEST = 4096
"""Bytes of a pipe."""


class Instance(Running):
    """A process of `serve`; what it says is read unless `deafen` was called."""

    def __init__(self, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
        self._reads = threading.Event()
        self._reads.set()
        super().__init__(arguments, environment)
        for stream in self._streams.values():
            fcntl(stream, F_SETPIPE_SZ, _SMALLEST)

    def deafen(self) -> None:
        """Read nothing any more, and leave no room in its pipes."""
        self._reads.clear()
        for number in (1, 2):
            pipe = os.open(f"/proc/{self.pid}/fd/{number}", os.O_WRONLY | os.O_NONBLOCK)
            # The reader takes some of it before it stops.
            for _ in range(4):
                with suppress(BlockingIOError):
                    while True:
                        os.write(pipe, b" " * (_SMALLEST - 1) + b"\n")
                self._reads.wait(0.1)
            os.close(pipe)

    def hear(self) -> None:
        """Read what it says again."""
        self._reads.set()

    def may_open(self, more: int | None) -> None:
        """Let it open so many more files, or as many as at its start."""
        _, most = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        files = most if more is None else len(os.listdir(f"/proc/{self.pid}/fd")) + more
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (files, most))

    @property
    def peak_memory(self) -> int:
        """KiB; 0 of one that has ended."""
        with suppress(FileNotFoundError):
            status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
            if peak := re.search(r"VmHWM:\s*(\d+)", status):
                return int(peak[1])
        return 0

    def _read(self, name: str, stream: IO[str]) -> None:
        for line in stream:
            self._reads.wait()
            if line.strip():
                self._lines[name].append(line)


class Instances:
    """The instances of `serve`: the two that run, and all that were started."""

    def __init__(self, kubeconfig: Path, folder: Path, api: Api) -> None:
        """Start two, and wait until one of them leads."""
        self._api = api
        self.no_threads = folder / "no-threads"
        """While this file is there, no thread of an instance starts."""
        (folder / "sitecustomize.py").write_text(
            _NO_THREADS.format(file=str(self.no_threads)), encoding="utf-8"
        )
        self._environment = {"PYTHONPATH": f"{folder}:{ROOT}"}
        settings = folder / "maintenance.yaml"
        settings.write_text(_SETTINGS, encoding="utf-8")
        files = ("--config", str(settings), "--kubeconfig", str(kubeconfig))
        self._command = ("serve", "--every", "5s", "--listen", "127.0.0.1:0", *files)
        self._closed = threading.Event()
        self.started: list[Instance] = []
        self.running = [self._start(), self._start()]
        self.ended: list[Instance] = []
        """Those that have ended by themselves, or by a signal that asks for it."""
        self._kubelet = threading.Thread(target=self._start_again, name="kubelet", daemon=True)

    def __enter__(self) -> Self:
        wait_for(
            "an instance that leads", lambda: any(each.said("leading") for each in self.running), seconds=120
        )
        self._kubelet.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        if self._kubelet.is_alive():
            self._kubelet.join()
        for instance in self.started:
            instance.hear()
            instance.kill()

    @property
    def leader(self) -> Instance | None:
        """The one that the Lease names."""
        holder = str(self._api.get("leases", LOCK, NAMESPACE)["spec"].get("holderIdentity") or "")
        return next((each for each in self.running if str(each.pid) in holder.split("/")), None)

    @property
    def at_work(self) -> bool:
        """Whether one leads, and the other one stands by."""
        leader = self.leader
        return leader is not None and all(
            each.said("standing by") for each in self.running if each is not leader
        )

    def await_leader(self) -> Instance:
        return wait_for("an instance that leads", lambda: self.leader, seconds=120)

    def _start_again(self) -> None:
        while not self._closed.wait(1.0):
            for instance in [each for each in self.running if each.process.poll() is not None]:
                if instance.process.returncode != -signal.SIGKILL:
                    self.ended.append(instance)
                # One assignment, so that a reader sees two instances.
                self.running = [each for each in self.running if each is not instance] + [self._start()]

    def _start(self) -> Instance:
        self.started.append(Instance(self._command, self._environment))
        return self.started[-1]
