"""Which settings a pass uses: a hash of the file's content, and when the file was loaded."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from msgspec import Struct

_HASH_LENGTH = 12


class SettingsVersion(Struct, frozen=True):
    """The settings in force. `loaded` is when this process loaded them (UTC), None if it is not known.

    `hash` is the start of the SHA-256 of the file's content, as `sha256sum FILE` prints it.
    """

    hash: str
    loaded: datetime | None = None

    def age(self, now: datetime) -> timedelta | None:
        """Return how long ago the settings were loaded, None if it is not known."""
        return None if self.loaded is None else max(now - self.loaded, timedelta())


def short_hash(content: bytes) -> str:
    """Return the hash of a settings file's content."""
    return hashlib.sha256(content).hexdigest()[:_HASH_LENGTH]
