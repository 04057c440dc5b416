"""Child processes that never outlive the one that started them, and free ports for them."""

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# Between fork and the program: ask the kernel for SIGKILL at the parent's death (1 is PR_SET_PDEATHSIG), and
# make sure that it had not died before we asked.
_LAUNCH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(slots=True)
class Processes:
    """Named children of this process, each with a log file, and with these variables in its environment."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    # The kernel takes the end of the *thread* that forked for the parent's death. So one thread, which lives
    # as long as we do, forks for all: a test may restart a server from a thread of its own.
    _forker: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(max_workers=1, thread_name_prefix="controlplane-forker")
    )

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start one under a name; its output is appended to `<name>.log`."""
        if self.running(name):
            msg = f"{name} runs already"
            raise RuntimeError(msg)
        self._running[name] = self._forker.submit(self._fork, name, command).result()

    def _fork(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *command]
        with self.log(name).open("ab") as log:
            # A group of its own: Ctrl-C at the terminal reaches the owner, who stops the others in order.
            return subprocess.Popen(
                launch,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                process_group=0,
                # Memory is cheaper here than the time to collect it.
                env={"GOGC": "400", **self.variables, **os.environ},
            )

    def running(self, name: str) -> bool:
        """Whether it was started and has not ended."""
        process = self._running.get(name)
        return process is not None and process.poll() is None

    def pid(self, name: str) -> int:
        """The process id of one that was started."""
        return self._running[name].pid

    def names(self) -> tuple[str, ...]:
        """All that were started and not stopped since, first started first."""
        return tuple(self._running)

    def log(self, name: str) -> Path:
        """Where its output goes."""
        return self.folder / f"{name}.log"

    def stop(self, *names: str) -> None:
        """End them by force: their data is thrown away, or etcd's, which stands that."""
        stopped = [self._running.pop(name) for name in names if name in self._running]
        for process in stopped:
            process.send_signal(signal.SIGKILL)
        for process in stopped:
            process.wait()

    def close(self) -> None:
        """End all, last started first."""
        self.stop(*reversed(self.names()))
        self._forker.shutdown()


_WORKERS = 16
"""Workers of a test run that have ports of their own."""


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on.

    Below the range from which the kernel takes ports for outgoing connections: a client that tries again and
    again while the server is down would else meet itself some day, or take the server's port. Workers of one
    test run never get the same port: another one may be about to listen on it.
    """
    ports: list[int] = []
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    candidates = random.SystemRandom().sample(range(15_000 + worker % _WORKERS, 32_000, _WORKERS), 500)
    for port in candidates:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    msg = "no free ports on loopback"
    raise RuntimeError(msg)


def alive(pid: int) -> bool:
    """Whether a process of that id runs; one that has ended and waits for its parent to notice does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    # The name before the state is in brackets and may hold anything.
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")
