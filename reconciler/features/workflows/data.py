"""The data of the workflows of a node, and its annotation in the exact form of maintenance-controller.

maintenance-controller refuses a text with fields that it does not know, so what only we need is in our own
record. Both of its versions are read, and the newer one is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

from msgspec import Struct, field

from reconciler.model import limits
from reconciler.model.moments import from_text, to_text
from reconciler.model.record import State

NEVER = "0001-01-01T00:00:00Z"
"""Go's zero time: maintenance-controller writes it for a notification that was never sent.

It is read as the first moment that we know.
"""

_Kept = TypeVar("_Kept")

_VERSION_1 = {"LastTransition", "LastNotificationTimes", "ProfileStates", "PreviousStates"}
_VERSION_2 = {"Profiles", "Notifications"}
_OF_A_PROFILE = {"Transition", "Current", "Previous"}
_FRACTION = re.compile(r"\.(\d{6})\d+")


class ProfileData(Struct, frozen=True):
    """One profile of one node, as the annotation `<keys.prefix>/maintenance-data` holds it.

    `transition` is when `current` was entered (UTC). `previous` differs from `current` until a pass has run
    the `enter` chain of `current` to its end.
    """

    transition: datetime
    current: State = State.OPERATIONAL
    previous: State = State.OPERATIONAL

    @property
    def is_theirs(self) -> bool:
        """Whether maintenance-controller entered the state: it writes fractions of seconds, we do not."""
        return self.transition.microsecond != 0

    @property
    def is_entering(self) -> bool:
        """Whether the `enter` chain of the state has not ended."""
        return self.previous is not self.current


class WorkflowData(Struct, frozen=True):
    """The annotation of one node: its profiles, and when each notification instance was last sent (UTC)."""

    profiles: Mapping[str, ProfileData] = field(default_factory=dict)
    notifications: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def worst(self) -> State:
        """The worst state of all profiles, operational without any."""
        order = list(State)
        return max(
            (profile.current for profile in self.profiles.values()),
            key=order.index,
            default=State.OPERATIONAL,
        )


class DataUnreadable(ValueError):
    """The text is not the data of maintenance-controller. The message says why."""


def to_annotation(data: WorkflowData) -> str:
    """Return the data as the annotation's text. Equal data give equal texts.

    Raises DataUnreadable if it would be longer than `from_annotation` reads.
    """
    document = {
        "Profiles": {
            name: {
                "Transition": _moment_out(kept.transition),
                "Current": kept.current.value,
                "Previous": kept.previous.value,
            }
            for name, kept in sorted(data.profiles.items())
        },
        "Notifications": {name: _moment_out(at) for name, at in sorted(data.notifications.items())},
    }
    text = json.dumps(document, separators=(",", ":"))
    if len(text) > limits.ANNOTATION:
        raise DataUnreadable(f"it would be longer than {limits.ANNOTATION} characters")
    return text


@lru_cache(maxsize=8192)
def from_annotation(text: str) -> WorkflowData:
    """Parse the annotation's text; an empty text is empty data. Raises DataUnreadable."""
    if not text.strip():
        return WorkflowData()
    try:
        document = limits.loads(text)
        if not isinstance(document, dict):
            raise DataUnreadable("it is not a JSON object")
        if set(document) & _VERSION_1:
            return _version_1(_known(document, _VERSION_1))
        return _version_2(_known(document, _VERSION_2))
    except DataUnreadable:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataUnreadable(limits.text(f"it can't be read: {limits.why_unreadable(error)}")) from error


def _version_2(document: Mapping[str, Any]) -> WorkflowData:
    profiles: dict[str, ProfileData] = {}
    for name, kept in (document.get("Profiles") or {}).items():
        profile = _known(kept, _OF_A_PROFILE)
        current = State(profile["Current"])
        profiles[name] = ProfileData(
            _moment_in(profile.get("Transition", NEVER)), current, State(profile.get("Previous") or current)
        )
    return WorkflowData(_limited(profiles), _notifications(document.get("Notifications")))


def _version_1(document: Mapping[str, Any]) -> WorkflowData:
    """Read the older form, in which all profiles of a node share the time of the last transition."""
    changed = _moment_in(document.get("LastTransition", NEVER))
    before = document.get("PreviousStates") or {}
    states = document.get("ProfileStates") or {}
    profiles = {
        name: ProfileData(changed, State(state), State(before.get(name, state)))
        for name, state in states.items()
    }
    return WorkflowData(_limited(profiles), _notifications(document.get("LastNotificationTimes")))


def _known(document: Any, keys: set[str]) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise DataUnreadable(f"{limits.excerpt(document)} is not a JSON object")
    unknown = sorted(set(document) - keys)
    if unknown:
        raise DataUnreadable(f"it has the unknown field {limits.excerpt(unknown[0])}")
    return document


def _notifications(document: Any) -> Mapping[str, datetime]:
    return _limited({name: _moment_in(at) for name, at in (document or {}).items()})


def _limited(found: Mapping[str, _Kept]) -> Mapping[str, _Kept]:
    if len(found) > limits.ENTRIES:
        raise DataUnreadable(f"it has {len(found)} entries of one kind, and {limits.ENTRIES} are read")
    return {limits.text(name, limits.NAME): found[name] for name in sorted(found)}


def _moment_in(text: Any) -> datetime:
    if not isinstance(text, str):
        raise DataUnreadable(f"{limits.excerpt(text)} is not a time")
    # Go writes nanoseconds.
    short = _FRACTION.sub(r".\1", limits.moment_text(text))
    return limits.EARLIEST if short.startswith("0001-01-01T") else from_text(short)


def _moment_out(moment: datetime) -> str:
    return NEVER if moment <= limits.EARLIEST else to_text(moment)
