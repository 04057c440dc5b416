"""Writes what a command prints to a file: whole, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from reconciler.model.errors import OutputError


def check_output(path: Path) -> None:
    """Raise OutputError if the folder of the file does not exist, before anything else is done."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise OutputError(f"{path}: the folder {folder} does not exist; create it with: mkdir -p {folder}")


def write_output(path: Path, text: str) -> None:
    """Write the text (UTF-8) to the file; raises OutputError.

    A reader sees the file before or after, never a part: another file in the same folder takes its place. A
    pipe or a device is written as it is.
    """
    check_output(path)
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            path.write_text(text, encoding="utf-8")
            return
        # A link stays a link: what it leads to is written.
        target = path.resolve()
        fresh = target.with_name(f".{target.name[:200]}.{os.getpid()}.tmp")
        try:
            fresh.write_text(text, encoding="utf-8")
            if target.exists():
                fresh.chmod(stat.S_IMODE(target.stat().st_mode))
            fresh.replace(target)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: can't be written: {error.strerror or error}") from error
