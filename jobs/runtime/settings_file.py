"""The settings of a process that runs on while their file changes: the last good ones apply."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from datetime import datetime
from enum import Enum, auto
from pathlib import Path

from msgspec import Struct

from reconciler.model.errors import SettingsError
from reconciler.model.moments import to_text
from reconciler.settings.load import load_settings, parse_content, read_settings
from reconciler.settings.schema import Settings

SETTLE = 5.0
"""Seconds for which a missing or empty file changes nothing. An editor may write a file in two steps."""


class Look(Enum):
    """What a look at the file found."""

    SAME = auto()
    LOADED = auto()
    """Other settings apply now."""

    REJECTED = auto()
    """The file can't be used. The settings before still apply."""

    RESTORED = auto()
    """The file has the settings in force again."""


class Rejection(Struct, frozen=True):
    """Why the file can't be used, and since when (UTC)."""

    since: datetime
    because: str


class SettingsFile:
    """A settings file, and the settings in force: the last ones that could be used."""

    def __init__(
        self, path: Path, now: Callable[[], datetime], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Load the file. `now` is the wall clock (UTC), `monotonic` a clock in seconds.

        Raises SettingsError: without a last good one there is nothing to apply.
        """
        self._path, self._now, self._monotonic = path, now, monotonic
        self.settings: Settings = load_settings(path, now(), os.environ)
        self.rejection: Rejection | None = None
        self._judged = self._in_force = self._digest()[0]
        self._doubtful_since: float | None = None

    def look(self) -> Look:
        """Read the file, and take its settings if they are new and can be used. It raises nothing."""
        digest, content = self._digest()
        if digest == self._judged:
            self._doubtful_since = None
            return Look.SAME
        if not content and not self._settled():
            return Look.SAME
        self._judged, self._doubtful_since = digest, None
        now = self._now()
        try:
            settings = self._loaded(now) if content is None else self._parsed(content, now)
        except Exception as error:  # noqa: BLE001 - whatever is in the file, the previous settings apply
            known = isinstance(error, SettingsError)
            because = str(error) if known else f"{type(error).__name__}: {error}"
            self.rejection = Rejection(now, because)
            return Look.REJECTED
        if digest == self._in_force:
            self.rejection = None
            return Look.RESTORED
        self.settings, self._in_force, self.rejection = settings, digest, None
        return Look.LOADED

    def again(self) -> float | None:
        """Return in how many seconds the file must be read again, None if the schedule is enough."""
        if self._doubtful_since is None:
            return None
        return max(0.0, self._doubtful_since + SETTLE - self._monotonic())

    def mistake(self) -> str:
        """Return what is wrong with the file, and which settings still apply; empty if nothing is."""
        rejection, version = self.rejection, self.settings.version
        if rejection is None:
            return ""
        in_force = f"those of hash {version.hash} still apply" if version else "the previous ones still apply"
        return f"settings rejected at {to_text(rejection.since)}, {in_force}: {rejection.because}"

    def _loaded(self, now: datetime) -> Settings:
        return load_settings(self._path, now, os.environ)

    def _parsed(self, content: bytes, now: datetime) -> Settings:
        return parse_content(content, str(self._path), now, os.environ, folder=self._path.parent)

    def _digest(self) -> tuple[bytes, bytes | None]:
        """Return a digest of the content, and the content; an empty digest and None if it can't be read."""
        try:
            content = read_settings(self._path)
        except OSError:
            return b"", None
        return hashlib.sha256(content).digest(), content

    def _settled(self) -> bool:
        """Whether the file has been missing or empty for long enough to be meant."""
        now = self._monotonic()
        if self._doubtful_since is None:
            self._doubtful_since = now
        return now - self._doubtful_since >= SETTLE
