"""Reads the lines about observed cases from a file of `--history`, or from a log of `serve`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from jobs.runtime.event_lines import read_events
from reconciler.features.observed import OBSERVED
from reconciler.features.observed.cases import ObservedCase, from_fields

MOST = 100_000
"""Cases that are kept in memory; more are a mistake."""


def read_files(paths: Iterable[Path]) -> tuple[tuple[ObservedCase, ...], int]:
    """Return the cases of files, `-` for stdin, each once, and how many lines about cases can't be read.

    Raises `click.FileError` for a file that can't be read, and `click.UsageError` for too many cases.
    """
    cases: dict[tuple[str, str], ObservedCase] = {}
    broken = 0
    for path in paths:
        for line in read_events(OBSERVED, path, from_fields):
            broken += line is None
            if isinstance(line, ObservedCase):
                cases[line.identity] = line
            if len(cases) > MOST:
                raise click.UsageError(f"more than {MOST} cases are too many; name fewer files")
    return tuple(cases.values()), broken
