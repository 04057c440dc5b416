"""Where the cases that have ended go: a file with one line of JSON for each, and the log."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from jobs.runtime.log_line import write_lines
from jobs.runtime.log_words import LogEvent, log_line
from jobs.runtime.output_file import check_output
from reconciler.model.case_line import to_fields
from reconciler.model.ended_case import EndedCase
from reconciler.model.errors import OutputError


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
