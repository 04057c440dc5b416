"""Reads the lines about observed cases from a file of `--history`, or from a log of `serve`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
import msgspec

from reconciler.features.observed import OBSERVED
from reconciler.features.observed.cases import ObservedCase, from_fields

LONGEST_LINE = 64 * 1024
"""Bytes. Our own lines have 4,000 at most."""

MOST = 100_000
"""Cases that are kept in memory; more are a mistake."""


def read_files(paths: Iterable[Path]) -> tuple[tuple[ObservedCase, ...], int]:
    """Return the cases of files, `-` for stdin, each once, and how many lines about cases can't be read.

    Raises `click.FileError` for a file that can't be read, and `click.UsageError` for too many cases.
    """
    cases: dict[tuple[str, str], ObservedCase] = {}
    broken = 0
    for path in paths:
        try:
            with click.open_file(str(path), "rb") as file:
                while line := file.readline(LONGEST_LINE):
                    if b'"observed"' not in line:
                        continue
                    try:
                        fields = msgspec.json.decode(line)
                        if isinstance(fields, dict) and fields.get("event") == OBSERVED:
                            case = from_fields(fields)
                            if isinstance(case, ObservedCase):
                                cases[case.identity] = case
                    except (ValueError, msgspec.DecodeError):
                        broken += 1
                    if len(cases) > MOST:
                        raise click.UsageError(f"more than {MOST} cases are too many; name fewer files")
        except OSError as error:
            name = "stdin" if str(path) == "-" else str(path)
            raise click.FileError(name, error.strerror or str(error)) from error
    return tuple(cases.values()), broken
