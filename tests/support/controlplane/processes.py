"""The processes of the control plane, etcd among them, and how tests wait for what they do."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, TypeVar

import urllib3

Value = TypeVar("Value")


def wait_for(
    what: str,
    condition: Callable[[], Value | None],
    *,
    seconds: float = 20,
    every: float = 0.02,
    instead: Callable[[], object] | None = None,
) -> Value:
    """Ask again and again until the answer is true, and return it; TimeoutError names what was awaited.

    `instead` says for the error what there is. The first pause is `every` seconds. Pauses grow to five times
    of it, as each question costs CPU time.
    """
    pause = every
    deadline = time.monotonic() + seconds
    while True:
        if answer := condition():
            return answer
        if time.monotonic() > deadline:
            msg = f"still no {what} after {seconds:g} s"
            if instead is not None:
                msg = f"{msg}, but {instead()}"
            raise TimeoutError(msg)
        time.sleep(pause)
        pause = min(pause * 1.2, every * 5)


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


REGISTRY = "/registry/"
# A transaction of so many keys stays below etcd's limit of 1.5 MiB a request.
MOST_AT_ONCE = 5_000
# The API server keeps no cache of them, and nothing watches them.
_UNWATCHED = "events"


class Etcd:
    """One etcd, without its watches and leases."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(retries=False, timeout=30, maxsize=8)

    def close(self) -> None:
        """Close all connections."""
        self._pool.clear()

    def all_keys(self) -> frozenset[str]:
        """All keys of the API server, such as `/registry/pods/default/web`."""
        # The end of a prefix is the prefix with its last character one higher: `0` comes after `/`.
        end = REGISTRY[:-1] + chr(ord(REGISTRY[-1]) + 1)
        body = {"key": _encoded(REGISTRY), "range_end": _encoded(end), "keys_only": True}
        found = self._ask("range", body).get("kvs", [])
        return frozenset(base64.b64decode(one["key"]).decode() for one in found)

    def values(self, prefix: str) -> dict[str, str]:
        """Values by keys below one, such as `/registry/minions/np-`, encoded as `put` takes them."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        found = self._ask("range", {"key": _encoded(prefix), "range_end": _encoded(end)}).get("kvs", [])
        return {one["key"]: one["value"] for one in found}

    def put(self, values: Mapping[str, str]) -> None:
        """Store values, each in a transaction of its own: to the API server, they change all but at once."""
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda key: self._ask("put", {"key": key, "value": values[key]}), values))

    def delete(self, keys: Collection[str]) -> dict[str, int]:
        """Delete these keys in few transactions, of which each has one key of a kind.

        Return for each kind the revision of its last deletion.

        A transaction is one revision. A watch that ends between two events of a revision goes on after it, so
        whoever watches would never see the second: the scheduler would bind pods to a node that is gone.
        """
        kinds: dict[str, list[str]] = defaultdict(list)
        for key in sorted(keys):
            kinds[_kind(key)].append(key)
        unwatched = iter(kinds.pop(_UNWATCHED, ()))
        while part := list(islice(unwatched, MOST_AT_ONCE)):
            self._delete_at_once(part)
        revisions: dict[str, int] = {}
        for row in zip_longest(*kinds.values()):
            part = [key for key in row if key is not None]
            revisions |= dict.fromkeys(folders(part), self._delete_at_once(part))
        return revisions

    def _delete_at_once(self, keys: Collection[str]) -> int:
        operations = [{"request_delete_range": {"key": _encoded(key)}} for key in keys]
        return int(self._ask("txn", {"success": operations})["header"]["revision"])

    def _ask(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._pool.request("POST", f"{self._url}/v3/kv/{method}", body=json.dumps(body).encode())
        if answer.status != 200:
            msg = f"etcd answers {answer.status}: {answer.data.decode(errors='replace')[:200]}"
            raise RuntimeError(msg)
        document: dict[str, Any] = json.loads(answer.data)
        return document


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def folders(keys: Collection[str]) -> Iterator[str]:
    """The kinds that keys are of, as etcd names them: `pods`, `services`, `nodes`."""
    yield from {_kind(key) for key in keys}


def _kind(key: str) -> str:
    return key.removeprefix(REGISTRY).split("/", 1)[0]
