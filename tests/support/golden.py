"""Texts that are compared with files: the diff of a file is the review.

With `GOLDEN=write` in the environment, the files are written instead.
"""

from __future__ import annotations

import os
from pathlib import Path


def assert_as_in(file: Path, text: str) -> None:
    """Fail unless the text is the file's (UTF-8)."""
    if os.environ.get("GOLDEN") == "write":
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
