"""Output that blocks nobody: what is written waits in a queue, and a thread of its own writes it to the file.

A pipe that nobody reads is full after 64 KiB. Whoever writes to it then waits: a pass, a renewal of the lock,
a drain, or the handler of a signal. Here a queue that is full drops what comes, counts the lines, and says
their number before the next line that fits.

The node agent imports this file, so it needs nothing but the standard library.
"""

from __future__ import annotations

import atexit
import io
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, cast

from reconciler.model.errors import NoThread
from reconciler.threads import start

MOST = 8 << 20
"""Bytes that wait for one file. The first pass of 10,000 nodes logs 7 MB."""

LAST = 2.0
"""Seconds at the end of the process in which what waits is written."""

_ALL: list[Unblocked] = []


class Unblocked(io.RawIOBase):
    """A file descriptor to which no write blocks, or fails."""

    def __init__(self, file: int, said: Callable[[int], str], most: int = MOST) -> None:
        """Write to this file. `said` returns the line that says how many lines were dropped.

        At most `most` bytes wait. Raises NoThread if it can't have a thread.
        """
        self._file, self._said, self._most = file, said, most
        self._waiting: deque[bytes] = deque()
        self._size = self._unsaid = 0
        self.dropped = 0
        """How many lines were dropped since the beginning."""
        self._changed = threading.Condition()
        start("output", self._write_all)

    def writable(self) -> bool:
        """Whether it can be written: always."""
        return True

    def fileno(self) -> int:
        """Return the file to which it is written."""
        return self._file

    def isatty(self) -> bool:
        """Whether a person reads it."""
        return os.isatty(self._file)

    def write(self, data: Any, /) -> int:
        """Queue the data, or drop all of it if it does not fit."""
        chunk = bytes(data)
        with self._changed:
            if self._put(self._drops() + chunk):
                self._unsaid = 0
            else:
                self._drop(chunk)
        return len(chunk)

    def wait(self, ends: float) -> None:
        """Return when everything is written, or at this moment of the monotonic clock."""
        with self._changed:
            if self._unsaid and self._put(self._drops()):
                self._unsaid = 0
            self._changed.wait_for(lambda: not self._size, max(0.0, ends - time.monotonic()))

    def _put(self, chunk: bytes) -> bool:
        if self._size + len(chunk) > self._most:
            return False
        self._waiting.append(chunk)
        self._size += len(chunk)
        self._changed.notify_all()
        return True

    def _drops(self) -> bytes:
        return f"{self._said(self._unsaid)}\n".encode() if self._unsaid else b""

    def _drop(self, chunk: bytes) -> None:
        lines = max(1, chunk.count(b"\n"))
        self._unsaid += lines
        self.dropped += lines

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                chunk = self._waiting.popleft()
            left = memoryview(chunk)
            while left:
                try:
                    left = left[os.write(self._file, left) :]
                except BlockingIOError:
                    # Another process that has the same file made it non-blocking.
                    select.select([], [self._file], [], 1.0)
                except OSError:
                    # Nobody reads it any more, or its disk is full.
                    with self._changed:
                        self._drop(bytes(left))
                    break
            with self._changed:
                self._size -= len(chunk)
                self._changed.notify_all()


def unblock(names: Iterable[str], said: Callable[[int], str]) -> None:
    """Let `sys.stdout` or `sys.stderr` block nobody from now on, in UTF-8. See Unblocked for `said`.

    A stream that is not the one of the process, such as in a test, stays. So does one without a thread.
    """
    for name in names:
        stream = getattr(sys, name)
        if stream is None or stream is not getattr(sys, f"__{name}__"):
            continue
        stream.flush()
        try:
            raw = Unblocked(stream.fileno(), said)
        except (NoThread, OSError):
            continue
        _ALL.append(raw)
        # It writes each text in one piece, and needs no buffer.
        buffer = cast("io.BufferedWriter", raw)
        written = io.TextIOWrapper(buffer, encoding="utf-8", errors="backslashreplace", write_through=True)
        setattr(sys, name, written)


def dropped() -> int:
    """Return how many lines of the output of this process were dropped."""
    return sum(each.dropped for each in _ALL)


@atexit.register
def _write_last() -> None:
    ends = time.monotonic() + LAST
    for each in _ALL:
        each.wait(ends)
