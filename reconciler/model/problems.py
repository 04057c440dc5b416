"""What becomes of an exception that no code expected: its traceback in the log, and one line of safe text.

The boundaries around a node, a drain and a write call this, so that one object's data harms that object only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct, field

from reconciler.model import limits

log = logging.getLogger(__name__)

Value = TypeVar("Value")
Other = TypeVar("Other")

_LONGEST = 300


def internal(what: str, error: Exception) -> str:
    """Log the error with its traceback, and return it for a report: one line of 300 characters at most."""
    try:
        words = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an error's own text can be what fails, such as a number of many digits
        words = type(error).__name__
    message = limits.text(" ".join(words.split()), _LONGEST)
    log.error("internal error: %s: %s", what, message, exc_info=error)
    return message


def guarded(what: str, work: Callable[[], Value], otherwise: Other) -> tuple[Value | Other, tuple[str, ...]]:
    """Return what `work` returns, and no problems; after an exception `otherwise`, and the problem in words.

    For what is computed from all nodes together, where no single node can be held.
    """
    try:
        return work(), ()
    except Exception as error:  # noqa: BLE001 - one object's data must not end the pass
        return otherwise, (f"internal error: {what}: {internal(what, error)}",)


class Faults(Struct):
    """The errors of single nodes in steps that go over all nodes, by node name: each holds its own node."""

    nodes: dict[str, str] = field(default_factory=dict)

    def of(self, node: str, what: str, work: Callable[[], Value], otherwise: Other) -> Value | Other:
        """Return what `work` returns; after an exception `otherwise`, and the node has a fault."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - one node's data harms that node only
            problem = internal(f"node {node}: {what}", error)
            self.nodes.setdefault(node, problem)
            return otherwise
