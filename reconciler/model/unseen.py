"""What a pass could not see because a permission is missing, and what follows from that."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct, field

from reconciler.model.errors import ClusterError

PODS = "the pods"
BUDGETS = "PodDisruptionBudgets"
NAMESPACES = "the namespaces"
"""What a preview needs, as `Unseen.what`."""

VOLUMES = "PersistentVolumes"
LEDGER = "the ledger"
WEBHOOKS = "the answers of admission webhooks"
"""What readiness also needs, as `Unseen.what`."""

_FORBIDDEN = 403

Value = TypeVar("Value")


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
        return f"needs {error.needs}" if error.needs else str(error)

    def missing(self, what: str, needs: str, follows: str, because: str) -> None:
        """Note what was not seen, once."""
        self.unseen.setdefault(what, Unseen(what, needs, follows, because))
