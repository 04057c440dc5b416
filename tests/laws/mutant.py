"""One rule of the program, and how to remove it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One rule removed. `old` occurs once in `file`, and `new` replaces it.

    `law` is the number of its law, or 0. `test` is the file that has to fail, by default the law's own, or
    one of its tests as `file::test` where the others take long.
    """

    law: int
    rule: str
    file: str
    old: str
    new: str
    test: str = ""
