"""The history of cases: a line for each, in a file, read again at the start."""

from __future__ import annotations

import io
import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO

from msgspec import Struct

from jobs.runtime.log_line import LogEvent, log_line, write_lines
from jobs.runtime.output import check_output
from reconciler.model import limits
from reconciler.model.ended_case import EVENT, EndedCase, ended_case, from_fields, to_fields
from reconciler.model.errors import OutputError
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.problems import guarded

LONGEST_LINE = 64 * 1024
"""Bytes. Our own lines have 16,000 at most."""

MOST_CASES = 100_000
"""Cases that are kept in memory, about 2 KiB each."""

MOST_MISTAKES = 100
"""Broken lines that are named; all of them are counted."""


class TooManyCases(Exception):
    """There are more cases than are kept in memory."""


class BrokenLine(Struct, frozen=True):
    """A line that can't be read: its file, its number from 1, and why."""

    file: str
    number: int
    because: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.because}"


class HistoryLines:
    """What the lines of some files say. Lines of other events are skipped.

    A case may have several lines, because a pass that was killed, or could not close the case, writes it
    again. The last one counts.
    """

    def __init__(self, since: datetime | None) -> None:
        """Keep the cases that ended since then (UTC), None for all of them."""
        self._since = since
        self._cases: dict[tuple[str, datetime], EndedCase] = {}
        self.mistakes: list[BrokenLine] = []
        self.counts = {"cases": 0, "repeated": 0, "older": 0, "other": 0, "broken": 0}

    @property
    def cases(self) -> tuple[EndedCase, ...]:
        """Each case once."""
        return tuple(self._cases.values())

    def read(self, name: str, file: IO[bytes]) -> None:
        """Read a file to its end, line by line; raises OSError, and TooManyCases."""
        for number, line in enumerate(_lines(file), 1):
            try:
                self._take(line)
            except ValueError as error:
                self.counts["broken"] += 1
                if len(self.mistakes) < MOST_MISTAKES:
                    self.mistakes.append(BrokenLine(name, number, str(error)))

    def _take(self, line: bytes | None) -> None:
        if line is None:
            raise ValueError(f"it is longer than {LONGEST_LINE} bytes")
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise ValueError("it is no UTF-8") from error
        if not text:
            return
        try:
            fields = limits.loads(text, LONGEST_LINE)
        except ValueError as error:
            raise ValueError(f"it is no JSON: {limits.text(str(error), 100)}") from error
        if not isinstance(fields, Mapping):
            raise ValueError(f"it is {limits.excerpt(fields)}, and not a JSON object")
        if fields.get("event") != EVENT:
            self.counts["other"] += 1
            return
        self._add(from_fields(fields))

    def _add(self, case: EndedCase) -> None:
        if self._since is not None and case.times.ended < self._since:
            self.counts["older"] += 1
            return
        self.counts["cases"] += 1
        before = self._cases.get(case.identity)
        if before is None:
            if len(self._cases) >= MOST_CASES:
                raise TooManyCases
        else:
            self.counts["repeated"] += 1
            if case.times.ended < before.times.ended:
                return
        self._cases[case.identity] = case


def _lines(file: IO[bytes]) -> Iterator[bytes | None]:
    """Yield each line, None for one that is too long; no more of it than its limit is in memory."""
    while line := file.readline(LONGEST_LINE + 1):
        if line.endswith(b"\n") or len(line) <= LONGEST_LINE:
            yield line
            continue
        while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass
        yield None


class OpenCases:
    """What the passes of one process have seen: the record of a case is gone with its node."""

    def __init__(self) -> None:
        """Start without cases."""
        self._open: dict[str, NodePlan] = {}

    def after(self, plan: Plan) -> tuple[EndedCase, ...]:
        """Return the cases that have ended since the last pass, because their nodes were deleted."""
        gone = [last for uid, last in self._open.items() if uid not in plan.uids]
        # A case that a person has released is forgotten.
        self._open = {
            node.uid: node for node in plan.nodes if node.uid and node.record is not None and node.record.open
        }
        found = []
        for last in gone:
            what = f"node {last.node}: its case is not in the history"
            case, _ = guarded(what, partial(ended_case, last, plan.now, deleted=True), None)
            found += [case] if case is not None else []
        return tuple(found)


class HistoryFile:
    """Appends lines to a file, and is never the reason why something else fails after the start.

    The file is opened for each write, so it may be moved away at any time, as logrotate does. Each line is
    written with one call, and a write ends when the disk has it.
    """

    def __init__(self, path: Path) -> None:
        """Check that the file can be written, and create it if it is missing; raises OutputError."""
        check_output(path)
        self.path = path
        try:
            os.close(_opened(path))
        except OSError as error:
            raise OutputError(f"{path}: can't be written: {error.strerror or error}") from error

    def append(self, lines: Sequence[str]) -> None:
        """Append the lines, each without its end; raises OSError if one of them is not in the file."""
        file = _opened(self.path)
        try:
            regular = stat.S_ISREG(os.fstat(file).st_mode)
            # A line that a killed process or a full disk has cut must not spoil the next one.
            start = "\n" if regular and _is_cut(file) else ""
            for line in lines:
                data = f"{start}{line}\n".encode()
                if os.write(file, data) != len(data):
                    raise OSError("only a part of the line was written")
                start = ""
            if regular:
                os.fsync(file)
        finally:
            os.close(file)


class CaseHistory:
    """Keeps the cases that end: as lines of a file if there is one, and in the log if there is one.

    If the file can't be written, the reason is reported once until that changes, and the pass goes on.
    """

    def __init__(self, file: HistoryFile | None, report: Callable[[str], None], *, log: bool = False) -> None:
        """Write to this file. `report` gets the reason why that fails. `log` prints each line to stdout."""
        self._file, self._report, self._log = file, report, log
        self._trouble = ""

    def keep(self, cases: Sequence[EndedCase]) -> None:
        """See the port."""
        lines = [log_line(LogEvent.CASE, **to_fields(case)) for case in cases]
        if self._log:
            write_lines(*lines)
        if self._file is None:
            return
        try:
            self._file.append(lines)
        except OSError as error:
            self._failed(f"{self._file.path}: can't be written: {error.strerror or error}")
        else:
            self._trouble = ""

    def _failed(self, because: str) -> None:
        if because != self._trouble:
            self._trouble = because
            self._report(because)


def _opened(path: Path) -> int:
    """Open the file to append to it; raises OSError.

    A regular file is opened for reading, too, to see how it ends. A pipe that nobody reads is an error.
    """
    try:
        reads = os.O_RDWR if stat.S_ISREG(path.stat().st_mode) else os.O_WRONLY | os.O_NONBLOCK
    except FileNotFoundError:
        reads = os.O_RDWR
    return os.open(path, reads | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _is_cut(file: int) -> bool:
    """Whether the last line of the file has no end."""
    size = os.fstat(file).st_size
    return size > 0 and os.pread(file, 1, size - 1) != b"\n"


log = logging.getLogger(__name__)

MOST_BYTES = 4 << 20
"""Bytes of the file's end that are read: more than 5,000 cases."""


class Past(Struct, frozen=True):
    """Cases that an earlier process has written, in the order of their ends.

    `since` is from when on the file was read (UTC).
    """

    since: datetime
    cases: tuple[EndedCase, ...]


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
    lines = HistoryLines(since)
    lines.read(str(path), io.BytesIO(data))
    ended = (one for one in lines.cases if one.times.ended <= now)
    cases = tuple(sorted(ended, key=lambda one: one.times.ended))
    if whole or lines.counts["older"]:
        return Past(since, cases)
    return Past(cases[0].times.ended if cases else now, cases)


def _end_of(path: Path) -> tuple[bytes, bool] | None:
    """Return the last lines of a regular file, and whether they are all of it; raises OSError."""
    with open(path, "rb", opener=_at_once) as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return None
        start = max(status.st_size - MOST_BYTES, 0)
        opened.seek(start)
        data = opened.read(MOST_BYTES)
    if not start:
        return data, True
    # The first line is cut.
    return data.partition(b"\n")[2], False


def _at_once(path: str, flags: int) -> int:
    """Open a file; one that is a pipe does not wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)
