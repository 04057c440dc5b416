"""The revisions of the settings as values, and as the text in their ConfigMap."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from reconciler.model import limits
from reconciler.model.values import Name, Written, decoded, encoded, parsed

MOST = 100
"""Revisions that can be kept."""

LARGEST = 512 * 1024
"""Bytes of all revisions together. Beyond that, the oldest ones are left out."""

_VERSION = 1

_HASH = re.compile("[0-9a-f]{64}")

_Number = Annotated[int, Meta(ge=0, le=limits.COUNT)]


class Revision(Struct, frozen=True):
    """A text of the settings that a pass has used.

    `at` is when that was first recorded (UTC), `sha256` the hash of the text, and `by` the field manager that
    wrote it, empty if that is not known. `managed` is how many nodes were managed. `packed` is the text,
    compressed, in base64; empty if it was too large to keep.
    """

    number: _Number
    at: datetime
    sha256: Annotated[str, Meta(max_length=64)]
    by: Name = ""
    managed: Written[_Number] = 0
    packed: Annotated[str, Meta(max_length=LARGEST)] = ""

    @property
    def hash(self) -> str:
        """The hash as reports and `sha256sum` begin it."""
        return self.sha256[:12]

    def content(self) -> bytes:
        """Return the text as it was written. Raises ValueError if it was not kept, or was changed since."""
        if not self.packed:
            raise ValueError("its text was too large to keep")
        try:
            packed = base64.b64decode(self.packed, validate=True)
            # A few bytes can describe a text without end.
            content = zlib.decompressobj().decompress(packed, limits.LARGEST_SETTINGS + 1)
        except (binascii.Error, zlib.error) as error:
            raise ValueError(f"its text can't be read: {error}") from error
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise ValueError("its text is not the one that was recorded: the hash differs")
        return content


class Kept(Struct, frozen=True):
    """The revisions that are kept, by their numbers. `left_out` counts those that did not fit."""

    revisions: Annotated[tuple[Revision, ...], Meta(max_length=MOST)] = ()
    left_out: _Number = 0

    @property
    def newest(self) -> Revision | None:
        """The revision that was recorded last, None without one."""
        return self.revisions[-1] if self.revisions else None

    def has_newest(self, content: bytes) -> bool:
        """Whether this text is that of the newest revision."""
        return self.newest is not None and self.newest.sha256 == hashlib.sha256(content).hexdigest()

    def with_text(self, content: bytes, at: datetime, by: str, managed: int, keep: int) -> Kept:
        """Return it with a revision of this text, which was used `at` a moment (UTC), and `keep` in all.

        The text of the newest revision gives no other one.
        """
        if self.has_newest(content):
            return self
        if self.newest is not None and max(self.newest.number, self.left_out + MOST) >= limits.COUNT:
            # Nobody has made so many: somebody else has written them, and the next ones could not be read.
            return Kept().with_text(content, at, by, managed, keep)
        packed = base64.b64encode(zlib.compress(content, 9)).decode()
        number = self.newest.number + 1 if self.newest is not None else 1
        sha256 = hashlib.sha256(content).hexdigest()
        packed = packed if len(packed) <= LARGEST // 2 else ""
        new = Revision(number, at, sha256, limits.text(by, limits.NAME), managed, packed)
        fits = Kept((*self.revisions, new)[-keep:], self.left_out)
        while len(to_text(fits).encode()) > LARGEST and len(fits.revisions) > 1:
            fits = Kept(fits.revisions[1:], fits.left_out + 1)
        return fits


def to_text(kept: Kept) -> str:
    """Return the revisions as JSON."""
    return msgspec.json.encode({"version": _VERSION, **encoded(kept)}).decode()


def from_text(text: str) -> Kept:
    """Return the revisions that a text contains, none for an empty one; ValueError if it can't be read."""
    if not text:
        return Kept()
    document = parsed(text, 2 * LARGEST)
    version = document.get("version") if isinstance(document, dict) else None
    if version != _VERSION:
        raise ValueError(f"it has version {limits.excerpt(version)}")
    kept = decoded(Kept, document)
    wrong = next((each for each in kept.revisions if not _HASH.fullmatch(each.sha256)), None)
    if wrong is not None:
        raise ValueError(f"revision {wrong.number} has no hash: {limits.excerpt(wrong.sha256)}")
    numbered = {revision.number: revision for revision in kept.revisions}
    return Kept(tuple(numbered[number] for number in sorted(numbered)), kept.left_out)
