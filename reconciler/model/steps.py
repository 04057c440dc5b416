"""What can hold a step of a node's maintenance: checks of features, and annotations.

An annotation `<prefix>/<step>.<name>` of a node or a pod holds a step, as Cluster API has it on Machines. Its
owner removes it when the step may go on. The value is the name of the owner, for people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from reconciler.model import limits

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_OWNER = 100
"""Characters of an owner's name that are shown."""


class HeldStep(StrEnum):
    """The steps that can be held, as annotations and records name them: the values never change."""

    PRE_DRAIN = "pre-drain"
    POST_DRAIN = "post-drain"
    PRE_UNCORDON = "pre-uncordon"

    @property
    def words(self) -> str:
        """The step, in words."""
        return _WORDS[self]


_WORDS = {
    HeldStep.PRE_DRAIN: "the drain",
    HeldStep.POST_DRAIN: "what follows the drain",
    HeldStep.PRE_UNCORDON: "the uncordon",
}


class Holder(Struct, frozen=True):
    """An annotation that holds a step; `owner` is who removes it, empty if it does not say."""

    step: HeldStep
    name: str
    owner: str = ""

    def __str__(self) -> str:
        return owned(f"{self.step}.{self.name}", self.owner)


def owned(name: str, owner: str) -> str:
    """Return the name of what holds a step, with the owner behind it if that is known."""
    return f"{name} ({owner})" if owner else name


def holders_of(annotations: Mapping[str, str], prefix: str) -> tuple[Holder, ...]:
    """Return what holds steps by the annotations of a node or a pod, by step and name.

    Of very many of one step, these are the first ones by name.
    """
    starts = _starts(prefix)
    ours = tuple(starts.values())
    # Hardly any node or pod has one.
    if not any(key.startswith(ours) for key in annotations):
        return ()
    holders: list[Holder] = []
    for step, start in starts.items():
        names = sorted(key.removeprefix(start) for key in annotations if key.startswith(start))
        holders += [
            Holder(step, name, limits.text(annotations[start + name].strip(), _OWNER))
            for name in [name for name in names if _NAME.fullmatch(name)][: limits.HOLDERS]
        ]
    return tuple(holders)


@lru_cache(maxsize=16)
def _starts(prefix: str) -> Mapping[HeldStep, str]:
    return {step: f"{prefix}/{step}." for step in HeldStep}
