"""The file of `--history`: a line for each case that ends, read again at the start."""

from __future__ import annotations

import io
import logging
import os
import stat
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from jobs.runtime.case_lines import CaseLines
from jobs.runtime.log_line import Level, LogEvent, log_line
from jobs.runtime.output import check_output
from jobs.runtime.process import Observer, Past
from reconciler.model.ended_case import EndedCase, to_fields
from reconciler.model.errors import NoThread, OutputError
from reconciler.model.limits import count_of
from reconciler.model.problems import guarded, internal
from reconciler.threads import begin_read, start

log = logging.getLogger(__name__)

START = 5.0
"""Seconds for which the start of the process waits for the file."""


class HistoryFile:
    """Appends lines to a file, and is never the reason why something else fails after the start.

    The file is opened for each write, so it may be moved away at any time, as logrotate does. Each line is
    written with one call, and a write ends when the disk has it.
    """

    def __init__(self, path: Path) -> None:
        """Check that the file can be written, and create it if it is missing; raises OutputError."""
        self.path = path

        def check() -> None:
            check_output(path)
            os.close(_opened(path))

        try:
            begin_read("history", check).result(START)
        except TimeoutError:
            log.warning("%s gives no answer; the start goes on without it", path)
        except OSError as error:
            raise OutputError(f"{path}: can't be written: {error.strerror or error}") from error

    def append(self, lines: Sequence[str]) -> None:
        """Append the lines, each without its end; raises OSError if one of them is not in the file."""
        file = _opened(self.path)
        try:
            status = os.fstat(file)
            regular = stat.S_ISREG(status.st_mode)
            # A line that a killed process or a full disk has cut must not spoil the next one.
            cut = regular and status.st_size > 0 and os.pread(file, 1, status.st_size - 1) != b"\n"
            start = "\n" if cut else ""
            for line in lines:
                data = f"{start}{line}\n".encode()
                if os.write(file, data) != len(data):
                    raise OSError("only a part of the line was written")
                start = ""
            if regular:
                os.fsync(file)
        finally:
            os.close(file)


WAITS = 1.0
"""Seconds for which a pass waits until its cases are in the file."""

MOST = 5000
"""Lines that wait for a file that does not answer. Each further one is dropped, and counted."""

MOST_OTHERS = 2000
"""Up to so many lines, one that is about no case waits as well."""

LAST = 2.0
"""Seconds at the end of the process in which what waits is written."""


class CaseHistory(Observer):
    """Keeps the cases that end as lines of a file.

    If the file can't be written, the reason is reported once until that changes, and the pass goes on. A file
    that does not answer, as on a server that is away, holds no pass either: a thread writes it. A pass waits
    for it `WAITS` seconds, so that a case is in the file before its record is gone, and after that only once
    the file answers again.
    """

    def __init__(self, file: HistoryFile, report: Callable[[str], None]) -> None:
        """Write to this file. `report` gets the reason why that fails."""
        self._file, self._report = file, report
        self._trouble = ""
        self._changed = threading.Condition()
        self._lines: deque[tuple[str, str]] = deque()
        self._thread: threading.Thread | None = None
        self._writing = self._silent = False
        self._dropped: Counter[str] = Counter()

    def past(self, since: datetime, now: datetime) -> Past | None:
        """Return what is in the file from before this process; None if that can't be read, or not in time."""
        reads = partial(recent_cases, self._file.path, since, now)
        try:
            return begin_read("history", partial(guarded, "the page", reads, None)).result(START)[0]
        except TimeoutError:
            log.warning("%s gives no answer, so the page begins without its cases", self._file.path)
            return None

    def keep(self, cases: Sequence[EndedCase]) -> None:
        """Append a line for each case."""
        with self._changed:
            queued = self._queue("case", [log_line(LogEvent.CASE, **to_fields(case)) for case in cases], MOST)
            if queued and not self._silent and not self._wait(WAITS):
                self._silent = True
                self._failed(f"{self._file.path}: no answer to a write; what ends is kept for it meanwhile")

    def happened(self, event: str, fields: Mapping[str, object]) -> None:
        """Append a line about something else, without a wait. Cases have the larger part of the room."""
        with self._changed:
            self._queue("other line", [log_line(event, Level.INFO, **fields)], MOST_OTHERS)

    def stopped(self) -> None:
        """Write what waits, for a short time."""
        with self._changed:
            if not self._wait(LAST):
                left = self._dropped + Counter(noun for noun, _ in self._lines)
                said = _counted({f"more {noun}": count for noun, count in left.items()})
                self._failed(f"{self._file.path}: no answer to a write; {said} not in it")

    def _queue(self, noun: str, lines: Sequence[str], most: int) -> bool:
        """Let the thread write lines, of which at most so many may wait; return whether there is one."""
        fits = max(most - len(self._lines), 0)
        self._lines.extend((noun, line) for line in lines[:fits])
        self._dropped[noun] += len(lines[fits:])
        try:
            self._thread = self._thread or start("history", self._write_all)
        except NoThread as error:
            self._failed(f"{self._file.path}: can't be written: {error}")
            return False
        self._changed.notify_all()
        return True

    def _wait(self, seconds: float) -> bool:
        return self._changed.wait_for(lambda: not self._lines and not self._writing, seconds)

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines)
                lines, self._writing = [line for _, line in self._lines], True
                self._lines.clear()
            because = ""
            try:
                self._file.append(lines)
            except OSError as error:
                because = f"{self._file.path}: can't be written: {error.strerror or error}"
            except Exception as error:  # noqa: BLE001 - the next cases are written all the same
                because = internal("the history", error)
            with self._changed:
                self._writing = self._silent = False
                if not because and self._dropped.total():
                    because = f"{self._file.path}: {_counted(self._dropped)} not in it: it gave no answer"
                    self._dropped.clear()
                self._failed(because)
                self._changed.notify_all()

    def _failed(self, because: str) -> None:
        if because and because != self._trouble:
            self._report(because)
        self._trouble = because


def _counted(left: Mapping[str, int]) -> str:
    """Return `2 cases are`, or `1 case and 3 other lines are`."""
    some = {noun: count for noun, count in sorted(left.items()) if count} or {"case": 0}
    if len(some) == 1:
        return next(count_of(count, noun, "are") for noun, count in some.items())
    return f"{' and '.join(count_of(count, noun) for noun, count in some.items())} are"


def _opened(path: Path) -> int:
    """Open the file to append to it; raises OSError.

    A regular file is opened for reading, too, to see how it ends. A pipe that nobody reads is an error.
    """
    try:
        reads = os.O_RDWR if stat.S_ISREG(path.stat().st_mode) else os.O_WRONLY | os.O_NONBLOCK
    except FileNotFoundError:
        reads = os.O_RDWR
    return os.open(path, reads | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


MOST_BYTES = 16 << 20
"""Bytes of the file's end that are read: a case and its evictions take some 10 KB."""


def recent_cases(path: Path, since: datetime, now: datetime) -> Past | None:
    """Return the cases in the file that ended from `since` to `now` (aware), each once.

    Lines that can't be read are skipped. None if there is nothing to read: no file, an empty one, a pipe, or
    an error, which is logged.
    """
    try:
        end = _end_of(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("%s can't be read for the page: %s", path, error.strerror or error)
        return None
    if end is None:
        return None
    data, whole = end
    lines = CaseLines(since)
    lines.read(str(path), io.BytesIO(data))
    ended = (case for case in lines.cases if case.times.ended <= now)
    cases = tuple(sorted(ended, key=lambda case: case.times.ended))
    if whole or lines.counts["older"]:
        return Past(since, cases)
    return Past(cases[0].times.ended if cases else now, cases)


def _end_of(path: Path) -> tuple[bytes, bool] | None:
    """Return the last lines about cases of a regular file, and whether all of it was read; raises OSError."""
    with open(path, "rb", opener=_at_once) as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return None
        start = max(status.st_size - MOST_BYTES, 0)
        opened.seek(start)
        left = MOST_BYTES
        if start:
            # The first line is cut.
            left -= len(opened.readline(left))
        of_cases = []
        while line := opened.readline(max(left, 0)):
            left -= len(line)
            # Most lines are about pods, and need no parser.
            of_cases += [line] if b'"case"' in line else []
    return b"".join(of_cases), not start


def _at_once(path: str, flags: int) -> int:
    """Open a file; one that is a pipe does not wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)
