"""Which messages a pass adds: from its plan, the results of its actions, and what was said before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from msgspec import Struct, field

from reconciler.calendar.notice_times import Past, Periodic, Weekly, due
from reconciler.calendar.values import TimeOfDay
from reconciler.features.notices.facts import (
    ENDING,
    Fact,
    facts_of,
    kind_of,
    may_be_blocked,
    remedy,
    result_of,
)
from reconciler.features.notices.memory import (
    CASES,
    PENDING,
    SAID,
    TEXT,
    AlertCause,
    KnownCase,
    Memory,
    PendingMessage,
    Receiver,
    Week,
    is_workflow,
    seconds,
)
from reconciler.features.notices.messages import Message, Topic, mark_of
from reconciler.features.notices.settings import Notify
from reconciler.model import limits
from reconciler.model.case_outcome import CaseOutcome, CaseResult, InTime
from reconciler.model.instructions import ALL
from reconciler.model.moments import shifted, to_text
from reconciler.model.outcome import Outcome
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.problems import guarded
from reconciler.model.reconciler import FIND
from reconciler.model.values import replace

_KEPT_AT_THE_END = (Topic.DONE, Topic.MISSED, Topic.FAILED)
_LOST = "the case has ended, such as by `reconciler release`; no pass of this process saw how"
_DELETED = "the node was deleted"
_OF_CLUSTER = ""
"""What owners read about the whole cluster: no such message goes to them."""

_COME_BACK = ("ApprovalNeeded", "Held", "Blocked")
"""The keys of what ends within a case, and can come back."""


class Pass(Struct, frozen=True):
    """One pass: its plan, and the results of its actions by node."""

    plan: Plan
    outcomes: Mapping[str, Sequence[Outcome]]

    @staticmethod
    def of(plan: Plan, outcomes: Iterable[Outcome]) -> Pass:
        """Return the pass with these results."""
        by_node: dict[str, list[Outcome]] = {}
        for outcome in outcomes:
            by_node.setdefault(outcome.node, []).append(outcome)
        return Pass(plan, by_node)


class Policy(Struct, frozen=True):
    """The settings of a process: what each section says, short and without secrets, by its key.

    `mistake` is why newer settings can't be used, empty if there are none.
    """

    sections: Mapping[str, str] = field(default_factory=dict)
    mistake: str = ""


_VERSION = "the file"
"""Stands among the sections of the settings for the hash of their file."""

_SUMMARY_AT = TimeOfDay(8 * 60 * 60)
"""When the summary of a week is sent, on Mondays in the time zone of the settings."""

_RECONCILERS, _SETTINGS, _PEOPLE = "reconciler", "settings", "people"
"""The keys of what was said of the whole cluster, among the UIDs of nodes."""


def after_pass(
    memory: Memory, seen: Pass, entries: Sequence[Notify], now: datetime, policy: Policy | None = None
) -> Memory:
    """Return the memory with the messages of this pass. It is the same value if there is nothing new."""
    lock = seen.plan.reconciler
    origin = f"{lock.lock} {seconds(lock.since)}" if lock.since is not None else lock.lock
    news = _News(memory, entries, now, origin, seen.plan.settings.prefix)
    news.of_cluster(seen.plan, policy or Policy())
    for node in seen.plan.nodes:
        if node.uid:
            work = partial(news.add, node, seen.outcomes.get(node.node, ()), seen.plan)
            guarded(f"node {node.node}: there are no notices about it", work, None)
    for uid, known in memory.cases.items():
        if uid not in news.seen:
            news.gone(known, exists=uid in seen.plan.uids)
    news.remind()
    news.summary(seen.plan)
    return news.memory()


def is_for(entry: Notify, message: Message, audience: Sequence[str]) -> bool:
    """Whether an entry of `notify` gets a message with this audience."""
    kinds = not entry.kinds or not message.node or message.kind in entry.kinds
    return entry.name in audience and message.topic in entry.topics and kinds and not message.over


class _Reminder(Struct, frozen=True):
    """A reminder of what lasts `since` a moment (Unix time), and the entries that select its node."""

    message: Message
    audience: tuple[str, ...]
    since: int

    def is_sent(self, entry: Notify, now: datetime) -> bool:
        """Whether the entry gets the message, and the first one has not to wait any more."""
        first = entry.first_at(self.message, datetime.fromtimestamp(self.since, UTC))
        return first <= now and is_for(entry, self.message, self.audience)


class _News:
    """Collects what changes in the memory with one pass."""

    def __init__(
        self, memory: Memory, entries: Sequence[Notify], now: datetime, origin: str, prefix: str
    ) -> None:
        self._before, self._entries, self._now = memory, entries, now.replace(microsecond=0)
        self._origin, self._prefix = origin, prefix
        self._plans: dict[str, NodePlan] = {}
        self._week = memory.week
        self._cases: dict[str, KnownCase] = {}
        self._messages: list[tuple[Message, tuple[str, ...]]] = []
        self._lasting: list[_Reminder] = []
        self._over: set[tuple[str, str]] = set()
        self._closed: set[tuple[str, str]] = set()
        self._ended: set[str] = set()
        self.seen: set[str] = set()

    def add(self, node: NodePlan, outcomes: Sequence[Outcome], plan: Plan) -> None:
        """Add what there is to say about a node."""
        before = self._before.cases.get(node.uid)
        said = before.said if before is not None else {}
        facts = facts_of(node, outcomes, said, self._now)
        unwritten = any(outcome.notable for outcome in outcomes)
        known = self._known(node, plan, before)
        # What was said stays said while the node can't be read or written.
        if not facts and not known.open and (before is None or not (unwritten or node.unknowns)):
            return
        self.seen.add(node.uid)
        self._plans[node.node] = node
        known = self._say(known, facts)

        # What is over is said again when it comes back.
        over = [key for key in _COME_BACK if key in known.said and key not in facts and not unwritten]
        if may_be_blocked(node):
            over = [key for key in over if key != "Blocked"]
        self._over |= {(known.case, self._key(known, key)) for key in over}
        if over:
            known = replace(known, said={key: at for key, at in known.said.items() if key not in over})
        if not unwritten:
            self._close(known, facts)

        if ENDING in facts:
            self._ended.add(known.case)
            if node.outcome is not None:
                self._count(node.outcome.result.in_time)
            kept = {key: at for key, at in known.said.items() if key in facts and key.startswith("Received ")}
            # An event that is still reported was said, and needs no second message.
            if kept:
                self._cases[node.uid] = replace(
                    known, case=_case_of(node.uid, self._now), said=kept, open=False, alerted={}, result=""
                )
            return
        self._cases[node.uid] = known

    def of_cluster(self, plan: Plan, policy: Policy) -> None:
        """Add what there is to say about the whole cluster."""
        reconciler, fact, key = plan.reconciler, None, ""
        if reconciler.others:
            text = f"another reconciler acts on the same nodes: {reconciler.beside}. Find both: {FIND}"
            fact = Fact(Topic.TWO_RECONCILERS, text, _OF_CLUSTER, cause="two reconcilers")
            key = f"{fact.topic} {' '.join(reconciler.others)}"
        over = "no other reconciler acts on the same nodes any more"
        self._while(_RECONCILERS, reconciler.lock, key, fact, over)
        fact, key = None, ""
        if policy.mistake:
            text = limits.text(f"passes go on with the last good settings: {policy.mistake}", TEXT)
            fact = Fact(Topic.SETTINGS_REJECTED, text, _OF_CLUSTER, cause="settings rejected")
            key = f"{fact.topic} {mark_of(policy.mistake)}"
        self._while(_SETTINGS, reconciler.lock, key, fact, "the newest settings are in use again")
        self._people(plan, policy)

    def summary(self, plan: Plan) -> None:
        """Add the summary of a week, if it is due and somebody gets it."""
        if not any(Topic.SUMMARY in entry.topics for entry in self._entries):
            self._week = None
            return
        if self._week is None:
            self._week = Week(self._now)
        mondays = Weekly(_SUMMARY_AT, frozenset({0}), ZoneInfo(plan.settings.time_zone))
        if mondays.first_from(shifted(self._week.since, timedelta(seconds=1))) > self._now:
            return
        ended, since = self._week.ended, f"since {to_text(self._week.since)}"
        in_time, late, unknown = (ended.get(each, 0) for each in (InTime.YES, InTime.NO, InTime.UNKNOWN))
        text = f"no maintenance of a node has ended {since}; nodes that are managed: {plan.managed}"
        if in_time + late + unknown:
            rest = f"; called off, or not known: {unknown}" if unknown else ""
            text = f"drained before the platform struck: {in_time} of {in_time + late} {since}{rest}"
        known = self._of_all(_PEOPLE, plan.reconciler.lock)
        key = f"{Topic.SUMMARY} {seconds(self._now)}"
        self._messages.append((self._message(known, key, Fact(Topic.SUMMARY, text, "")), known.audience))
        self._week = Week(self._now)

    def _count(self, in_time: InTime) -> None:
        """Count a case that has ended."""
        self._week = self._week.with_end(in_time) if self._week is not None else None

    def _while(self, uid: str, lock: str, key: str, fact: Fact | None, over: str) -> None:
        """Add what is true of the whole cluster now, or that it is true no more."""
        self.seen.add(uid)
        before = self._before.cases.get(uid)
        if fact is None:
            if before is not None:
                done = Fact(Topic.DONE, over, _OF_CLUSTER)
                self._messages.append((self._message(before, ENDING, done), before.audience))
                self._ended.add(before.case)
            return
        self._cases[uid] = self._say(self._of_all(uid, lock), {key: fact})
        self._close(self._cases[uid], {key: fact})

    def _of_all(self, uid: str, lock: str) -> KnownCase:
        """Return what is known of the whole cluster. It concerns each entry, whichever nodes that selects."""
        audience = tuple(entry.name for entry in self._entries)
        before = self._before.cases.get(uid)
        if before is None:
            return KnownCase(node="", case=_case_of(f"{uid} {lock}", self._now), audience=audience)
        return replace(before, audience=audience)

    def _people(self, plan: Plan, policy: Policy) -> None:
        """Add what people have said of all nodes or of a pool, and that they have changed the settings."""
        self.seen.add(_PEOPLE)
        known = self._of_all(_PEOPLE, plan.reconciler.lock)
        said = known.said
        holds = {
            f"hold {hold.word.scope}|{hold.stops} {mark_of(str(hold.word))}": hold for hold in plan.holds
        }
        sections = {f"settings {key}|{value}" for key, value in policy.sections.items()}
        before_now = {key for key in said if key.startswith("settings ")}
        version = plan.settings.version
        # Without them, this process does not know yet what they are.
        sections = {*sections, f"settings {_VERSION}|{version.hash}"} if sections and version else before_now
        now = {*holds, *sections}

        texts = []
        for hold in (hold for key, hold in holds.items() if key not in said):
            held = [node for node in plan.nodes if node.status.instructions.hold == hold]
            stopped = sum(node.schedule is not None and bool(node.schedule.stopped) for node in held)
            missed = sum(node.schedule is not None and node.schedule.missed for node in held)
            drains = limits.count_of(stopped, "drain", "are") if stopped else "no drains are"
            stops = f", and {drains} stopped" if hold.stops else ""
            late = f"; {limits.count_of(missed, 'node')} will not be drained in time" if missed else ""
            texts.append(f"{hold.words('')}; no drain starts{stops}{late}")
        scopes = {hold.word.scope for hold in plan.holds}
        for key in said:
            scope = key.removeprefix("hold ").partition("|")[0]
            if key.startswith("hold ") and key not in now and scope not in scopes:
                nodes = "all nodes" if scope == ALL else scope
                texts.append(f"the hold of {nodes} has ended, so drains start again")

        changed = {key.removeprefix("settings ").partition("|")[0] for key in before_now ^ sections}
        # A newer program knows other sections of the same file, and a comment changes none of them.
        if before_now and _VERSION in changed and len(changed) > 1:
            named = sorted(changed - {_VERSION})
            shown = [f"{name} (now {plan.mode})" if name == "mode" else name for name in named]
            which = f" to {version.hash}" if version is not None else ""
            lost = f"; {'; '.join(plan.reconciler.lost)}" if plan.reconciler.lost else ""
            texts.append(f"the settings changed{which}: {', '.join(shown)}{lost}")

        known = replace(known, said={key: said.get(key, seconds(self._now)) for key in sorted(now)})
        for text in texts:
            fact = Fact(Topic.PERSON, limits.text(text, TEXT), _OF_CLUSTER)
            key = f"Person {mark_of(text)} {seconds(self._now)}"
            self._messages.append((self._message(known, key, fact), known.audience))
        if now:
            self._cases[_PEOPLE] = known

    def gone(self, known: KnownCase, *, exists: bool) -> None:
        """Add the end of a case that the plan does not have any more."""
        if known.open:
            stopped = "" if exists else CaseOutcome(CaseResult.STOPPED).words
            parts = (known.result or stopped, _LOST if exists else _DELETED)
            anyone = "the case has ended" if exists else _DELETED
            fact = Fact(Topic.DONE, "; ".join(part for part in parts if part), anyone)
            self._messages.append((self._message(known, ENDING, fact), known.audience))
            self._count(known.in_time)
        self._over |= {(known.case, self._key(known, key)) for key in _COME_BACK}
        self._ended.add(known.case)

    def remind(self) -> None:
        """Add the reminders that are due."""
        self._receivers = dict(self._before.receivers)
        for entry in self._entries:
            if entry.every is None:
                continue
            receiver = self._before.receiver(entry.name)
            lasting = [reminder for reminder in self._lasting if reminder.is_sent(entry, self._now)]
            if not lasting:
                reminded = None
            elif receiver.reminded is None:
                reminded = self._now  # They are sent for the first time, or were by an earlier pass.
            elif due(Periodic(entry.every), self._now, Past(last=receiver.reminded)):
                reminded = self._now
                # What has come since the last reminders is sent for the first time about now.
                for reminder in lasting:
                    if reminder.is_sent(entry, receiver.reminded):
                        key = f"{reminder.message.key} {seconds(self._now)}"
                        again = replace(self._with_remedy(reminder.message), key=key)
                        self._messages.append((again, (entry.name,)))
            else:
                reminded = receiver.reminded
            if reminded != receiver.reminded:
                self._receivers[entry.name] = replace(receiver, reminded=reminded)

    def memory(self) -> Memory:
        """Return the memory after the pass."""
        by_name = {entry.name: entry for entry in self._entries}
        pending = [kept for waits in self._before.pending if (kept := self._kept(waits)) is not None]
        alerted, added = self._alerts()
        pending += added
        receivers = {
            name: receiver
            for name, receiver in self._receivers.items()
            if (name in by_name or is_workflow(name)) and receiver != Receiver()
        }
        # An end that nobody hears of would leave an alert open.
        first = sorted(range(len(pending)), key=lambda index: pending[index].message.over)
        left_out = set(first[: max(len(pending) - PENDING, 0)])
        for index in left_out:
            for name in pending[index].to:
                before = receivers.get(name, self._before.receiver(name))
                receivers[name] = replace(before, dropped=before.dropped + 1)
        waiting = tuple(message for index, message in enumerate(pending) if index not in left_out)
        cases = {
            uid: replace(known, alerted=alerted.get(known.case, {}))
            for uid, known in list(self._cases.items())[:CASES]
        }
        after = replace(self._before, cases=cases, pending=waiting, receivers=receivers, week=self._week)
        return self._before if after == self._before else after

    def _alerts(self) -> tuple[dict[str, dict[str, AlertCause]], list[PendingMessage]]:
        """Return what may have opened an alert, by case and message, and who gets the messages of this pass.

        All cases with the same cause have one alert. It is closed when the last of them has ended, and opened
        again when it gets worse, so that people are called again.
        """
        alarms = {entry.name for entry in self._entries if entry.pagerduty is not None}
        before = {known.case: known for known in self._before.cases.values()}
        alerted: dict[str, dict[str, AlertCause]] = {}
        closed: list[tuple[KnownCase, AlertCause]] = []
        open_now: dict[tuple[str, str], list[AlertCause]] = {}

        def opened(case: str, key: str, alert: AlertCause) -> None:
            alerted.setdefault(case, {})[key] = alert
            for name in alert.to:
                open_now.setdefault((name, alert.cause or case), []).append(alert)

        for case, known in before.items():
            for key, alert in known.alerted.items():
                if case in self._ended or (case, key) in self._closed:
                    # Only a person closes an alert about a miss.
                    closed += [(known, alert)] if alert.topic is not Topic.MISSED else []
                else:
                    opened(case, key, alert)
        added: list[PendingMessage] = []
        for message, audience in self._messages:
            to = tuple(entry.name for entry in self._entries if is_for(entry, message, audience))
            if message.case in self._ended and message.topic is not Topic.MISSED:
                to = tuple(name for name in to if name not in alarms)
            worse = [name for name in to if name in alarms and self._is_worse(message, open_now, name)]
            added += [self._end_of(message, tuple(worse))] if worse else []
            added += [PendingMessage(message, to)] if to else []
            calls = tuple(name for name in to if name in alarms)
            if calls and not message.repeats:
                opened(message.case, message.key, AlertCause(message.topic, message.cause, calls))
        ends = []
        for known, alert in closed:
            fact = Fact(alert.topic, "", "", cause=alert.cause)
            message = self._message(known, f"{alert.topic} {seconds(self._now)}", fact)
            to = tuple(name for name in alert.to if name in alarms and (name, message.alert) not in open_now)
            for name in to:
                open_now[name, message.alert] = []  # One message closes it.
            ends += [self._end_of(message, to)] if to else []
        return alerted, [*ends, *added]

    @staticmethod
    def _is_worse(message: Message, open_now: Mapping[tuple[str, str], list[AlertCause]], name: str) -> bool:
        """Whether the alert about its cause is open, and was opened about nothing that is as bad."""
        alerts = open_now.get((name, message.alert), [])
        return bool(alerts) and all(message.topic.severity.exceeds(alert.topic.severity) for alert in alerts)

    @staticmethod
    def _end_of(message: Message, to: tuple[str, ...]) -> PendingMessage:
        """Return the message that closes the alert of a message."""
        over = replace(message, key=f"over {message.key}", text="", over=True, anyone="", named=())
        return PendingMessage(over, to)

    def _close(self, known: KnownCase, facts: Mapping[str, Fact]) -> None:
        """Note which alerts are about a state that has ended."""
        lasting = {self._key(known, key) for key, fact in facts.items() if fact.lasts}
        lasting |= {self._key(known, key) for key in _COME_BACK if key in known.said}
        over = (key for key, alert in known.alerted.items() if alert.topic.lasts and key not in lasting)
        self._closed |= {(known.case, key) for key in over}

    def _say(self, known: KnownCase, facts: Mapping[str, Fact]) -> KnownCase:
        """Add the messages of what was not said before, and return what was said then."""
        for key, fact in facts.items():
            since = known.said.get(key, seconds(self._now))
            message = self._message(known, key, fact)
            if fact.lasts:
                self._lasting.append(_Reminder(replace(message, repeats=True), known.audience, since))
            if key not in known.said and (len(known.said) < SAID or key == ENDING):
                audience = known.audience
                if fact.takes_back:
                    # Who did not get the other message needs none that takes it back.
                    first = (known.case, fact.takes_back)
                    self._over.add(first)
                    waiting: set[str] = set()
                    for pending in self._before.pending:
                        if (pending.message.case, pending.message.key) == first:
                            waiting.update(pending.to)
                    audience = tuple(name for name in audience if name not in waiting)
                self._messages.append((self._with_remedy(message), audience))
                known = replace(known, said={**known.said, key: seconds(self._now)})
        return known

    def _kept(self, pending: PendingMessage) -> PendingMessage | None:
        """Return what is still to be sent of a message, None if that is nothing.

        After the end of its case, no reminder is sent, and an entry that waits for messages, or can't be
        reached, gets only what stays true.
        """
        message = pending.message
        key = message.key.rpartition(" ")[0] if message.repeats else message.key
        if (message.case, key) in self._over or (message.repeats and message.case in self._ended):
            return None
        names = {entry.name for entry in self._entries}
        if message.over:
            to = tuple(name for name in pending.to if name in names)
            return PendingMessage(message, to) if to else None
        closed = (message.case, key) in self._closed or message.case in self._ended
        if closed and message.topic is not Topic.MISSED:
            # It would open an alert that is closed a moment later.
            names -= {entry.name for entry in self._entries if entry.pagerduty is not None}
        if message.case in self._ended and message.topic not in _KEPT_AT_THE_END:
            names -= {
                entry.name
                for entry in self._entries
                if entry.after or self._before.receiver(entry.name).problem
            }
        to = tuple(name for name in pending.to if name in names)
        return (pending if to == pending.to else PendingMessage(message, to)) if to else None

    def _known(self, node: NodePlan, plan: Plan, before: KnownCase | None) -> KnownCase:
        labels = plan.labels.get(node.node)
        record = node.ended or node.record
        is_open = record is not None and record.goes_on
        opened = self._now
        if record is not None and is_open:
            opened = record.facts.announced or record.since or opened
        audience = before.audience if before is not None else ()
        if labels is not None:
            audience = tuple(entry.name for entry in self._entries if entry.node_selector.matches(labels))
        result, in_time = result_of(record) if record is not None and is_open else ("", InTime.UNKNOWN)
        return KnownCase(
            node=node.node,
            case=before.case if before is not None else _case_of(node.uid, opened),
            audience=audience,
            said=before.said if before is not None else {},
            open=is_open,
            kind=kind_of(node) or (before.kind if before is not None else ""),
            pool=node.pool,
            zone=node.zone,
            namespaces=before.namespaces if before is not None else (),
            alerted=before.alerted if before is not None else {},
            result=result,
            in_time=in_time,
        )

    def _message(self, known: KnownCase, key: str, fact: Fact) -> Message:
        for_owners = any(entry.to is not None for entry in self._entries)
        return Message(
            topic=fact.topic,
            node=known.node,
            case=known.case,
            key=self._key(known, key),
            at=self._now,
            text=fact.text,
            kind=known.kind,
            pool=known.pool,
            zone=known.zone,
            namespaces=known.namespaces,
            anyone=fact.anyone if for_owners else "",
            named=fact.named if for_owners else (),
            cause=fact.cause,
            origin=self._origin,
            by=fact.by,
            took=fact.took,
        )

    def _with_remedy(self, message: Message) -> Message:
        node = self._plans.get(message.node)
        if node is None or not message.topic.bad:
            return message
        return replace(message, remedy=remedy(node, message.topic, self._prefix))

    def _key(self, known: KnownCase, key: str) -> str:
        """Return the key of a message: what can come back has the moment at which it came."""
        if key not in _COME_BACK:
            return key
        return f"{key} {known.said.get(key, seconds(self._now))}"


def _case_of(uid: str, opened: datetime) -> str:
    return f"{uid}@{seconds(opened)}"
