"""How messages read: one part for each cause, with who can change it, and the time that is left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial

from msgspec import Struct

from reconciler.calendar.values import format_duration, in_zone, with_time_left, without_times
from reconciler.features.notices.messages import Message, Topic
from reconciler.model.limits import count_of
from reconciler.model.moments import to_text
from reconciler.report import safe
from reconciler.report.ahead import clock_text
from reconciler.report.people import for_all, for_any

_COMMANDS = 5
"""Nodes that a command names; for more it selects them."""

_WORDS = {
    Topic.RECEIVED: "maintenance announced",
    Topic.PLANNED: "drain planned",
    Topic.APPROVAL_NEEDED: "approval needed",
    Topic.HELD: "waiting to start",
    Topic.WILL_BE_MISSED: "will be missed",
    Topic.NO_LONGER_MISSED: "in time after all",
    Topic.UNGUARDED: "unguarded",
    Topic.TWO_RECONCILERS: "two reconcilers",
    Topic.SETTINGS_REJECTED: "settings rejected",
    Topic.PERSON: "a person acted",
    Topic.STARTED: "drain started",
    Topic.BLOCKED: "drain blocked",
    Topic.DRAINED: "drained",
    Topic.DEADLINE_PASSED: "latest start passed",
    Topic.MISSED: "missed",
    Topic.FAILED: "failed",
    Topic.DONE: "done",
    Topic.SUMMARY: "weekly summary",
}

_SAYS_IT = frozenset({Topic.PERSON, Topic.DRAINED, Topic.DONE, Topic.NO_LONGER_MISSED, Topic.SUMMARY})
"""Topics whose text begins with what a headline has to say."""

_MISSED = "the node will not be drained in time: "

_SUPERSEDED = {
    Topic.DONE: (Topic.NO_LONGER_MISSED, Topic.DRAINED, Topic.STARTED, Topic.PLANNED, Topic.RECEIVED),
    Topic.DRAINED: (Topic.NO_LONGER_MISSED, Topic.STARTED, Topic.PLANNED, Topic.RECEIVED),
    Topic.STARTED: (Topic.PLANNED, Topic.RECEIVED),
    Topic.PLANNED: (Topic.RECEIVED,),
}
"""What a message says better than these of the same case."""

_RUNBOOKS = "https://github.com/node-maintenance/node-maintenance-reconciler/blob/main/docs/runbooks"
RUNBOOKS = {
    Topic.APPROVAL_NEEDED: "NodeMaintenanceWillBeMissed",
    Topic.HELD: "NodeMaintenanceHeldForLong",
    Topic.WILL_BE_MISSED: "NodeMaintenanceWillBeMissed",
    Topic.UNGUARDED: "NodeMaintenanceUnguarded",
    Topic.TWO_RECONCILERS: "NodeMaintenanceTwoReconcilers",
    Topic.SETTINGS_REJECTED: "NodeMaintenanceSettingsRejected",
    Topic.BLOCKED: "NodeMaintenanceDrainBlocked",
    Topic.DEADLINE_PASSED: "NodeMaintenanceWillBeMissed",
    Topic.MISSED: "NodeMaintenanceMissed",
    Topic.FAILED: "NodeMaintenancePassesFail",
}
"""The page of docs/runbooks for each topic about which a person has to do something."""

_GROUP_COMMAND = re.compile(r"reconciler (?:approve|resume) ")


class Part(Struct, frozen=True):
    """What is said of the nodes with one cause. Moments are in RFC 3339 and UTC.

    `about` are the nodes in words. `head` says in a few words what is said of them, and until when. `text` is
    the text of the message with the first date, and `names` are its nodes. `remedy` says who can change it,
    with a command, and `runbook` is the URL of a page about it; both are empty where nobody has to do
    anything.
    """

    messages: tuple[Message, ...]
    about: str
    head: str
    text: str
    names: tuple[str, ...] = ()
    remedy: str = ""
    runbook: str = ""

    @property
    def first(self) -> Message:
        """The message with the first date."""
        return self.messages[0]

    @property
    def below(self) -> str:
        """What the headline does not say."""
        says_it = self.first.topic in _SAYS_IT
        return self.text.partition("; ")[2] if says_it else self.text

    @property
    def line(self) -> str:
        """All of it in one line, without the remedy."""
        says_it = self.first.topic in _SAYS_IT and self.text
        line = f"{self.about}: {self.text}" if says_it else f"{self.head}: {self.text}"
        return f"{line}: {', '.join(self.names)}" if len(self.names) > 1 else line


def words_of(message: Message) -> str:
    """Return in a few words what a message says."""
    return f"{'still ' if message.repeats else ''}{_WORDS[message.topic]}"


def parts_of(messages: Sequence[Message], now: datetime | None = None) -> tuple[Part, ...]:
    """Return the parts of a delivery at `now` (aware), the worst and most urgent first."""
    groups: dict[tuple[Topic, bool, str], list[Message]] = {}
    for one in without_superseded(messages):
        groups.setdefault((one.topic, one.repeats, one.cause or without_times(_for_any(one))), []).append(one)
    parts = [part_of(alike, now) for alike in groups.values()]
    return tuple(sorted(parts, key=lambda part: (not part.first.topic.bad, *_urgency(part.first))))


def part_of(messages: Iterable[Message], now: datetime | None = None) -> Part:
    """Return what is said of the nodes of these messages, which have one topic and cause."""
    by_node = {message.node: message for message in sorted(messages, key=_urgency, reverse=True)}
    said = tuple(sorted(by_node.values(), key=_urgency))
    first, names = said[0], tuple(one.node for one in said)
    texts = {_for_any(one) for one in said}
    text = for_all(list(names), next(iter(texts))) if len(texts) == 1 else f"first {first.node}: {first.text}"
    longest = max((one.took for one in said if one.took is not None), default=None)
    if longest is not None and len(texts) > 1:
        text = f"all {first.cause} within {format_duration(longest)}"
    remedy = _for_all(said, first.remedy)
    for known in (_MISSED, *(f" {sentence}" for sentence in text.split(". ")[1:])):
        # The headline says it, or the remedy.
        text = text.replace(known, "") if known == _MISSED or known.strip(" .") in remedy else text
    about = safe.line(_about(said))
    says_it = first.topic in _SAYS_IT and text
    head = f"{about}: {text.partition('; ')[0] if says_it else words_of(first)}"
    if first.by is not None:
        until = "by" if first.topic is Topic.APPROVAL_NEEDED else "maintenance from"
        head = f"{head}, {until} {to_text(first.by)}"
    return Part(
        said,
        about,
        safe.line(_with_time_left(head, now)),
        safe.line(_with_time_left(text, now)),
        names if first.node else (),
        safe.line(remedy),
        runbook_of(first),
    )


def runbook_of(message: Message) -> str:
    """Return the URL of the page about what a message says, empty if nobody has to do anything."""
    page = RUNBOOKS.get(message.topic, "")
    return f"{_RUNBOOKS}/{page}.md" if page else ""


def title_of(parts: Sequence[Part]) -> str:
    """Return the headline of a delivery."""
    if len(parts) == 1:
        return parts[0].head
    if parts and parts[0].first.topic.bad:
        return f"{parts[0].head}; and {len(parts) - 1} more"
    said = [message for part in parts for message in part.messages]
    if any(not one.node for one in said):
        of_cluster = [one for one in said if not one.node]
        rest = [one for one in said if one.node]
        return f"{_counted(of_cluster)}; {_counted(rest)}" if rest else _counted(of_cluster)
    return _counted(said)


def without_superseded(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without those of which a later one of the same case says more."""
    by_case: dict[str, dict[Topic, Message]] = {}
    for one in messages:
        by_case.setdefault(one.case, {})[one.topic] = one

    def is_superseded(message: Message) -> bool:
        others = by_case[message.case]
        later = [
            others[topic]
            for topic, before in _SUPERSEDED.items()
            if topic in others and message.topic in before
        ]
        if message.topic is Topic.RECEIVED:
            # Of several events, one may need no drain.
            kind = message.text.partition(" ")[0]
            later = [one for one in later if kind in one.text]
        return bool(later)

    return [one for one in messages if not is_superseded(one)]


def _about(said: Sequence[Message]) -> str:
    first = said[0]
    if len(said) == 1:
        places = ", ".join(place for place in (first.pool, first.zone) if place)
        return f"{first.about} ({places})" if places and first.node else first.about
    pools = {one.pool for one in said}
    pool = next(iter(pools)) if len(pools) == 1 else ""
    return f"{len(said)} nodes of {pool}" if pool else f"{len(said)} nodes"


def _counted(said: Sequence[Message]) -> str:
    nodes = {one.about for one in said}
    topics = dict.fromkeys(one.topic for one in said)
    if len(nodes) == 1:
        return f"{said[0].about}: {', '.join(_WORDS[each] for each in topics)}"
    counts = ", ".join(
        f"{len({one.node for one in said if one.topic is each})} {_WORDS[each]}" for each in topics
    )
    return f"{count_of(len(nodes), 'node')}: {counts}"


def _for_any(message: Message) -> str:
    return for_any(message.node, message.text) if message.node else message.text


def _for_all(said: Sequence[Message], remedy: str) -> str:
    """Return the remedy for all these nodes: one command approves or resumes several."""
    first = said[0]
    if len(said) == 1 or not _GROUP_COMMAND.search(remedy):
        return remedy
    pools = {one.pool for one in said}
    pool = next(iter(pools)) if len(pools) == 1 else ""
    names = " ".join(one.node for one in said)
    chosen = names if len(said) <= _COMMANDS else f"--pool {pool}" if pool else "--all"
    return for_all([chosen], for_any(first.node, remedy))


def _urgency(message: Message) -> tuple[datetime, str]:
    return message.by or datetime.max.replace(tzinfo=UTC), message.node


def in_local_time(text: str, zone: tzinfo, now: datetime | None) -> str:
    """Return a text with its moments in a zone, which is named at the first one.

    A moment of the day of `now` (aware) is a time of day.
    """
    return in_zone(text, zone, clock=partial(clock_text, now=now, zone=zone)) if now else in_zone(text, zone)


def _with_time_left(text: str, now: datetime | None) -> str:
    return with_time_left(text, now) if now is not None else text
