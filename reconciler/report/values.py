"""Values as JSON has them: one encoder, and a table of the keys of each type.

`docs/output.md` describes every key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from operator import attrgetter
from typing import Any

from reconciler import __version__
from reconciler.model.case_outcome import CaseOutcome, CaseResult
from reconciler.model.content import SettingsVersion
from reconciler.model.drains import Blocker, DrainProgress
from reconciler.model.event import PlatformPlan
from reconciler.model.explanation import Obstacle, SourceAnswer
from reconciler.model.moments import to_text
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import CheckAnswer, Hold, JudgedEvent, PodVerdict, Preview, Transition
from reconciler.model.pod import PodDisruptionBudget
from reconciler.model.problems import Unseen
from reconciler.model.schedule import CaseSchedule, DrainObstacle
from reconciler.model.unguarded import Unguarded

Document = dict[str, Any]

_AS_IT_IS = frozenset({str, int, float, bool, type(None)})
_ENCODERS: dict[type, Callable[[Any], Any]] = {}


def plain(value: Any) -> Any:
    """Return a value as JSON has it.

    A moment is RFC 3339 in UTC, a duration is in seconds, and a type has the keys that `keys` says.
    """
    kind = type(value)
    if kind in _AS_IT_IS:
        return value
    return (_ENCODERS.get(kind) or _encoder(value))(value)


def head(at: datetime) -> Document:
    """Return the first keys of a document that was made `at` a moment (aware)."""
    return {"version": "v1", "program": __version__, "at": plain(at)}


def keys(kind: type, text: str) -> None:
    """Say which keys a type has in JSON, in their order.

    A key `plannedStart` has the value of the attribute `planned_start`, and `check=code` that of `code`,
    which may be a path with dots. Where a `?` ends it, an empty value is null.
    """
    entries = []
    for item in text.split():
        key, _, path = item.rstrip("?").partition("=")
        attribute = path or re.sub(r"[A-Z]", lambda upper: f"_{upper[0].lower()}", key)
        entries.append((key, attrgetter(attribute), item.endswith("?")))

    def encode(value: Any) -> Document:
        return {key: plain((get(value) or None) if empty else get(value)) for key, get, empty in entries}

    _ENCODERS[kind] = encode


def _encoder(value: Any) -> Callable[[Any], Any]:
    """Return how values of the type are written that have no keys of their own."""
    match value:
        case Enum():
            encoder: Callable[[Any], Any] = attrgetter("value")
        case datetime():
            encoder = to_text
        case timedelta():
            encoder = timedelta.total_seconds
        case tuple() | list():
            encoder = _items
        case Mapping():
            encoder = _mapping
        case _:
            raise TypeError(f"{type(value).__name__} has no keys in JSON")
    _ENCODERS[type(value)] = encoder
    return encoder


def _items(value: Any) -> list[Any]:
    return [plain(item) for item in value]


def _mapping(value: Any) -> Document:
    return {key: plain(item) for key, item in value.items()}


for _kind, _keys in (
    (Transition, "profile from=before to=after because"),
    (Hold, "check=code reason until"),
    (CheckAnswer, "check=name answer=verdict reason until"),
    (Blocker, "pod because budget?"),
    (PodVerdict, "pod action reasons"),
    (Preview, "pods blockers room groups unknown"),
    (DrainProgress, "phase total gone evicted blockers warnings escalations error?"),
    (Unseen, "what needs? follows because"),
    (Outcome, "node action result detail"),
    (
        JudgedEvent,
        (
            "kind=event.kind status=event.status notBefore=event.not_before durationSeconds=event.duration"
            " ids=event.ids sources=event.sources description=event.cause.description"
            " startedBy=event.cause.initiator? condition=event.condition? disagreements=event.disagreements"
            " asksForDrain=asks because deadline mayStart timing=opening.words overruled=opening.overruled?"
            " plan=event.plan"
        ),
    ),
    (PlatformPlan, "until offered offerStart offerEnd"),
    (
        CaseSchedule,
        (
            "plannedStart latestStart window missed because forecast forecastBecause=forecast_words?"
            " obstacles=prospect.obstacles started ends comesBack ending? planFrom planUntil"
            " observed remedies?"
        ),
    ),
    (DrainObstacle, "code pod pods owner? budgets certain because remedy commands"),
    (SourceAnswer, "source answer because asOf"),
    (Obstacle, "code because until who"),
    (Unguarded, "why since"),
    (PodDisruptionBudget, "budget=key allowed desired healthy expected"),
):
    keys(_kind, _keys)


def _outcome(outcome: CaseOutcome) -> Document:
    written = {"drained": outcome.drained, "started": outcome.started, "pods": outcome.pods}
    more = {"met": outcome.met or None, "deadlinePassed": outcome.deadline_passed}
    return _mapping({**written, **more, "words": settled_words(outcome)})


_ENCODERS[CaseOutcome] = _outcome


def check_values(answers: tuple[CheckAnswer, ...]) -> list[Document]:
    """Return the answers of checks, each with a reason, also where that is ordinary."""
    return [{**plain(answer), "reason": answer.words} for answer in answers]


def settled_words(outcome: CaseOutcome | None) -> str | None:
    """Return what has become of a case in words, None while nothing is settled, or without a case."""
    if outcome is None or (outcome.result is CaseResult.RUNNING and outcome.deadline_passed is None):
        return None
    return outcome.words


def unseen_line(unseen: Unseen) -> str:
    """Return in a line what could not be read, what it needs, and what is therefore not known."""
    reason = f"needs {unseen.needs}" if unseen.needs else unseen.because
    return f"{unseen.what} ({reason}): {unseen.follows}"


def unseen_lines(problems: Iterable[Unseen]) -> list[str]:
    """Return one line for each thing that could not be read."""
    return [f"could not see: {unseen_line(unseen)}" for unseen in problems]


NOT_DONE = {Result.FAILED: "FAILED", Result.LATER: "retried by the next pass"}
"""In words, what became of an action that is not done."""


def outcome_lines(outcomes: Iterable[Outcome]) -> list[str]:
    """Return one line for each action that failed or was postponed."""
    return [
        f"{NOT_DONE[outcome.result]}: {f'{outcome.node}: ' if outcome.node else ''}{outcome.action}: "
        f"{outcome.detail}"
        for outcome in outcomes
        if outcome.result in NOT_DONE
    ]


def settings_value(version: SettingsVersion | None, now: datetime) -> Document | None:
    """Return which settings are in force `now`, None where they are not from a file."""
    if version is None:
        return None
    age = version.age(now)
    seconds = None if age is None else int(age.total_seconds())
    return {"hash": version.hash, "loadedAt": plain(version.loaded), "ageSeconds": seconds}


def moment_value(moment: datetime | None) -> str | None:
    """Return the moment as RFC 3339 in UTC."""
    return to_text(moment) if moment else None


def until_words(until: datetime | None, text: str) -> str:
    """Return until when something lasts, in parentheses; empty if that is not known, or the text says it."""
    moment = moment_value(until)
    return f" (until {moment})" if moment and moment not in text else ""
