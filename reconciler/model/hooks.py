"""Hooks: what holds a step of a node's maintenance until something else is done.

A hook is an annotation `<prefix>/<step>.<name>`, as Cluster API has them on Machines. Its owner removes the
annotation when the step may go on. The value is the name of the owner, for people. The settings can name
hooks too: a Job that has to succeed, or a webhook that has to agree.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import ClassVar, Protocol

from msgspec import Struct

from reconciler.model import limits
from reconciler.model.outcome import ActionKind, Place
from reconciler.model.tasks import Clients, Port

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_OWNER = 100
"""Characters of an owner's name that are shown."""


class HookStep(StrEnum):
    """The steps that a hook can hold, as annotations and records name them: the values never change."""

    PRE_DRAIN = "pre-drain"
    POST_DRAIN = "post-drain"
    PRE_UNCORDON = "pre-uncordon"

    @property
    def held(self) -> str:
        """What a hook of this step holds, in words."""
        return _HELD[self]


_HELD = {
    HookStep.PRE_DRAIN: "the drain",
    HookStep.POST_DRAIN: "what follows the drain",
    HookStep.PRE_UNCORDON: "the uncordon",
}


class HookKind(StrEnum):
    """What kind of hook it is. Records show the values, so they never change."""

    ANNOTATION = "annotation"
    JOB = "job"
    WEBHOOK = "webhook"


MOST_HOOKS = limits.HOOKS * len(HookStep) * len(HookKind)
"""Hooks of one node."""


class HookId(Struct, frozen=True, order=True):
    """What distinguishes a hook from the others of its node."""

    step: HookStep
    name: str
    kind: HookKind = HookKind.ANNOTATION

    def __str__(self) -> str:
        return f"{self.step}.{self.name}"


class Hook(Struct, frozen=True):
    """A hook of a node as it is now; `owner` is who removes it, empty if the hook does not say."""

    id: HookId
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.id} ({self.owner})" if self.owner else str(self.id)


class HookEnd(StrEnum):
    """Why a hook no longer holds its step although it is still there."""

    DONE = "done"
    TIMED_OUT = "timedOut"


class HookState(StrEnum):
    """What a hook of the settings does now."""

    ABSENT = "absent"
    """It has not begun, so it is to be run."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


LONGEST_PAUSE = timedelta(minutes=10)
"""The longest pause that a hook of the settings may ask for."""

SHORTEST_KEPT = timedelta(minutes=1)
"""A longer pause is kept in the record: no two sweeps of a CronJob are nearer to each other."""


class HookAnswer(Struct, frozen=True):
    """What a hook of the settings says in this pass, with its reason in words.

    `again` is after which time it is to be asked again, None if that does not matter.
    """

    state: HookState
    because: str = ""
    again: timedelta | None = None


class HookRecord(Struct, frozen=True):
    """A hook in the record of its node: since when it holds its step (UTC), and how that ended.

    `end` None: it still holds the step. `told` is whether the Warning Event about its end was sent. `again`
    is when it may be asked again, if its service wants a pause that another process has to know of (UTC).
    `answer` is what a hook of the settings says in this pass; it is not written.
    """

    id: HookId
    since: datetime
    end: HookEnd | None = None
    told: bool = False
    again: datetime | None = None
    answer: HookAnswer | None = None


class HookKey(Struct, frozen=True):
    """One run of a hook of the settings: of which node, which hook, and since when it holds its step (UTC).

    The record has all of it, so a pass after a kill finds the same run again.
    """

    node: str
    uid: str
    id: HookId
    since: datetime

    @property
    def name(self) -> str:
        """The name of its Job, and its idempotency key: no other run has it."""
        parts = (self.uid, self.id.step, self.id.kind, self.id.name, self.since.isoformat())
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        return f"{self.id.name}-{digest}"


class HookProgress(Struct, frozen=True):
    """The requests of this process to hooks: how many wait for an answer, and how many have got one so far.

    An answer is known to the process only, until a pass writes to the record what follows from it.
    """

    waiting: int = 0
    answered: int = 0


class HookReader(Protocol):
    """Reads what the hooks of the settings do."""

    def answers(self, keys: Sequence[HookKey]) -> Mapping[HookKey, HookAnswer]:
        """Return what each of these runs does now; a failure is an answer. Raises nothing, never waits."""


class HookRunner(HookReader, Protocol):
    """Runs the hooks of the settings; checks the lock first, as ClusterWriter does."""

    def run(self, run: HookRun) -> None:
        """Begin the run, or do nothing if an earlier pass has; never waits for its end. ClusterError."""

    def progress(self) -> HookProgress:
        """Return what this process has asked: a pass has to read each answer before the process ends."""


HOOKS: Port[HookRunner] = Port("hooks", "this process does not run hooks")
RUN_HOOK = ActionKind("run hook", "run a hook", Place.AFTER_DRAIN, gives_up="other hooks failed to begin")


class HookRun(Struct, frozen=True):
    """The order to run a hook of the settings, unless it was run before. It is a Task.

    `until` is when it stops holding its step at the latest (UTC), `lasts` how long that is from now.
    `not_before` is the earliest date of the events (UTC), None if none has a date. `event` is the kind of
    the first one.
    """

    action: ClassVar[ActionKind] = RUN_HOOK

    key: HookKey
    until: datetime
    lasts: timedelta
    event: str = ""
    not_before: datetime | None = None

    @property
    def node(self) -> str:
        """The node."""
        return self.key.node

    @property
    def what(self) -> tuple[str, ...]:
        """What it is about."""
        return ("hook", self.key.node, str(self.key.id))

    def perform(self, clients: Clients) -> None:
        """Begin it; raises ClusterError."""
        HOOKS.of(clients).run(self)


def hooks_of(annotations: Mapping[str, str], prefix: str) -> tuple[Hook, ...]:
    """Return the hooks that the annotations of a node or a pod name, by step and name.

    Of very many hooks of one step, these are the first ones by name.
    """
    return tuple(_hooks_of(annotations, prefix))


@lru_cache(maxsize=16)
def _starts(prefix: str) -> Mapping[HookStep, str]:
    return {step: f"{prefix}/{step}." for step in HookStep}


def _hooks_of(annotations: Mapping[str, str], prefix: str) -> Iterator[Hook]:
    starts = _starts(prefix)
    ours = tuple(starts.values())
    # Hardly any node or pod has one.
    if not any(key.startswith(ours) for key in annotations):
        return
    for step, start in starts.items():
        names = sorted(key.removeprefix(start) for key in annotations if key.startswith(start))
        for name in [name for name in names if _NAME.fullmatch(name)][: limits.HOOKS]:
            yield Hook(HookId(step, name), limits.text(annotations[start + name].strip(), _OWNER))
