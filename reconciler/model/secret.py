"""A text of the settings that may name secrets: `${NAME}` of the environment, `${file:/path}` of a file.

The settings keep the text as it was written. Only what sends a notice replaces the names by their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

MASKED = "***"
"""What every report, log and message shows instead of a secret."""

REFERENCE = re.compile(r"\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|file:(?P<file>/[^{}\s]+))\}")


class Secret(Struct, frozen=True):
    """A text with references to secrets. Its `repr` and `str` never show it."""

    text: str

    def __repr__(self) -> str:
        """Return a mask."""
        return MASKED

    def __str__(self) -> str:
        """Return a mask."""
        return MASKED

    @property
    def is_written_out(self) -> bool:
        """Whether the settings contain the text itself, and no reference."""
        return REFERENCE.search(self.text) is None

    def names(self) -> tuple[str, ...]:
        """Return the names in the environment that it refers to."""
        return tuple(found["name"] for found in REFERENCE.finditer(self.text) if found["name"])

    def resolved(self, variable: Callable[[str], str], file: Callable[[str], str]) -> str:
        """Return the text with the value of each reference; raises what the two functions raise."""
        return REFERENCE.sub(
            lambda found: variable(found["name"]) if found["name"] else file(found["file"]), self.text
        )
