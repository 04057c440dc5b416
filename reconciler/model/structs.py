"""How a changed copy of a value is made.

Values are frozen `msgspec.Struct`s. Those that the agent imports are dataclasses, because it uses only the
standard library.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from msgspec import Struct, structs

if TYPE_CHECKING:
    # With this one, mypy checks the names and types of the changes, for Structs too.
    from dataclasses import replace as replace
else:

    def replace(value, /, **changes):
        """Return a copy of a Struct or a dataclass with these fields changed."""
        of_its_kind = structs.replace if isinstance(value, Struct) else dataclasses.replace
        return of_its_kind(value, **changes)
