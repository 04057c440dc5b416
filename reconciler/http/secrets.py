"""Reads what the references of a secret name: the environment, and files."""

from __future__ import annotations

import os
from pathlib import Path


class SecretMissing(Exception):
    """A reference of a secret leads nowhere; the message has no secret in it."""


def from_environment(name: str) -> str:
    """Return a variable; SecretMissing if it is not set, or empty."""
    found = os.environ.get(name)
    if not found:
        raise SecretMissing(f"the environment has no {name}")
    return found


def from_file(path: str, most: int) -> bytes:
    """Return the first bytes of a file, `most` at most; SecretMissing if it can't be read.

    Call it for each use: Kubernetes renews the files of a Secret.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise SecretMissing(f"{path} can't be read: {error.strerror or type(error).__name__}") from error
