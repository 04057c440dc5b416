"""What is measured by hand, beside the tests: `nox -s bench`, see docs/bench.md."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Row:
    """One program, its user agent in the audit log, and what was measured of it, by its name."""

    name: str
    command: list[str]
    user_agent: str
    measured: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def spread(seconds: Sequence[float]) -> str:
    """Return the median, and the least and the most."""
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f}–{max(seconds):.2f})"
