"""What a rehearsal has read and decided, and why a node or a pod is as it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from reconciler.model.drains import Blocker
from reconciler.model.plan import NodePlan, Plan, PodVerdict, Preview
from reconciler.model.pod import Pod, PodDisruptionBudget
from reconciler.model.snapshot import Snapshot


class Examination(Struct, frozen=True):
    """A plan, and the snapshot from which it was decided."""

    plan: Plan
    snapshot: Snapshot


class SourceAnswer(Struct, frozen=True):
    """One source's answer about a node, in words; `as_of` is the last heartbeat of its writer (UTC)."""

    source: str
    answer: str
    because: str = ""
    as_of: datetime | None = None


class Obstacle(Struct, frozen=True):
    """What holds a node, or keeps a pod, and who can change that.

    `code` is that of a hold, or `source`, `budget`, `pod`, `unguarded`, `forecast` or `missed`. `until` is
    when it ends by itself, if that is known (UTC). `by_itself` is whether it ends without a person, and in
    time.
    """

    code: str
    because: str
    who: str
    until: datetime | None = None
    by_itself: bool = False


class NodeExplanation(Struct, frozen=True):
    """A node: its plan, the answers of all sources, what blocks, and what a drain would do now.

    `unmanaged` says why no pass acts on the node, and `out_of_service` why it takes no new pods; both are
    empty if that is not so. `assumed` is the kind of event for which `drain` is, empty if it is for the
    events of the node. `drain` is None if the pods can't be seen. `then` says what happens if nobody does
    anything, empty if nothing is announced that requires a drain.
    """

    plan: NodePlan
    unmanaged: str = ""
    out_of_service: str = ""
    sources: tuple[SourceAnswer, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    assumed: str = ""
    drain: Preview | None = None
    then: str = ""


class Moves(StrEnum):
    """Whether a pod moves."""

    MOVES = "moves"

    WAITS = "waits"
    """No moment is known, or the drain waits until the pod ends by itself."""

    BLOCKED = "blocked"
    """Its node has maintenance, and something that only a person can change keeps the pod there."""

    STAYS = "stays"
    UNKNOWN = "unknown"


class PodMove(Struct, frozen=True):
    """Whether and when a pod (`namespace/name`) moves to another node.

    `start` is when the drain of its node starts or began (UTC), None if it has none or no moment is known.
    `because` says why it does not move, or what else there is to know, and `who` can change that.
    """

    pod: str
    node: str
    owner: str
    answer: Moves
    start: datetime | None = None
    because: str = ""
    who: str = ""


class NamespacePods(Struct, frozen=True):
    """The pods of a namespace that run on nodes: those that need a person first, then by the start."""

    namespace: str
    moves: tuple[PodMove, ...]

    @property
    def nodes(self) -> frozenset[str]:
        """The names of the nodes that run them."""
        return frozenset(move.node for move in self.moves)


class SeenEvent(Struct, frozen=True):
    """A Kubernetes Event about the object of this `kind` and `name`; `at` is when it came last (UTC).

    `ours`: this program has written it.
    """

    at: datetime | None
    reason: str
    message: str
    kind: str
    name: str
    ours: bool = False

    def owns(self, pod: str) -> bool:
        """Whether it is about this pod, or by its name about an owner of it."""
        return pod == self.name or (self.kind != "Node" and pod.startswith(f"{self.name}-"))


class KnownMove(Struct, frozen=True):
    """That a pod of a name was moved `at` a moment (UTC), and how, in words; `fields` say it for programs."""

    at: datetime
    words: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class PodPast(Struct, frozen=True):
    """What is known of why a pod was moved.

    `events` are those about it, and those of this program about its owner, the newest first. `successors` are
    pods of the same owner that run now, as `namespace/name`, with their nodes. `drained` are the nodes that
    are in maintenance, with the begin and the end of their drains (UTC). `unseen` is why the Events could
    not be read. `moves` are what features keep of it, the newest first, and `unread` says what of that could
    not be read.
    """

    pod: str
    events: tuple[SeenEvent, ...] = ()
    successors: tuple[tuple[str, str], ...] = ()
    drained: tuple[tuple[str, datetime, datetime | None], ...] = ()
    unseen: str = ""
    moves: tuple[KnownMove, ...] = ()
    unread: tuple[str, ...] = ()


class PodExplanation(Struct, frozen=True):
    """A pod: whether it moves, what a drain of its node would do with it, and what refuses its eviction.

    `owner` is the workload to ask, empty if it has none. `labels` are those that name an owner or a team.
    `budgets` are those that select it. `refused` is why the API server would refuse its eviction now, None if
    it would not.
    """

    pod: Pod
    owner: str
    labels: tuple[tuple[str, str], ...]
    verdict: PodVerdict
    move: PodMove
    budgets: tuple[PodDisruptionBudget, ...] = ()
    refused: Blocker | None = None
    obstacles: tuple[Obstacle, ...] = ()
