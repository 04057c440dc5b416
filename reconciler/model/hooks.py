"""Hooks: what holds a step of a node's maintenance until the owner of the hook is done.

A hook is an annotation `<prefix>/<step>.<name>`, as Cluster API has them on Machines. Its owner removes the
annotation when the step may go on. The value is the name of the owner, for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciler.model import limits

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


@dataclass(frozen=True, slots=True, order=True)
class HookId:
    """What distinguishes a hook from the others of its node."""

    step: HookStep
    name: str
    kind: HookKind = HookKind.ANNOTATION

    def __str__(self) -> str:
        return f"{self.step}.{self.name}"


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook of a node as it is now; `owner` is who removes it, empty if the hook does not say."""

    id: HookId
    owner: str = ""

    def __str__(self) -> str:
        return f"{self.id} ({self.owner})" if self.owner else str(self.id)


class HookEnd(StrEnum):
    """Why a hook no longer holds its step although it is still there."""

    TIMED_OUT = "timedOut"


@dataclass(frozen=True, slots=True)
class HookRecord:
    """A hook in the record of its node: since when it holds its step (UTC), and how that ended.

    `end` None: it still holds the step. `told` is whether the Warning Event about its end was sent.
    """

    id: HookId
    since: datetime
    end: HookEnd | None = None
    told: bool = False


def hooks_of(annotations: Mapping[str, str], prefix: str) -> tuple[Hook, ...]:
    """Return the hooks that the annotations of a node or a pod name, by step and name.

    Of very many hooks of one step, these are the first ones by name.
    """
    return tuple(_hooks_of(annotations, prefix))


def _hooks_of(annotations: Mapping[str, str], prefix: str) -> Iterator[Hook]:
    for step in HookStep:
        start = f"{prefix}/{step}."
        names = sorted(key.removeprefix(start) for key in annotations if key.startswith(start))
        for name in [name for name in names if _NAME.fullmatch(name)][: limits.HOOKS]:
            yield Hook(HookId(step, name), limits.text(annotations[start + name].strip(), _OWNER))
