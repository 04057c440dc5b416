"""Files with a line of JSON for each event, such as logs of `serve`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import click
import msgspec

Value = TypeVar("Value")

LONGEST_LINE = 64 * 1024
"""Bytes. Our own lines have 16,000 at most."""


def named(path: Path) -> str:
    """Return the name of a file for people, where `-` is stdin."""
    return "stdin" if str(path) == "-" else str(path)


def named_together(paths: Sequence[Path]) -> str:
    """Return what an answer calls the files that it was read from."""
    return "the file" if len(paths) == 1 else "the files"


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file, `-` for stdin; raises `click.FileError` if it can't be read, also later."""
    try:
        with click.open_file(str(path), "rb") as file:
            yield file
    except OSError as error:
        raise click.FileError(named(path), error.strerror or str(error)) from error


def read_events(
    event: str, path: Path, value_of: Callable[[dict[str, Any]], Value], needle: bytes = b""
) -> Iterator[Value | None]:
    """Yield the value of each line about an event, None for one that can't be read.

    `value_of` returns it from the fields of the line, and raises ValueError. Lines without the `needle` are
    not read: most are about something else, and need no parser. Raises `click.FileError`.
    """
    mark = f'"{event}"'.encode()
    with opened(path) as file:
        # No more of a longer line than its limit is in memory, and that is no JSON.
        while line := file.readline(LONGEST_LINE):
            if mark not in line or needle not in line:
                continue
            try:
                fields = msgspec.json.decode(line)
                if isinstance(fields, dict) and fields.get("event") == event:
                    yield value_of(fields)
            except (ValueError, msgspec.DecodeError, RecursionError):
                yield None
