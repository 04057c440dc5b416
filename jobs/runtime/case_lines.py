"""Lines of cases that have ended, in a file of their own or in a log of `serve`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO

import click
from msgspec import Struct

from jobs.runtime.event_lines import LONGEST_LINE, named, opened
from reconciler.model import limits
from reconciler.model.ended_case import EVENT, EndedCase, from_fields

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


class CaseLines:
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
        if fields.get("event") == EVENT:
            self.add(from_fields(fields))
        elif not self.takes(fields):
            self.counts["other"] += 1

    def takes(self, fields: Mapping[str, object]) -> bool:
        """Return whether a line about something else is kept, in a class that does; raises ValueError."""
        return False

    def add(self, case: EndedCase) -> None:
        """Count a case; raises TooManyCases."""
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


def read_case_lines(path: Path, lines: CaseLines, too_many: str) -> None:
    """Read a file, `-` for stdin; `click.FileError` if it can't be read.

    `too_many` is the usage error where it has more cases than are kept in memory.
    """
    try:
        with opened(path) as file:
            lines.read(named(path), file)
    except TooManyCases as error:
        raise click.UsageError(too_many) from error
