"""Values that break where they are read: each read of them in turn, so that no step is left out or named."""

from __future__ import annotations

import dataclasses
from traceback import extract_stack
from typing import Any, TypeVar

from msgspec import Struct

Value = TypeVar("Value")

PLAIN = frozenset(
    {"name", "uid", "labels", "copied", "copied_labels", "copied_annotations", "started", "status"}
)
"""What a step over all nodes may read of a node or an event without a boundary: that can't fail."""


class Break:
    """Breaks the read of this number, counted from 1 over all values that `broken` gave it."""

    def __init__(self, at: int) -> None:
        self._at = at
        self.reads = 0
        """How many there were so far."""
        self.place = ""
        """Who read what broke, innermost first; empty if there were fewer reads."""

    def broken(self, value: Value) -> Value:
        """Return a value like this Struct or dataclass. Its read raises OverflowError when it is its turn."""
        kind: Any = type(value)

        def read(itself: object, name: str) -> Any:
            if not name.startswith("__") and name not in PLAIN:
                self.reads += 1
                if self.reads == self._at:
                    callers = [each for each in extract_stack() if "/reconciler/" in each.filename]
                    self.place = " < ".join(f"{each.name}:{each.lineno}" for each in callers[:-6:-1])
                    raise OverflowError("date value out of range")
            return object.__getattribute__(itself, name)

        members: dict[str, Any] = {"__getattribute__": read}
        if isinstance(value, Struct):
            like = type(kind)(kind.__name__, (kind,), members, frozen=True)
            return like(**{name: getattr(value, name) for name in kind.__struct_fields__})  # type: ignore[no-any-return]
        like = type(kind.__name__, (kind,), members | {"__slots__": ()})
        return like(**{each.name: getattr(value, each.name) for each in dataclasses.fields(kind)})  # type: ignore[no-any-return]
