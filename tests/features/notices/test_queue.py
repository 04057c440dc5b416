"""The queue sends off the pass's path: at least once, over processes, and each receiver on its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest

from reconciler.features.notices import memory
from reconciler.features.notices import queue as queues
from reconciler.features.notices.deliveries import Delivery
from reconciler.features.notices.memory import Memory
from reconciler.features.notices.messages import Message, Topic
from reconciler.features.notices.owners import Namespace
from reconciler.features.notices.queue import NoticeQueue
from reconciler.features.notices.receivers import QueuePorts
from reconciler.features.notices.settings import Notify
from reconciler.features.notices.silences import WantedSilences
from reconciler.features.notices.transports.sending import NotSent, Transport
from reconciler.model.errors import Forbidden, LockLost, Unreachable
from reconciler.model.messages import MessageReceiver, ProfileMessage
from reconciler.model.plan import Notice, Plan
from reconciler.settings.load import parse_settings
from tests.features.notices.following import asking, entries, message, told
from tests.support import builders
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.clock import SystemClock
from tests.support.fakes.threads import Once, refused
from tests.support.worlds import carry_on, look

HOOK = "webhook: {url: 'http://127.0.0.1:1/'}, group: 0s"
ONE = f"notify: [{{name: all, {HOOK}}}]"
TWO = f"notify: [{{name: hangs, {HOOK}}}, {{name: all, {HOOK}}}]"
UTC = ZoneInfo("UTC")
NOW = datetime.now(UTC)


@dataclass
class Remembered:
    """A ConfigMap with the memory."""

    text: str = ""
    saves: list[str] = field(default_factory=list)
    latency: float = 0.0
    error: Exception | None = None

    def load(self) -> str:
        if self.error is not None:
            raise self.error
        return self.text

    def save(self, text: str) -> None:
        threading.Event().wait(self.latency)
        if self.error is not None:
            raise self.error
        self.text = text
        self.saves.append(text)

    @property
    def memory(self) -> Memory:
        return memory.from_text(self.text)


class Hurrying(SystemClock):
    """A clock of which each wait is over at once."""

    def __init__(self) -> None:
        super().__init__()
        self._ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self._ahead

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        self._ahead += timedelta(seconds=timeout or 0.0)
        super().wait(condition, 0.001)


@dataclass
class Sending:
    """A transport that records what it sends, and when it tried; `fails` are the errors of the next tries."""

    store: Remembered
    clock: SystemClock
    tried: list[datetime] = field(default_factory=list)
    sent: list[Delivery] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)
    blocks: threading.Event | None = None
    saved_before: list[bool] = field(default_factory=list)
    refuses: str = ""

    def send(self, delivery: Delivery) -> str:
        self.tried.append(self.clock.now())
        if self.blocks is not None:
            self.blocks.wait(10)
        if self.fails:
            raise self.fails.pop(0)
        if delivery.recipient == self.refuses != "":
            raise NotSent("channel_not_found", refused=True)
        ids = {one.message.id for one in self.store.memory.pending}
        self.saved_before.append(delivery.ids <= ids)
        self.sent.append(delivery)
        return ""


@dataclass
class Letters:
    """What sends the messages of one instance of a workflow."""

    store: Remembered
    texts: list[str] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)
    fails_at: int | None = None
    saved_before: list[bool] = field(default_factory=list)

    def send(self, delivery: Delivery) -> str:
        if self.fails:
            raise self.fails.pop(0)
        if len(self.texts) == self.fails_at:
            raise NotSent("no answer in time")
        self.saved_before.append(delivery.text in {each.text for each in self.store.memory.workflow})
        self.texts.append(delivery.text)
        return ""


@dataclass
class Keeping:
    """Silences that remember what was wanted; `fails` are the errors of the next tries."""

    wanted: list[WantedSilences] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)

    def keep(self, wanted: WantedSilences, now: datetime) -> None:
        del now
        self.wanted.append(wanted)
        if self.fails:
            raise self.fails.pop(0)


@dataclass
class Pods:
    """Pods of these namespaces on every node, until they are gone."""

    gone: bool = False
    of: dict[str, Namespace] = field(
        default_factory=lambda: {"shop": Namespace(labels={"channel": "shop-alerts"})}
    )

    def pods(self, messages: Iterable[Message]) -> dict[str, tuple[str, ...]]:
        return {one.case: one.namespaces or (() if self.gone else tuple(self.of)) for one in messages}

    def namespaces(self) -> dict[str, Namespace]:
        return self.of


@dataclass
class Counted:
    """What metrics get: attempts by transport and whether they were sent, and the messages that wait."""

    attempts: list[tuple[str, bool]] = field(default_factory=list)
    waited: list[int | None] = field(default_factory=list)

    def notice(self, transport: str, *, sent: bool) -> None:
        self.attempts.append((transport, sent))

    def waiting(self, messages: int | None) -> None:
        self.waited.append(messages)


@dataclass
class People:
    """A queue with a transport for each name, which ends with its test."""

    store: Remembered = field(default_factory=Remembered)
    transports: dict[str, Sending] = field(default_factory=dict)
    warned: list[Notice] = field(default_factory=list)
    silences: Keeping = field(default_factory=Keeping)
    pods_of: Pods = field(default_factory=Pods)
    counted: Counted = field(default_factory=Counted)
    clock: SystemClock = field(default_factory=SystemClock)
    lost: bool = False
    instances: tuple[MessageReceiver, ...] = ()
    senders: dict[str, Letters] = field(default_factory=dict)
    queues: list[NoticeQueue] = field(default_factory=list)

    def guard(self) -> None:
        if self.lost:
            raise LockLost("not renewed")

    def make(self, receiver: Notify | MessageReceiver) -> Transport:
        return (
            self.letters(receiver.name) if isinstance(receiver, MessageReceiver) else self.to(receiver.name)
        )

    def to(self, name: str) -> Sending:
        return self.transports.setdefault(name, Sending(self.store, self.clock))

    def letters(self, name: str = "tell") -> Letters:
        return self.senders.setdefault(name, Letters(self.store))

    def queue(self, text: str = ONE) -> NoticeQueue:
        around = QueuePorts(
            store=self.store,
            clock=self.clock,
            guard=self.guard,
            make=self.make,
            silences=lambda _: self.silences,
            warn=self.warned.append,
            concerned=self.pods_of,
            counted=self.counted,
        )
        made = NoticeQueue(around)
        made.start(entries(text), UTC, self.instances)
        self.queues.append(made)
        return made

    def remember(self, *nodes: str, to: str = "all") -> None:
        known = told(*(message(Topic.STARTED, node, NOW) for node in nodes), to=to)
        self.store.text = memory.to_text(known)

    def has_sent(self, count: int) -> bool:
        return len(self.to("all").sent) >= count

    def wait(self, condition: Callable[[], bool]) -> None:
        wait_for("work of the queue", condition)


@pytest.fixture
def people() -> Iterator[People]:
    made = People()
    yield made
    for transport in made.transports.values():
        if transport.blocks is not None:
            transport.blocks.set()
    for queue in made.queues:
        queue.close(5)


@pytest.fixture
def workflows(people: People) -> People:
    """The same with two instances of workflows, and no entry of `notify`."""
    slack = "type: slack, config: {hook: 'http://127.0.0.1:1/', channel: c, message: m}"
    text = f"instances: {{notify: [{{name: tell, {slack}}}, {{name: other, {slack}}}]}}"
    people.instances = parse_settings(text, "x.yaml").receivers
    return people


def a_pass(now: datetime | None = None) -> Plan:
    return Plan(now=now or datetime.now(UTC), mode="Enforce")


def threads() -> list[str]:
    """The threads of queues that run."""
    return [one.name for one in threading.enumerate() if one.name == "notices"]


def test_what_another_process_left_is_sent_and_then_forgotten(people: People) -> None:
    people.remember("a", "b")
    people.queue().close(5)

    (delivery,) = people.to("all").sent
    assert [one.node for one in delivery.messages] == ["a", "b"]
    assert people.store.memory == Memory()


def test_attempts_are_counted_by_transport_and_messages_while_they_wait(people: People) -> None:
    people.to("all").fails.append(NotSent("no answer in time"))
    people.remember("a", "b")
    queue = people.queue()
    people.wait(lambda: bool(people.counted.attempts))
    queue.close(5)
    people.queue().close(5)

    assert people.counted.attempts == [("webhook", False), ("webhook", True)]
    assert people.counted.waited[0] == 2
    assert people.counted.waited[-1] == 0


def test_the_messages_of_a_pass_are_remembered_before_they_are_sent(people: People) -> None:
    plan, outcomes = look(asking("a"), builders.settings(ONE))
    queue = people.queue()
    queue.after(plan, outcomes, plan.now)
    people.wait(lambda: bool(people.to("all").sent))

    assert people.to("all").saved_before == [True]
    assert people.store.saves


def test_a_receiver_that_hangs_costs_neither_a_pass_nor_the_others_anything(people: People) -> None:
    people.to("hangs").blocks = answers = threading.Event()
    known = told(message(at=NOW), to="hangs")
    both = told(message(at=NOW), to="all")
    people.store.text = memory.to_text(Memory(pending=(*known.pending, *both.pending)))
    queue = people.queue(TWO)
    people.wait(lambda: bool(people.to("all").sent))

    assert queue.after(a_pass(), (), NOW) == ()
    assert people.to("hangs").sent == []
    answers.set()
    people.wait(lambda: bool(people.to("hangs").sent))


def test_the_end_of_a_process_waits_only_so_long_for_a_receiver(people: People) -> None:
    people.to("all").blocks = threading.Event()
    people.remember("a")
    queue = people.queue()
    queue.close(0.05)

    assert people.to("all").sent == []
    assert [one.message.node for one in people.store.memory.pending] == ["a"]


def test_a_failure_is_reported_once_and_in_each_note_until_it_ends(
    people: People, caplog: pytest.LogCaptureFixture
) -> None:
    people.to("all").fails = [NotSent("no answer in time")] * 2
    people.remember("a")
    queue = people.queue()
    people.wait(lambda: bool(people.warned))
    (note,) = queue.after(a_pass(), (), NOW)

    assert note.startswith("notices to all fail since ")
    assert note.endswith(": no answer in time; 1 message waits")
    assert [(one.reason, one.message) for one in people.warned] == [
        ("NoticesNotSent", "notices to all can't be sent: no answer in time")
    ]
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == [
        "notices can't be sent: to=all error=no answer in time"
    ]
    people.wait(lambda: bool(people.store.memory.receiver("all").problem))
    # The next process knows that it was reported.
    queue.close(5)
    again = people.queue()
    people.wait(lambda: not people.to("all").fails)
    again.close(5)
    assert len(people.warned) == 1


def test_after_a_failure_it_is_tried_again_with_a_pause(people: People) -> None:
    people.to("all").fails = [NotSent("no answer in time")]
    people.remember("a")
    queue = people.queue()
    people.wait(lambda: bool(people.store.memory.receiver("all").problem))
    assert people.to("all").sent == []
    # The next process begins without a pause.
    queue.close(5)
    people.queue()
    people.wait(lambda: bool(people.to("all").sent))


def test_an_error_in_a_transport_harms_its_receiver_only_and_shows_no_text(
    people: People, caplog: pytest.LogCaptureFixture
) -> None:
    people.to("all").fails = [KeyError("https://hooks.example/SECRET")]
    people.remember("a")
    queue = people.queue()
    people.wait(lambda: bool(people.warned))

    assert "SECRET" not in caplog.text + people.warned[0].message + str(queue.after(a_pass(), (), NOW))


def test_without_the_lock_nothing_is_sent(people: People) -> None:
    people.lost = True
    people.remember("a")
    queue = people.queue()
    queue.close(5)

    assert people.to("all").sent == []
    assert [one.message.node for one in people.store.memory.pending] == ["a"]
    assert threads() == []


def test_messages_whose_threads_can_not_start_are_sent_a_little_later(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "FIRST_PAUSE", timedelta(0))
    people.remember("a")
    refuses = Once("notices", "notices-*")
    with refused(refuses):
        queue = people.queue()
        assert queue.after(a_pass(), (), NOW) != ()
        queue.start(entries(ONE), UTC)
        people.wait(lambda: people.has_sent(1))

    assert refuses.left == []
    assert people.warned == [], "the receiver has done nothing wrong"


def test_a_queue_that_has_ended_with_an_error_begins_again_with_the_next_pass(people: People) -> None:
    people.store.error = ZeroDivisionError("a bug")
    queue = people.queue()
    wait_for("the end of the queue", lambda: threads() == [])
    people.store.error = None
    people.remember("a")
    queue.start(entries(ONE), UTC)

    people.wait(lambda: people.has_sent(1))


def test_a_memory_that_can_not_be_written_keeps_nobody_from_being_told(people: People) -> None:
    people.remember("a")
    queue = people.queue()
    people.store.error = None
    people.wait(lambda: bool(people.to("all").sent))
    people.store.error = Forbidden("no patch of configmaps")
    plan, outcomes = look(asking("b"), builders.settings(ONE))
    queue.after(plan, outcomes, plan.now)
    people.wait(lambda: len(people.to("all").sent) > 1)

    assert queue.after(plan, outcomes, plan.now) == (
        "notices: what was sent can't be remembered: no patch of configmaps",
    )


def test_until_the_memory_is_read_a_pass_adds_nothing(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.features.notices.queue.LOAD_PATIENCE", 0.05)
    people.store.error = Unreachable("no answer")
    queue = people.queue()

    assert queue.after(a_pass(), (), NOW) == (
        "notices: what was sent before can't be read now, so nothing new is sent",
    )


def test_a_broken_memory_is_begun_again(people: People, caplog: pytest.LogCaptureFixture) -> None:
    people.store.text = "{"
    queue = people.queue()

    assert queue.after(a_pass(), (), NOW) == ()
    assert "begun again" in caplog.text


def test_without_receivers_there_is_no_thread_and_no_request(people: People) -> None:
    people.store.error = AssertionError("it was read")
    queue = people.queue("")

    assert queue.after(a_pass(), (), NOW) == ()
    assert threads() == []


def test_a_template_of_the_settings_makes_the_text(people: People) -> None:
    people.remember("a")
    people.queue("notify: [{name: all, teams: {webhook: 'http://x/'}, template: 'hello {{ title }}'}]").close(
        5
    )

    (delivery,) = people.to("all").sent
    assert delivery.text == "hello node a: drain started"


SILENCES = "notify: [{name: all, alertmanager: {url: 'http://x'}}]"


def test_silences_are_kept_after_a_pass_and_once_while_nothing_changes(people: People) -> None:
    world = asking("a")
    queue = people.queue(SILENCES)
    plan, outcomes = look(world, builders.settings(SILENCES))
    queue.after(plan, outcomes, plan.now)
    people.wait(lambda: bool(people.silences.wanted))
    queue.after(plan, outcomes, plan.now)
    queue.close(5)

    assert [one.nodes for one in people.silences.wanted] == [(("uid-a", "a", "Reboot"),)]


def test_the_silence_of_a_node_that_was_deleted_is_ours_until_it_has_ended(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "FIRST_PAUSE", timedelta(0))
    world = asking("a")
    queue = people.queue(SILENCES)
    plan, outcomes = look(world, builders.settings(SILENCES))
    queue.after(plan, outcomes, plan.now)
    people.wait(lambda: bool(people.silences.wanted))
    gone = Plan(now=plan.now, mode="Enforce")
    people.silences.fails = [NotSent("no answer in time")] * 10_000
    queue.after(gone, (), plan.now)
    people.wait(lambda: bool(people.warned))
    assert people.warned[0].message == "notices to all can't be sent: no answer in time"
    # It is tried again: in the same process, the node is not forgotten.
    queue.after(gone, (), plan.now)
    before = len(people.silences.wanted)
    # One try may have begun before that pass.
    people.wait(lambda: len(people.silences.wanted) > before + 1)
    assert "uid-a" in people.silences.wanted[-1].ours


def test_the_owners_of_pods_hear_it_too_also_when_the_pods_are_gone(people: People) -> None:
    slack = "slack: {token: x, channel: ops}, when: [Received, Started, Drained]"
    text = f"notify: [{{name: all, {slack}, group: 0s, to: {{namespaceLabel: channel}}}}]"
    world = asking("a")
    queue = people.queue(text)
    for expected in (2, 4):
        plan, outcomes = look(world, builders.settings(text))
        carry_on(world)
        queue.after(plan, outcomes, plan.now)
        people.wait(partial(people.has_sent, expected))
        people.wait(lambda: not people.store.memory.pending)
        people.pods_of.gone = True

    assert [one.recipient for one in people.to("all").sent] == ["", "shop-alerts"] * 2
    assert [one.topic for one in people.to("all").sent[-1].messages] == [Topic.DRAINED]


def test_a_namespace_with_many_channels_takes_no_place_of_another_and_the_log_says_so(
    people: People, caplog: pytest.LogCaptureFixture
) -> None:
    channels = {"channels": ",".join(f"a{number}" for number in range(60))}
    people.pods_of.of = {
        "greedy": Namespace(annotations=channels),
        "shop": Namespace(annotations={"channels": "shop-ops"}),
    }
    entry = "name: all, slack: {token: x, channel: ops}, group: 0s, to: {namespaceAnnotation: channels}"
    people.remember("a")
    people.queue(f"notify: [{{{entry}}}]").close(5)

    assert [one.recipient for one in people.to("all").sent] == ["", "a0", "shop-ops", "a1", "a2", "a3", "a4"]
    (line,) = [one.message for one in caplog.records if "left out" in one.message]
    assert line == "addresses of namespaces were left out: to=all namespaces=greedy"


def test_an_owner_that_can_not_be_reached_delays_nobody(people: People) -> None:
    text = "notify: [{name: all, slack: {token: x, channel: ops}, group: 0s, to: {namespaceLabel: channel}}]"
    transport = people.to("all")
    transport.refuses = "shop-alerts"
    people.remember("a")
    people.queue(text).close(5)

    assert [one.recipient for one in transport.sent] == [""]
    assert people.store.memory.pending == ()


def test_a_refusal_for_good_waits_longer_than_a_failure(people: People) -> None:
    people.clock = Hurrying()
    people.to("all").fails = [NotSent("404", refused=True)]
    people.remember("a")
    people.queue()
    people.wait(lambda: people.has_sent(1))

    refused, sent = people.to("all").tried
    assert sent - refused > timedelta(minutes=4)


def letter(number: int = 1, instance: str = "tell", at: datetime = NOW) -> ProfileMessage:
    return ProfileMessage(f"id-{instance}-{number}", instance, "a", at, f"text {number}")


def test_a_message_of_a_workflow_survives_a_kill_before_it_is_sent(workflows: People) -> None:
    workflows.store.latency = 0.05
    queue = workflows.queue("")
    queue.keep([letter()])

    # The pass goes on only now, and writes to the node that the message was sent.
    assert "text 1" in workflows.store.saves[0]
    workflows.wait(lambda: bool(workflows.letters().texts))
    assert workflows.letters().saved_before == [True]
    queue.close(5)
    assert workflows.store.memory == Memory(workflow_sent=("id-tell-1",))


def test_messages_of_a_workflow_are_sent_one_by_one_in_their_order(workflows: People) -> None:
    queue = workflows.queue("")
    queue.keep([letter(number) for number in range(3)])
    queue.close(5)

    assert workflows.letters().texts == ["text 0", "text 1", "text 2"]


def test_a_message_of_a_workflow_that_was_kept_or_sent_before_is_not_sent_again(workflows: People) -> None:
    queue = workflows.queue("")
    queue.keep([letter(), letter()])
    queue.close(5)
    again = workflows.queue("")
    again.keep([letter()])
    again.close(5)

    assert workflows.letters().texts == ["text 1"]


def test_a_failure_of_one_instance_delays_no_other_and_is_in_the_notes(workflows: People) -> None:
    workflows.letters().fails = [NotSent("no answer in time")]
    queue = workflows.queue("")
    queue.keep([letter(), letter(instance="other")])
    workflows.wait(lambda: bool(workflows.letters("other").texts and workflows.warned))

    (note,) = queue.after(a_pass(), (), NOW)
    assert note.startswith("notices to instances.notify/tell fail since ")
    assert note.endswith(": no answer in time; 1 message waits")
    queue.close(5)
    # The next process begins without a pause.
    workflows.queue("").close(5)
    assert workflows.letters().texts == ["text 1"]
    assert not workflows.store.memory.receivers


def test_messages_of_workflows_wait_in_the_process_until_the_memory_is_read(
    workflows: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.features.notices.queue.LOAD_PATIENCE", 0.05)
    monkeypatch.setattr("reconciler.features.notices.queue.SAVE_AGAIN", timedelta(seconds=0.05))
    workflows.store.error = Unreachable("no answer")
    queue = workflows.queue("")
    queue.keep([letter()])
    workflows.store.error = None

    workflows.wait(lambda: bool(workflows.letters().texts))


def test_a_pass_does_not_wait_for_a_memory_that_can_not_be_written(workflows: People) -> None:
    queue = workflows.queue("")
    queue.after(a_pass(), (), NOW)
    workflows.store.error = Forbidden("no patch of configmaps")
    queue.keep([letter()])
    queue.keep([letter(2)])

    workflows.wait(lambda: len(workflows.letters().texts) == 2)


def test_without_entries_of_notify_a_case_is_not_remembered(workflows: People) -> None:
    plan, outcomes = look(asking("a"), builders.settings(ONE))
    queue = workflows.queue("")
    queue.after(plan, outcomes, plan.now)
    queue.close(5)

    assert workflows.store.saves == []


def test_many_messages_of_a_workflow_are_few_writes_of_the_memory(workflows: People) -> None:
    queue = workflows.queue("")
    queue.keep([letter(number) for number in range(100)])
    queue.close(5)

    assert workflows.letters().texts == [f"text {number}" for number in range(100)]
    assert len(workflows.store.saves) <= 6


def test_a_failure_among_messages_of_a_workflow_repeats_none_that_was_sent(workflows: People) -> None:
    workflows.letters().fails_at = 2
    queue = workflows.queue("")
    queue.keep([letter(number) for number in range(4)])
    workflows.wait(lambda: bool(workflows.warned))
    queue.close(5)
    assert [one.id for one in workflows.store.memory.workflow] == ["id-tell-2", "id-tell-3"]
    workflows.letters().fails_at = None
    workflows.queue("").close(5)

    assert workflows.letters().texts == ["text 0", "text 1", "text 2", "text 3"]
