"""A law that does not hold."""

from __future__ import annotations


class Broken(BaseException):
    """A law does not hold; `law` is its number or name.

    It is no Exception, because the program's boundaries would catch it where a hook raises it.
    """

    def __init__(self, law: str, text: str) -> None:
        """Create it with what was seen."""
        super().__init__(f"law {law}: {text}")
        self.law = law
