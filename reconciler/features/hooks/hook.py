"""Hooks: what holds a step of a node's maintenance until something else is done.

A hook is an annotation that holds the step (see `model/steps.py`), or one of the settings: a Job that has to
succeed, or a webhook that has to agree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Protocol

from msgspec import Meta, Struct

from reconciler.model import limits
from reconciler.model.clocks import OwnTimes
from reconciler.model.outcome import ActionKind, Place
from reconciler.model.ports import RequestProgress
from reconciler.model.record import RecordPart
from reconciler.model.steps import HeldStep, owned
from reconciler.model.tasks import Clients, Port
from reconciler.model.values import decoded, encoded, register, replace


class HookKind(StrEnum):
    """What kind of hook it is. Records show the values, so they never change."""

    ANNOTATION = "annotation"
    JOB = "job"
    WEBHOOK = "webhook"


MOST_HOOKS = limits.HOLDERS * len(HeldStep) * len(HookKind)
"""Hooks of one node."""


class HookId(Struct, frozen=True, order=True):
    """What distinguishes a hook from the others of its node."""

    step: HeldStep
    name: str
    kind: HookKind = HookKind.ANNOTATION

    def __str__(self) -> str:
        return f"{self.step}.{self.name}"


class Hook(Struct, frozen=True):
    """A hook of a node as it is now; `owner` is who removes it, empty if the hook does not say."""

    id: HookId
    owner: str = ""

    def __str__(self) -> str:
        return owned(str(self.id), self.owner)


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
    """

    id: HookId
    since: datetime
    end: HookEnd | None = None
    told: bool = False
    again: datetime | None = None

    def believed(self, times: OwnTimes) -> HookRecord:
        """Return the hook without times in the future, and without a pause that no service may ask for."""
        again = self.again
        possible = again is not None and again - LONGEST_PAUSE <= times.latest
        return replace(self, since=times.of(self.since), again=again if possible else None)


class _HookText(Struct, frozen=True):
    """A hook's data in the record beside its step and name, which are one text there."""

    since: datetime
    kind: HookKind = HookKind.ANNOTATION
    end: HookEnd | None = None
    told: bool = False
    again: datetime | None = None


def _hook_out(hook: HookRecord) -> dict[str, Any]:
    kept = _HookText(hook.since, hook.id.kind, hook.end, hook.told, hook.again)
    return {"hook": str(hook.id), **encoded(kept)}


def _hook_in(document: Mapping[str, Any]) -> HookRecord:
    step, _, name = document["hook"].partition(".")
    kept = decoded(_HookText, document)
    hook = HookId(HeldStep(step), limits.text(name), kept.kind)
    return HookRecord(hook, kept.since, kept.end, kept.told, kept.again)


register(HookRecord, _hook_out, _hook_in)

HookRecords = tuple[HookRecord, ...]
IN_RECORD: RecordPart[HookRecords] = RecordPart(
    "hooks", Annotated[HookRecords, Meta(max_length=MOST_HOOKS)], ()
)
"""The hooks of a case in its record: those that hold a step, and those that held one and are still there."""


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


class HookReader(Protocol):
    """Reads what the hooks of the settings do."""

    def answers(self, keys: Sequence[HookKey]) -> Mapping[HookKey, HookAnswer]:
        """Return what each of these runs does now; a failure is an answer. Raises nothing, never waits."""


class HookRunner(HookReader, Protocol):
    """Runs the hooks of the settings; checks the lock first, as ClusterWriter does."""

    def run(self, run: HookRun) -> None:
        """Begin the run, or do nothing if an earlier pass has; never waits for its end. ClusterError."""

    def progress(self) -> RequestProgress:
        """Return what this process has asked: a pass has to read each answer before the process ends."""


RUNNER: Port[HookRunner] = Port("hooks", "this process does not run hooks")
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
        RUNNER.of(clients).run(self)
