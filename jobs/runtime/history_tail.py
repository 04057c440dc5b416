"""Reads the end of a file of the history, for the page of a process that starts."""

from __future__ import annotations

import io
import logging
import os
import stat
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from jobs.runtime.history_lines import HistoryLines
from reconciler.model.ended_case import EndedCase

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
