"""The program as a process that is forked from one that has loaded it, instead of loading it each time.

`Forks` starts `python -m tests.real.forks` once. That process imports the commands, waits for requests, and
forks for each. The fork runs `jobs` as `python -m jobs` does, and ends as an interpreter ends: its threads,
its exit code and its signals are those of a process that was started in the usual way.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.support.fakes.files import places_fail_once
from tests.support.fakes.threads import OnceByFile, refused

_ROOT = Path(__file__).parents[2]
_LARGEST_REQUEST = 1 << 16
DEFAULTS = "FORK_DEFAULTS"
"""The variable with other defaults of functions in a fork: `{"module:function": {"argument": 1}}`."""
NO_THREADS = "FORK_NO_THREADS"
"""The variable with a file of names of threads: a fork can't start the next thread with each of them."""
NO_FILES = "FORK_NO_FILES"
"""The variable with a path: while there is a file, each place of a fork that opens something fails once."""
_COMMANDS = ("drain", "release", "report", "serve", "sweep")


class Fork:
    """A process that runs, or has ended; like the part of Popen that the tests use."""

    def __init__(self, pid: int, status: IO[str]) -> None:
        """Take the process id, and the pipe that reports the exit code."""
        self.pid = pid
        self.returncode: int | None = None
        self._ended = threading.Event()
        # One thread reads the pipe, because several may wait for the end.
        threading.Thread(target=self._read, args=(status,), name=f"fork-{pid}", daemon=True).start()

    def poll(self) -> int | None:
        """Return the exit code, None while it runs; a signal is its negative number."""
        return self.returncode

    def wait(self, seconds: float) -> int:
        """Return the exit code once it has ended; TimeoutError if it goes on."""
        self._ended.wait(seconds)
        if self.returncode is None:
            msg = f"process {self.pid} still runs after {seconds:g} s"
            raise TimeoutError(msg)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _read(self, status: IO[str]) -> None:
        with status:
            self.returncode = int(status.readline())
        self._ended.set()


class Forks:
    """The process that forks, for as long as the `with` lasts."""

    def __init__(self) -> None:
        """Start it; it is ready when the first fork has been asked for."""
        self._lock = threading.Lock()
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                # Pipes, as the forks will have: a text stream remembers whether its file can seek.
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=_ROOT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                # A crash in a library then shows where it happened.
                env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._requests.close()
        with self._process:
            self._process.wait(30)

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], out: int, err: int) -> Fork:
        """Run `python -m jobs` with these arguments, this environment and these files for its output."""
        request = json.dumps([list(arguments), dict(environment)]).encode()
        ours, theirs = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._requests, [request], [out, err, theirs])
        finally:
            os.close(theirs)
        status = os.fdopen(ours, encoding="ascii")
        pid = status.readline()
        if not pid:
            status.close()
            assert self._process.stdout is not None
            msg = f"the program can't be loaded: {self._process.stdout.read().decode(errors='replace')}"
            raise RuntimeError(msg)
        return Fork(int(pid), status)


def _serve(requests: socket.socket) -> tuple[list[str], dict[str, str]]:
    """Fork for each request. Returns in the fork, with its arguments and environment; exits at the end."""
    while True:
        request, files, _, _ = socket.recv_fds(requests, _LARGEST_REQUEST, 3)
        if not request:
            sys.exit()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        if os.fork() == 0:
            requests.close()
            _fork(*files)
            arguments, environment = json.loads(request)
            return arguments, environment
        for file in files:
            os.close(file)


def _fork(out: int, err: int, status: int) -> None:
    """Fork once more, and return in the fork; this process stays, and reports the fork's end."""
    pid = os.fork()
    if pid:
        for file in (out, err):
            os.close(file)
        os.write(status, f"{pid}\n".encode())
        _, ended = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):
            os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
        os._exit(0)
    os.close(status)
    # It must not outlive a test run that was interrupted on the terminal, nor be interrupted by it.
    os.setsid()
    for file, number in ((out, 1), (err, 2)):
        os.dup2(file, number)
        os.close(file)


def _load() -> None:
    # As jobs/__main__.py does before it imports anything.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    for name in _COMMANDS:
        import_module(f"jobs.commands.{name}")
    gc.collect()
    gc.freeze()


def _set_defaults(document: str) -> None:
    for function, values in json.loads(document).items():
        module, _, name = function.partition(":")
        defaults = attrgetter(name)(import_module(module)).__kwdefaults__
        assert values.keys() <= defaults.keys()
        defaults.update(values)


def main() -> None:
    """Load the program, and run it in each fork."""
    _load()
    arguments, environment = _serve(socket.socket(fileno=int(sys.argv[1])))
    os.environ.clear()
    os.environ.update(environment)
    _set_defaults(os.environ.pop(DEFAULTS, "{}"))
    if while_there := os.environ.pop(NO_FILES, ""):
        places_fail_once(Path(while_there))
    file = os.environ.pop(NO_THREADS, "")
    sys.argv[1:] = arguments
    with refused(OnceByFile(Path(file)) if file else lambda _: False):
        # Here and not deeper, so that the fork ends as any interpreter does.
        runpy.run_module("jobs", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
