"""Which notifications of a node's profiles are due, and their messages.

Each state of a profile names notifications. The time at which one was last sent is in the data of the node,
by the name of the instance, so profiles that name the same instance share it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from reconciler.calendar.notice_times import Past, Periodic, Schedule, due, next_due
from reconciler.features.workflows.data import ProfileData, WorkflowData
from reconciler.features.workflows.go_templates import (
    About,
    Escape,
    Fields,
    TemplateRefused,
    indexed,
    message_fields,
    rendered,
    rendered_by_lines,
)
from reconciler.features.workflows.situation import WorkflowSituation
from reconciler.model import limits
from reconciler.model.messages import LONGEST, ProfileMessage
from reconciler.model.moments import shifted, to_text
from reconciler.model.problems import guarded
from reconciler.model.record import State
from reconciler.model.values import replace

_SECOND = timedelta(seconds=1)


class Notification(Struct, frozen=True):
    """An instance of a notification: its templates, and when it is sent.

    `escape` is called with each value that a template inserts.
    """

    name: str
    schedule: Schedule
    text: str
    title: str = ""
    escape: Escape = str

    def reads(self, what: str) -> frozenset[str]:
        """Return the keys of the node's `Labels` or `Annotations` that the templates insert."""
        return frozenset[str]().union(
            *(
                indexed(text, "Node", *way, what)
                for text in (self.text, self.title, *self.text.splitlines())
                for way in ((), ("ObjectMeta",))
            )
        )

    def made(self, fields: Fields, facts: str) -> tuple[str, str]:
        """Return the title and the text. A template that fails makes the facts, the reason, and its lines."""
        try:
            title = limits.text(rendered(self.title, fields, self.escape), limits.TEXT)
            # No receiver takes a message without a text.
            return title, rendered(self.text, fields, self.escape).strip() or self.escape(facts)
        except TemplateRefused as error:
            facts = self.escape(f"{facts}\nThe template of {self.name} can't be rendered: {error}")
            lines = rendered_by_lines(self.text, fields, self.escape)
            told = limits.text(f"{facts}\nIts lines:\n{lines}", LONGEST)
            return self.escape(f"Notification {self.name}") if self.title else "", told


class Told(Struct, frozen=True):
    """What a node's notifications do in a pass: the data with what is sent now, and the messages.

    `next` is when the next one is due if the node stays as it is (UTC), None if none will be.
    """

    data: WorkflowData
    messages: tuple[ProfileMessage, ...] = ()
    next: datetime | None = None


def notified(named: Iterable[tuple[str, tuple[Notification, ...]]], situation: WorkflowSituation) -> Told:
    """Return what is sent now, and when the next message is due.

    `named` are the profiles of the node, each with the notifications of its state. `situation` has the node
    and its data as this pass found them: a message is about the state before this pass.
    """
    messages: list[ProfileMessage] = []
    ahead: list[datetime] = []
    before, sent = situation.data.notifications, dict(situation.data.notifications)
    for profile, notifications in named:
        kept = situation.data.profiles[profile]
        for one in notifications:
            past = _past(one.schedule, kept, before.get(one.name), sent.get(one.name))
            if due(one.schedule, situation.now, past):
                message, _ = guarded(
                    f"node {situation.node.name}: the notification {one.name} has no text",
                    partial(_message, one, profile, situation),
                    None,
                )
                messages += [message] if message is not None else []
                sent[one.name] = situation.now.replace(microsecond=0)
                past = replace(past, last=sent[one.name])
            moment = next_due(one.schedule, situation.now, past)
            ahead += [moment] if moment is not None and moment > situation.now else []
    if not messages:
        return Told(situation.data, next=min(ahead, default=None))
    # Names of instances that the settings do not have any more would add up.
    newest = sorted(sent.items(), key=lambda item: item[1], reverse=True)[: limits.ENTRIES]
    data = replace(situation.data, notifications=dict(newest))
    return Told(data, tuple(messages), min(ahead, default=None))


def after_sent(data: WorkflowData, moment: datetime) -> datetime:
    """Return when a change at this moment (UTC, whole seconds) happens: after every notification before it.

    Otherwise one that was sent in the same second would count as sent about the new state.
    """
    return shifted(moment, _SECOND) if moment in data.notifications.values() else moment


def _past(schedule: Schedule, kept: ProfileData, before: datetime | None, last: datetime | None) -> Past:
    """Return what came before, for the schedule of a notification.

    `before` is when it was last sent before this pass. In this pass another profile may have sent it: `last`
    has that, too. A change is said for each profile, and what only repeats is said once.
    """
    # A profile that is new on its node is operational, and has not changed.
    unchanged = kept.current is State.OPERATIONAL and kept.previous is State.OPERATIONAL
    changed = None if unchanged and isinstance(schedule, Periodic) else kept.transition
    past = Past(before, changed, at_rest=kept.current is State.OPERATIONAL)
    return past if past.has_news else replace(past, last=last)


def _message(one: Notification, profile: str, situation: WorkflowSituation) -> ProfileMessage:
    kept = situation.data.profiles[profile]
    profiles = situation.data.profiles
    about = About(
        profile,
        kept.current.value,
        kept.transition,
        last=max(profiles, key=lambda name: (profiles[name].transition, name == profile)),
        in_maintenance=any(each.current is State.IN_MAINTENANCE for each in profiles.values()),
        log_details=situation.node.labels.get(situation.keys.log_details) == "true",
    )
    since = to_text(kept.transition)
    facts = f"Node {situation.node.name} is in the state {kept.current} of profile {profile} since {since}."
    title, text = one.made(message_fields(situation.node, about), facts)
    last = situation.data.notifications.get(one.name)
    # While the node can't be written, each pass finds the same message.
    identity = (
        situation.node.uid,
        one.name,
        profile,
        kept.current.value,
        since,
        to_text(last) if last else "",
    )
    hashed = hashlib.sha256("\0".join(identity).encode("utf-8", "replace")).hexdigest()[:24]
    return ProfileMessage(
        hashed, one.name, situation.node.name, situation.now.replace(microsecond=0), text, title
    )
