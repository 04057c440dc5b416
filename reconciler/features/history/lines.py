"""Reads a history: from files line by line, or from what the cluster keeps."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from jobs.runtime.case_lines import BrokenLine, CaseLines, TooManyCases, read_case_lines
from jobs.runtime.environment import Target, connected
from jobs.runtime.event_lines import named_together
from reconciler.features.history.kept import HISTORY
from reconciler.kubernetes.kept_lines import KeptInCluster
from reconciler.model.ended_case import EndedCase
from reconciler.model.sayings import DEED, Deed, from_fields
from reconciler.report.values import Document, moment_value

MOST_DEEDS = 100_000
"""Deeds that are kept in memory."""


class HistoryLines(CaseLines):
    """The cases and the deeds of some files since a moment (UTC; None: all of them)."""

    def __init__(self, since: datetime | None) -> None:
        """Begin without lines."""
        super().__init__(since)
        self._begin = since
        self._deeds: dict[tuple[object, ...], Deed] = {}

    @property
    def deeds(self) -> tuple[Deed, ...]:
        """Each deed once, in the order of their moments."""
        return tuple(sorted(self._deeds.values(), key=lambda deed: deed.at))

    def takes(self, fields: Mapping[str, object]) -> bool:
        """Keep the line about a deed."""
        if fields.get("event") != DEED:
            return False
        self.add_deed(from_fields(fields))
        return True

    def add_deed(self, deed: Deed) -> None:
        """Keep a deed, unless it is older; raises TooManyCases."""
        if self._begin is not None and deed.at < self._begin:
            return
        self._deeds[HISTORY.identity(deed)] = deed  # type: ignore[index]
        if len(self._deeds) > MOST_DEEDS:
            raise TooManyCases


class Read(Struct, frozen=True):
    """What was read of a history, and where, in words.

    `counts` and `broken` are those of `CaseLines`. Before `whole_from` (UTC; None: not known) some may be
    missing.
    """

    source: str
    cases: tuple[EndedCase, ...]
    deeds: tuple[Deed, ...]
    counts: Mapping[str, int]
    broken: tuple[BrokenLine, ...] = ()
    whole_from: datetime | None = None
    exists: bool = True

    @property
    def document(self) -> Document:
        """Where it was read, as plain values."""
        return {"source": self.source, "wholeFrom": moment_value(self.whole_from)}


def of_files(files: tuple[Path, ...], since: datetime | None, too_many: str) -> Read:
    """Return what files say, `-` for stdin; raises `click.FileError`, and the usage error `too_many`."""
    lines = HistoryLines(since)
    for path in files:
        read_case_lines(path, lines, too_many)
    source = named_together(files)
    return Read(source, lines.cases, lines.deeds, lines.counts, tuple(lines.mistakes))


def of_cluster(target: Target, since: datetime | None) -> Read:
    """Return what the cluster keeps; raises ClusterError."""
    with connected(target) as connection:
        place = KeptInCluster(HISTORY, connection, target.namespace)
        kept = place.read_for_person()
    lines = HistoryLines(since)
    for line in kept.lines if kept is not None else ():
        if isinstance(line, Deed):
            lines.add_deed(line)
        else:
            lines.add(line)
    source, whole = f"the ConfigMap {place.name}", kept.whole_from if kept is not None else None
    return Read(source, lines.cases, lines.deeds, lines.counts, whole_from=whole, exists=kept is not None)
