"""The node conditions of AKS's node-problem-detector as a source.

AKS documents `VMEventScheduled` (azure-aks-docs, node-problem-detector.md). `PreemptionScheduled` is newer.
The five `…Scheduled` conditions are from 2022 (Azure/AKS#2062). Each condition is a source of its own, so
that one that is Unknown is not hidden by another that is True.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache

from pydantic import Field

from reconciler.model import limits
from reconciler.model.azure import is_degraded
from reconciler.model.event import Answer, Initiator, Kind, Reading, Signal, Status
from reconciler.model.machine import CONDITION
from reconciler.model.moments import from_text
from reconciler.model.node import Condition, Node
from reconciler.passes.plugin import Source, SourceContext, Wants
from reconciler.settings.fields import Duration, Flag, Section
from reconciler.settings.schema import Settings, SourceSection

MAIN = "VMEventScheduled"
"""The node condition of AKS's node-problem-detector that reports every kind of scheduled event."""

RELATIVES = (
    "PreemptionScheduled",
    "FreezeScheduled",
    "RebootScheduled",
    "RedeployScheduled",
    "PreemptScheduled",
    "TerminateScheduled",
)
CONDITIONS = frozenset((MAIN, *RELATIVES))
NOTICES = frozenset((MAIN, "RebootScheduled", "RedeployScheduled"))
"""Those that report the start of planned maintenance, and not another kind of event only."""

# '<Type> <Status>[: <date>]. DurationInSeconds: <n>. <description> For more information, see <link>[.]
# [EventId: <guid>]', as AKS's check_scheduledevent_consolidated.sh writes it; white space varies.
_HEAD = re.compile(
    r"^(?P<type>[A-Za-z]+) (?P<status>Scheduled|Started|Advisory)\b ?(?P<colon>:)?", re.IGNORECASE
)
_DATE = re.compile(
    r"^ ?(?P<date>[A-Za-z]{3}, ?\d{1,2} [A-Za-z]{3} \d{4} \d{1,2}:\d{2}:\d{2} (?:GMT|UTC)"
    r"|\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2}))(?=[.,; ]|$)\.?",
    re.IGNORECASE,
)
_DURATION = re.compile(r"DurationInSeconds: ?(-?\d+)\b\.?", re.IGNORECASE)
_EVENT_ID = re.compile(r"EventId: ?([0-9A-Za-z.-]+)", re.IGNORECASE)
_MORE = re.compile(r"For more information, see \S+", re.IGNORECASE)
_LIVE_MIGRATION = "memory-preserving live migration"
_BY_USER = "requested by authorized user"
_TYPED = {f"{kind.value}Scheduled": kind for kind in Kind} | {"PreemptionScheduled": Kind.PREEMPT}
"""What a condition says by its type alone, where its text is an unusual one."""

_KINDS = {kind.value.casefold(): kind for kind in Kind if kind is not Kind.UNKNOWN}


class NodeConditionsSource(Section):
    """Node conditions, such as node-problem-detector's `VMEventScheduled`."""

    enabled: Flag = Field(default=True, description="Whether they are read.")
    stale_after: Duration = Field(
        default=timedelta(minutes=15),
        description="A condition without a heartbeat for this long is unknown. So is a condition without "
        "an event whose heartbeat is this far in the future.",
    )


SECTION: SourceSection[NodeConditionsSource] = SourceSection(
    key="node_conditions",
    type=NodeConditionsSource,
    default=NodeConditionsSource(),
    description="Node conditions, such as `VMEventScheduled`.",
    reads_conditions=CONDITIONS,
)

SECTIONS = (SECTION,)


class AksConditions(Source):
    """The conditions that AKS's node-problem-detector sets for scheduled events."""

    name = "nodeConditions"
    reports_start = True
    who = (
        "the administrator of the node: does its node-problem-detector report? `kubectl describe node "
        "{node}` shows the heartbeats of its conditions"
    )

    def enabled(self, settings: Settings) -> bool:
        """Whether `sources.nodeConditions` is on."""
        return SECTION.of(settings).enabled

    def reading_names(self, settings: Settings) -> Collection[str]:
        """Return a name for each of AKS's conditions."""
        del settings
        return [CONDITION + condition for condition in CONDITIONS]

    def notice_names(self, settings: Settings) -> Collection[str]:
        """Return the names of the conditions that report planned maintenance."""
        del settings
        return [CONDITION + condition for condition in NOTICES]

    def wants(self, settings: Settings) -> Wants:
        """Return AKS's conditions, and AKS's remediator, which acts on some of them."""
        del settings
        return Wants(conditions=CONDITIONS, remediator=True)

    def read(self, node: Node, context: SourceContext) -> tuple[Reading, ...]:
        """Return a reading per condition, believed for `staleAfter`."""
        return read(node, SECTION.of(context.settings).stale_after)


SOURCES = (AksConditions(),)


# Each pass reads it again, and the nodes of an event have the same.
@lru_cache(1024)
def parse_message(source: str, message: str) -> Signal:
    """Parse a condition's message into a signal; an unreadable message becomes one of kind Unknown."""
    text = " ".join(limits.text(message, limits.MESSAGE).split())
    head = _HEAD.match(text)
    if head is None:
        return Signal(source, Kind.UNKNOWN, Status.SCHEDULED, description=limits.text(text))
    word, status = head["type"].casefold(), head["status"].casefold()
    if word == "spotrebalancerecommendation":
        kind = Kind.REBALANCE
    elif status == "advisory":
        return Signal(source, Kind.UNKNOWN, Status.SCHEDULED, description=limits.text(text))
    else:
        kind = _KINDS.get(word, Kind.UNKNOWN)
    rest = text[head.end() :]
    date = _DATE.match(rest) if head["colon"] else None
    unreadable = bool(head["colon"]) and date is None
    not_before = None
    if date is not None:
        rest = rest[date.end() :]
        try:
            not_before = from_text(date["date"])
        except ValueError:
            unreadable = True
    if kind is Kind.REBALANCE:
        # The date of an advice says when it was given (Azure/karpenter-provider-azure#1695). Nothing is due.
        not_before, unreadable = None, False
    duration = _DURATION.search(rest)
    event_id = _EVENT_ID.search(rest)
    description = text
    if kind is not Kind.UNKNOWN:
        for pattern in (_DURATION, _EVENT_ID, _MORE):
            rest = pattern.sub("", rest)
        description = " ".join(rest.split()).strip(" .:")
    if kind is Kind.FREEZE and _LIVE_MIGRATION in text.casefold():
        kind = Kind.LIVE_MIGRATION
    # The message has no EventSource; these words are Azure's for a user's own reboot or redeploy.
    initiator = Initiator.USER if _BY_USER in text.casefold() else None
    return Signal(
        source,
        kind,
        Status.STARTED if status == "started" else Status.SCHEDULED,
        not_before=not_before,
        duration=_seconds(duration[1]) if duration else None,
        id=limits.text(event_id[1].rstrip("."), limits.NAME) if event_id else "",
        description=limits.text(description),
        initiator=initiator,
        date_unreadable=unreadable,
        degraded=is_degraded(kind, initiator),
    )


def _seconds(digits: str) -> timedelta | None:
    try:
        # -1 is Azure's "unknown".
        return limits.duration(limits.number(digits))
    except ValueError:
        return None


def read(node: Node, stale_after: timedelta | None = None) -> tuple[Reading, ...]:
    """Return what AKS's own conditions report about a node, one reading per condition.

    Without `VMEventScheduled` node-problem-detector does not run on the node: unknown, and not installed.
    """
    readings = []
    main = node.condition(MAIN)
    if main is None:
        where = (
            "Windows nodes have no node-problem-detector"
            if node.is_windows
            else f"it has no condition {MAIN}"
        )
        readings.append(Reading(CONDITION + MAIN, Answer.UNKNOWN, because=where, installed=False))
    else:
        readings.append(_read_one(main, stale_after))
    readings.extend(_read_one(found, stale_after) for found in node.conditions if found.type in RELATIVES)
    return tuple(readings)


def _read_one(condition: Condition, stale_after: timedelta | None) -> Reading:
    source = CONDITION + condition.type
    if "heartbeat" in condition.unreadable:
        # Without its age, what it says may be of a detector that died long ago.
        because = f"the heartbeat of {condition.type} is outside of the years 2000 to 2100"
        return Reading(source, Answer.UNKNOWN, because=because)
    if condition.status == "True":
        signal = parse_message(source, condition.message)
        kind = _TYPED.get(condition.type)
        # Where the detector got no answer, it says so, and nothing of an event (Azure/AKS#4757).
        words = signal.description.casefold()
        no_answer = words.startswith("timeout when running plugin") or "advisory" in words.split()
        if signal.kind is Kind.UNKNOWN and kind is not None and not no_answer:
            signal = replace(signal, kind=kind, degraded=is_degraded(kind, signal.initiator))
        # If there are several events, the condition shows only one, and not always the next one.
        return Reading(
            source,
            Answer.EVENT,
            (signal,),
            as_of=condition.heartbeat,
            stale_after=stale_after,
            tells_one=True,
        )
    if condition.status == "False":
        return Reading(source, Answer.NO_EVENT, as_of=condition.heartbeat, stale_after=stale_after)
    message = " ".join(limits.text(condition.message).split())
    because = f"{condition.type} is {limits.text(condition.status) or 'empty'}: {message}"
    return Reading(
        source, Answer.UNKNOWN, because=because, as_of=condition.heartbeat, stale_after=stale_after
    )
