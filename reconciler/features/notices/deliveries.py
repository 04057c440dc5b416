"""What is sent now: the messages of one entry of `notify` that are due, put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from msgspec import Struct

from reconciler.calendar.notice_times import Weekly
from reconciler.features.notices.memory import OLDEST, Memory, receiver_of
from reconciler.features.notices.messages import Message
from reconciler.features.notices.settings import Notify
from reconciler.features.notices.templates import TemplateFailed, rendered
from reconciler.features.notices.wording import Part, in_local_time, parts_of, title_of
from reconciler.model import limits
from reconciler.model.messages import ProfileMessage
from reconciler.model.moments import shifted, to_text
from reconciler.model.values import replace
from reconciler.report import safe

MOST = 50
"""Nodes in one delivery for people, and messages in one for programs. The others follow in the next one."""

_MESSAGES = 300
"""Messages in one delivery for people."""

_LATE = timedelta(minutes=15)
"""A message that could not be sent for so long says from when it is."""

_TITLE = 200


class Delivery(Struct, frozen=True):
    """Messages that are sent together to one receiver.

    `title` and `lines` are for people: without control characters, and with moments in the entry's zone.
    `thread` is the chat thread to continue, empty for a new message. `cluster` is the name of the cluster.
    `body` is what a template made instead of title and lines, empty without one; messages of workflows have
    only that and a title. `recipient` is the address of one owner of workloads, empty for the recipients of
    the entry. `zone` is the one in which people read moments.
    """

    to: str
    messages: tuple[Message, ...]
    title: str
    lines: tuple[str, ...]
    cluster: str = ""
    thread: str = ""
    body: str = ""
    recipient: str = ""
    zone: tzinfo = UTC
    parts: tuple[Part, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    now: datetime | None = None

    @property
    def text(self) -> str:
        """The title, the lines and the links, or what a template made instead."""
        return self.body or "\n".join(filter(None, (self.title, self.rest)))

    @property
    def rest(self) -> str:
        """The text without its title."""
        return self.body or "\n".join((*self.lines, *(f"{name}: {url}" for name, url in self.links)))

    @property
    def page(self) -> str:
        """The URL of the page, empty without one."""
        return next((url for name, url in self.links if name == "Page"), "")

    def values(self) -> dict[str, Any]:
        """Return what a template can use."""
        return {
            "cluster": self.cluster,
            "title": self.title,
            "text": self.text,
            "lines": list(self.lines),
            "messages": [
                {
                    "topic": message.topic.value,
                    "node": message.node,
                    "kind": message.kind,
                    "pool": message.pool,
                    "zone": message.zone,
                    "at": to_text(message.at),
                    "text": message.text,
                    "repeats": message.repeats,
                    "cause": message.cause,
                    "by": to_text(message.by) if message.by is not None else "",
                    "remedy": message.remedy,
                }
                for message in self.messages
            ],
        }

    def with_template(self, template: str, is_over: Callable[[], bool]) -> Delivery:
        """Return the delivery with the text that a template makes.

        If the template fails, the text is the usual one, and says why.
        """
        try:
            body = rendered(template, self.values(), is_over)
        except TemplateFailed as error:
            return replace(self, lines=(*self.lines, safe.line(f"The template failed: {error}")))
        return replace(self, body=safe.lines(body))

    @property
    def bad(self) -> bool:
        """Whether a person probably has to do something."""
        return any(message.topic.bad for message in self.messages)

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the messages."""
        return frozenset(message.id for message in self.messages)


class NextDelivery(Struct, frozen=True):
    """What one entry gets: a delivery, or the moment at which one may be due (UTC); None for never."""

    delivery: Delivery | None = None
    at: datetime | None = None


def due_for(
    entry: Notify, memory: Memory, now: datetime, zone: tzinfo, *, flush: bool = False
) -> NextDelivery:
    """Return what is due for an entry `now` (aware); `zone` is that of the settings.

    With `flush`, messages are not put together with later ones: the process is about to end.
    """
    waiting = [one.message for one in memory.pending if entry.name in one.to]
    if not waiting:
        return NextDelivery()
    ripe = [(ripe_at(entry, message, now, zone), message) for message in waiting]
    first = min(moment for moment, _ in ripe)
    sends = first if flush or entry.at is not None else shifted(first, entry.group)
    if sends > now:
        return NextDelivery(at=sends)
    chosen = [message for moment, message in ripe if moment <= now]
    if not chosen:
        return NextDelivery(at=first)
    receiver = memory.receiver(entry.name)
    slack = entry.slack
    thread = receiver.thread if slack is not None and slack.thread else ""
    if slack is not None and receiver.thread_since is not None:
        thread = thread if now < shifted(receiver.thread_since, slack.thread) else ""
    first_messages = chosen[:MOST]
    if entry.webhook is None and entry.pagerduty is None:
        # A program gets each message on its own, a person those about the first nodes.
        nodes = set(list(dict.fromkeys(message.node for message in chosen))[:MOST])
        first_messages = [message for message in chosen if message.node in nodes][:_MESSAGES]
    delivery = delivery_of(entry, tuple(first_messages), zone, dropped=receiver.dropped, now=now)
    return NextDelivery(delivery=replace(delivery, thread=thread))


def ripe_at(entry: Notify, message: Message, now: datetime, zone: tzinfo) -> datetime:
    """Return when a message may be sent at the earliest (UTC)."""
    if message.at > now:
        return now  # A clock was ahead.
    if message.over:
        return message.at
    if entry.at is not None:
        weekly = Weekly(entry.at.time, entry.at.days, entry.at.time_zone or zone)
        return weekly.first_from(message.at)
    return shifted(message.at, entry.after) if message.repeats else entry.first_at(message, message.at)


def too_old(memory: Memory, entries: Sequence[Notify], now: datetime) -> Memory:
    """Return the memory without messages that could not be sent for a day; each counts as dropped.

    What closes an alert is kept.
    """
    after = memory
    for entry in entries:
        if entry.at is not None:
            continue
        old = frozenset(
            one.message.id
            for one in memory.pending
            if entry.name in one.to
            and not one.message.over
            and shifted(ripe_at(entry, one.message, now, UTC), OLDEST + entry.group) < now
        )
        if old:
            receiver = after.receiver(entry.name)
            after = after.without(entry.name, old)
            after = after.with_receiver(entry.name, replace(receiver, dropped=receiver.dropped + len(old)))
    return after


def sent(memory: Memory, delivery: Delivery, now: datetime, thread: str = "") -> Memory:
    """Return the memory after a delivery; `thread` is the thread that it began or continued."""
    receiver = memory.receiver(delivery.to)
    began = now.replace(microsecond=0) if thread and thread != delivery.thread else receiver.thread_since
    cleared = replace(
        receiver,
        problem="",
        problem_since=None,
        dropped=0,
        thread=thread,
        thread_since=began if thread else None,
    )
    return memory.without(delivery.to, delivery.ids).with_receiver(delivery.to, cleared)


def works(memory: Memory, name: str) -> Memory:
    """Return the memory of an entry that had a problem and has none now."""
    return memory.with_receiver(name, replace(memory.receiver(name), problem="", problem_since=None))


def failed(memory: Memory, name: str, why: str, now: datetime) -> Memory:
    """Return the memory after a delivery that failed; `problem_since` stays with the first failure."""
    receiver = memory.receiver(name)
    since = receiver.problem_since or now.replace(microsecond=0)
    return memory.with_receiver(name, replace(receiver, problem=limits.text(why, 300), problem_since=since))


def delivery_of(
    entry: Notify,
    messages: tuple[Message, ...],
    zone: tzinfo,
    *,
    dropped: int = 0,
    now: datetime | None = None,
) -> Delivery:
    """Return the delivery of these messages; those that are late at `now` (aware) say from when they are."""
    zone = entry.at.time_zone or zone if entry.at is not None else zone
    said = messages if now is None else tuple(_dated(entry, message, now, zone) for message in messages)
    parts = parts_of(said, now)
    title = title_of(parts)
    title = f"[{safe.line(entry.cluster)}] {title}" if entry.cluster else title
    lines: list[str] = []
    for part in parts:
        alone = (part.below, ", ".join(part.names) if len(part.names) > 1 else "")
        lines += filter(None, alone if len(parts) == 1 else (part.line,))
        lines += [f"→ {part.remedy}"] if part.remedy else []
    if dropped:
        lines.append(_left_out(dropped))
    # The zone is named at the first moment of all.
    title, *lines = in_local_time("\n".join((title, *lines)), zone, now).split("\n")
    books = dict.fromkeys(one.runbook for one in parts if one.runbook)
    links = [*([("Page", entry.link)] if entry.link else []), *(("Runbook", url) for url in books)]
    return Delivery(
        entry.name,
        said,
        limits.text(title, _TITLE),
        tuple(lines),
        safe.line(entry.cluster),
        zone=zone,
        parts=parts,
        links=tuple(links),
        now=now,
    )


def _dated(entry: Notify, message: Message, now: datetime, zone: tzinfo) -> Message:
    """Return the message, with its own moment if it is late."""
    if shifted(ripe_at(entry, message, now, zone), _LATE) >= now:
        return message
    late = f" (this is from {to_text(message.at)}, and could not be sent before)"
    anyone = f"{message.anyone}{late}" if message.anyone else ""
    return replace(message, text=f"{message.text}{late}", anyone=anyone)


def letter_of(message: ProfileMessage, dropped: int) -> Delivery:
    """Return the delivery of a message of a workflow, after so many that were left out."""
    body = "\n".join((safe.lines(message.text), *([_left_out(dropped)] if dropped else [])))
    return Delivery(receiver_of(message.instance), (), safe.line(message.title), (), body=body)


def _left_out(count: int) -> str:
    return f"{count} earlier messages were left out, because they could not be sent."
