"""What became of an exception that no code expected, and what a pass could not see.

The boundaries around a node, a drain and a write log its traceback and keep one line of safe text, so that
one object's data harms that object only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct, field

from reconciler.model import limits
from reconciler.model.errors import ClusterError, ReconcilerError

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


def expected(what: str, work: Callable[[], Value]) -> Value:
    """Return what `work` returns; raises what code expects, and ClusterError for any other error.

    The boundary around a read: an answer that breaks the program is one that can't be used. Who asked for it
    goes on as after any other read that failed.
    """
    try:
        return work()
    except ReconcilerError:
        raise
    except Exception as error:
        raise ClusterError(internal(what, error)) from error


def guarded(what: str, work: Callable[[], Value], otherwise: Other) -> tuple[Value | Other, tuple[str, ...]]:
    """Return what `work` returns, and no problems; after an exception `otherwise`, and the problem in words.

    For what is computed from all nodes together, where no single node can be held.
    """
    try:
        return work(), ()
    except Exception as error:  # noqa: BLE001 - one object's data must not end the pass
        return otherwise, (f"internal error: {what}: {internal(what, error)}",)


class Faults(Struct):
    """The errors in steps that go over all nodes.

    Those of single nodes are by node name: each holds its own node. `steps` has those of whole steps, in
    words.
    """

    nodes: dict[str, str] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)

    def of(self, node: str, what: str, work: Callable[[], Value], otherwise: Other) -> Value | Other:
        """Return what `work` returns; after an exception `otherwise`, and the node has a fault."""
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - one node's data harms that node only
            problem = internal(f"node {node}: {what}", error)
            self.nodes.setdefault(node, problem)
            return otherwise

    def step(self, what: str, work: Callable[[], Value], otherwise: Other) -> Value | Other:
        """Return what `work` returns; after an exception `otherwise`, and the step has a fault."""
        result, problems = guarded(what, work, otherwise)
        self.steps += problems
        return result


PODS = "the pods"
BUDGETS = "PodDisruptionBudgets"
NAMESPACES = "the namespaces"
"""What a preview needs, as `Unseen.what`."""

LEDGER = "the ledger"
"""What every pass needs, as `Unseen.what`."""

_FORBIDDEN = 403


class Unseen(Struct, frozen=True):
    """One read that the API server refused.

    `what` was not seen, `needs` is the missing permission as `kubectl auth can-i` takes it (empty if the
    reason is another one), and `follows` says what is therefore not known. `because` is the server's answer.
    """

    what: str
    needs: str
    follows: str
    because: str = ""


class Gaps(Struct):
    """Collects what a pass could not see.

    Only a rehearsal goes on without a read that every pass needs: it writes nothing, so it can say what it
    does not know. A pass that acts needs all its permissions.
    """

    rehearsed: bool = False
    unseen: dict[str, Unseen] = field(default_factory=dict)

    def tolerates(self, error: ClusterError) -> bool:
        """Whether the pass goes on without what the API server refused with this error."""
        return self.rehearsed and error.status == _FORBIDDEN

    def read(self, what: str, work: Callable[[], Value], follows: str) -> Value | None:
        """Return what was read, or None if a rehearsed pass may not read it; raises ClusterError."""
        try:
            return work()
        except ClusterError as error:
            if not self.tolerates(error):
                raise
            self.note(what, error, follows)
            return None

    def note(self, what: str, error: ClusterError, follows: str) -> str:
        """Note a read that was refused; return why in one line, without the server's long answer."""
        self.missing(what, error.needs, follows, str(error))
        return error.because

    def missing(self, what: str, needs: str, follows: str, because: str) -> None:
        """Note what was not seen, once."""
        self.unseen.setdefault(what, Unseen(what, needs, follows, because))
