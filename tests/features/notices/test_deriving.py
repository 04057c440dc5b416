"""Which messages a case has: each once, over all passes and processes, and none about what was not done."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.features.notices.deliveries import failed, ripe_at
from reconciler.features.notices.deriving import Pass, Policy, after_pass
from reconciler.features.notices.facts import facts_of, remedy
from reconciler.features.notices.memory import Memory, seconds
from reconciler.features.notices.messages import Message, Topic
from reconciler.features.notices.settings import NOTIFY, sections_of
from reconciler.model.case_outcome import InTime
from reconciler.model.content import SettingsVersion
from reconciler.model.errors import Forbidden, Rejected
from reconciler.model.event import Answer, Kind
from reconciler.model.holds import NOT_CLAIMED
from reconciler.model.instructions import ALL, PersonHold, Word
from reconciler.model.moments import to_text
from reconciler.model.plan import NodePlan
from reconciler.model.reconciler import Reconciler, Running, beside
from reconciler.model.record import DrainRecord, Forecast, State
from reconciler.model.schedule import CaseSchedule
from reconciler.model.selector import EVERYTHING
from reconciler.model.values import replace
from reconciler.simulation.api import Call
from reconciler.simulation.workloads import BudgetSpec
from tests.features.notices.following import ANY, ASKING, Following, asking, entries
from tests.passes.decide import test_outcomes as outcomes
from tests.support import builders
from tests.support.builders import NOW, REQUEST, minutes, published
from tests.support.worlds import look, world_of

LATER = '{"kind":"Reboot","notBefore":"2026-11-23T12:00:00Z"}'


def reminding(keys: str, places: int = 0) -> str:
    """Settings with so many places in the budget, and one entry with these keys."""
    entry = f"{{name: all, webhook: {{url: 'http://127.0.0.1:1/'}}, {keys}}}"
    return f"budget: {{maxUnavailable: {places}}}\nnotify: [{entry}]"


def test_a_case_is_told_from_its_event_to_its_end_and_each_step_once() -> None:
    world = asking("a")
    following = Following(world)

    assert following.topics() == [Topic.RECEIVED, Topic.STARTED]
    assert following.topics() == [Topic.DRAINED]
    assert following.topics() == []
    world.cluster.annotate("a", REQUEST, None)
    following.step()
    following.step()
    done = [one.message for one in following.memory.pending if one.message.topic is Topic.DONE]

    assert [one.node for one in done] == ["a"]
    assert following.memory.cases == {}
    assert following.topics() == []


def test_a_pass_without_news_changes_nothing() -> None:
    following = Following(asking("a"))
    following.step()
    following.step()
    before = following.memory
    following.step()

    assert following.memory is before


def test_a_planned_start_is_told_with_its_time() -> None:
    following = Following(asking("a", request=LATER))
    found = {one.topic: one.text for one in following.step()}

    assert set(found) == {Topic.RECEIVED, Topic.PLANNED}
    assert "not before 2026-11-23T12:00:00Z" in found[Topic.RECEIVED]
    assert "2026-11-23T1" in found[Topic.PLANNED]
    assert following.topics(NOW + minutes(30)) == []


def test_a_process_that_is_killed_before_it_remembers_tells_everything_again() -> None:
    world = asking("a")
    following = Following(world)
    first = following.step()
    following.memory = Memory()
    again = following.step()

    assert {one.topic for one in first} <= {one.topic for one in again}
    by_topic = {one.topic: one.id for one in again}
    started = next(one for one in first if one.topic is Topic.STARTED)
    assert by_topic[Topic.STARTED] == started.id


def test_an_end_that_no_process_of_ours_remembers_is_told() -> None:
    world = asking("a")
    following = Following(world)
    following.step()
    following.step()
    world.cluster.annotate("a", REQUEST, None)
    before = following.memory
    following.step()
    following.step()
    assert following.memory.cases == {}
    # The process was killed after it ended the case.
    following.memory = before
    (end,) = following.step()

    assert (end.topic, end.node) == (Topic.DONE, "a")
    assert "no pass of this process saw how" in end.text


def test_the_end_of_a_case_whose_node_was_deleted_says_what_the_history_says() -> None:
    ends = []
    for passes in (1, 3):
        world = asking("a")
        world.cluster.add_pod(builders.pod("web-1", "a"))
        following = Following(world)
        for _ in range(passes):
            following.step()
            world.advance(minutes(1))
        world.cluster.delete_node("a")
        ends += [(one.topic, one.text) for one in following.step()]

    assert ends == [
        (Topic.DONE, "stopped: the event was still announced when the case ended; the node was deleted"),
        (Topic.DONE, "in time: drained at 2026-11-21T12:01:00Z; 1 pod moved; the node was deleted"),
    ]


def test_what_could_not_be_written_is_a_failure_and_nothing_else() -> None:
    world = asking("a")

    def refuse(write: Call) -> None:
        if write.what == "patch_node":
            raise Forbidden("no")

    world.api.before_write = refuse
    following = Following(world)
    (announced, failed) = sorted(following.step(), key=lambda one: one.topic is Topic.FAILED)

    assert (announced.topic, failed.topic) == (Topic.RECEIVED, Topic.FAILED)
    assert failed.text == "cordon failed: no"
    assert following.topics() == []


def test_a_hold_is_told_again_when_it_comes_back() -> None:
    world = asking("a")
    following = Following(world, f"budget: {{maxUnavailable: 0}}\n{ANY}")
    held = [one for one in following.step() if one.topic is Topic.HELD]
    assert [one.node for one in held] == ["a"]
    assert held[0].text == "maxUnavailable is 0, so no node may start"
    assert "`budget.maxUnavailable`" in held[0].remedy
    # Before its time is over, the hold is.
    following.settings = builders.settings(f"budget: {{maxUnavailable: 1}}\n{ANY}")
    following.step()

    assert not [one for one in following.memory.pending if one.message.topic is Topic.HELD]
    assert "Held" not in following.memory.cases["uid-a"].said


def test_a_hold_is_not_told_again_because_a_write_failed_in_between() -> None:
    world = asking("a")
    held, free = (f"budget: {{maxUnavailable: {places}}}\n{ANY}" for places in (0, 1))
    following = Following(world, held)
    assert Topic.HELD in following.topics()

    def refuse(write: Call) -> None:
        if write.what == "patch_node":
            raise Forbidden("no")

    world.api.before_write, following.settings = refuse, builders.settings(free)
    following.step()
    world.api.before_write, following.settings = None, builders.settings(held)

    assert Topic.HELD not in following.topics(NOW + minutes(1))


def test_only_those_whose_nodes_and_kinds_are_meant_get_a_message() -> None:
    world = asking("a", "b")
    world.cluster.nodes["a"] = builders.node("a", annotations={REQUEST: ASKING}, labels={"team": "shop"})
    text = """notify:
- {name: shop, webhook: {url: 'http://127.0.0.1:1/'}, nodeSelector: {team: shop}, when: [Started]}
- {name: spot, webhook: {url: 'http://127.0.0.1:1/'}, kinds: [Preempt]}
- {name: page, pagerduty: {routingKey: key}}"""
    following = Following(world, text)
    following.step()

    assert [(one.message.topic, one.message.node, one.to) for one in following.memory.pending] == [
        (Topic.STARTED, "a", ("shop",))
    ]


@pytest.mark.parametrize(("passed", "reminded"), [(timedelta(minutes=59), False), (timedelta(hours=1), True)])
def test_what_still_holds_is_told_again_after_the_interval(passed: timedelta, reminded: bool) -> None:
    following = Following(asking("a"), reminding("every: 1h, heldFor: 0s"))
    following.step()
    again = following.step(NOW + passed)

    assert [(one.topic, one.repeats) for one in again] == ([(Topic.HELD, True)] if reminded else [])


def test_no_reminder_comes_before_the_first_message() -> None:
    following = Following(asking("a"), reminding("every: 20m, heldFor: 1h"))
    repeats = {
        passed: [one.repeats for one in following.step(NOW + minutes(passed)) if one.topic is Topic.HELD]
        for passed in (0, 20, 40, 60, 70, 80)
    }

    # The first message is sent after an hour, and the first reminder 20 minutes later.
    assert repeats == {0: [False], 20: [], 40: [], 60: [], 70: [], 80: [True]}


def test_what_has_just_been_sent_is_not_repeated_with_the_others() -> None:
    following = Following(asking("a"), reminding("every: 1h, heldFor: 0s"))
    following.step()
    following.world.cluster.nodes["b"] = builders.node("b", annotations={REQUEST: ASKING}, pool="np")
    following.step(NOW + minutes(59))

    assert [one.node for one in following.step(NOW + minutes(60))] == ["a"]
    assert [one.node for one in following.step(NOW + minutes(120))] == ["a", "b"]


def test_a_full_budget_holds_no_node_whose_start_has_not_come() -> None:
    following = Following(asking("a", request=LATER), f"budget: {{maxUnavailable: 0}}\n{ANY}")

    assert Topic.HELD not in following.topics()
    assert Topic.HELD in following.topics(NOW + minutes(47 * 60))


def test_a_reminder_ends_with_what_it_is_about() -> None:
    following = Following(asking("a"), reminding("every: 1h, heldFor: 0s"))
    following.step()
    assert following.memory.receivers != {}
    following.settings = builders.settings(reminding("every: 1h, heldFor: 0s", places=1))
    following.step()

    assert following.memory.receivers == {}


def test_an_entry_that_waits_gets_nothing_about_an_ended_case_also_while_another_one_fails() -> None:
    url = "webhook: {url: 'http://127.0.0.1:1/'}"
    text = f"notify: [{{name: late, {url}, after: 1h}}, {{name: dead, {url}}}]"
    following = Following(asking("a"), text)
    following.step()
    following.step()
    following.world.cluster.annotate("a", REQUEST, None)
    following.step()
    following.step()

    to = {one.message.topic: one.to for one in following.memory.pending}
    assert to == {
        Topic.RECEIVED: ("dead",),
        Topic.STARTED: ("dead",),
        Topic.DRAINED: ("dead",),
        Topic.DONE: ("late", "dead"),
    }


def test_an_entry_that_could_not_be_reached_gets_only_the_end_of_an_ended_case() -> None:
    following = Following(asking("a"))
    following.step()
    following.memory = failed(following.memory, "all", "no_service", NOW)
    following.step()
    following.world.cluster.annotate("a", REQUEST, None)
    following.step()
    following.step()

    assert [one.message.topic for one in following.memory.pending] == [Topic.DONE]


def test_a_node_that_a_person_excludes_has_no_messages() -> None:
    world = world_of(
        [builders.node("a", annotations={REQUEST: ASKING}, labels={f"{builders.PREFIX}/ignore": "true"})]
    )

    assert Following(world).step() == []


def test_a_pod_that_a_webhook_keeps_is_told_as_blocked_only_after_a_time() -> None:
    world = asking("a")
    world.cluster.add_pod(builders.pod("kafka-0", "a"))

    def deny(call: Call) -> None:
        if call.what == "evict":
            raise Rejected('admission webhook "cleaner" denied the request: it is rolled', status=500)

    world.api.before_write = deny
    following = Following(world, f"{ANY}\ndrain: {{webhooksMayDeny: 5m}}")
    said: list[str] = []
    for _ in range(5):
        said += [one.text for one in following.step() if one.topic is Topic.BLOCKED]
        world.advance(minutes(1))
    before = [*said]
    for _ in range(3):
        said += [one.text for one in following.step() if one.topic is Topic.BLOCKED]
        world.advance(minutes(1))

    assert before == []
    (text,) = said
    assert text.startswith("pods stay: shop/kafka-0 (denied by webhook cleaner: it is rolled; ")


@pytest.mark.parametrize(
    ("date", "keys", "wait"),
    [
        pytest.param("", "", minutes(10), id="without a date"),
        pytest.param("2026-11-21T13:10:00Z", "", minutes(10), id="there is time"),
        pytest.param("2026-11-21T13:10:00Z", ", blockedFor: 30m", minutes(70) / 3, id="a long blockedFor"),
        pytest.param("2026-11-21T12:15:00Z", "", minutes(5), id="as long as the lead time"),
        pytest.param("2026-11-21T12:03:00Z", "", minutes(1), id="three minutes"),
    ],
)
def test_that_a_drain_is_blocked_is_told_before_the_platform_starts(
    date: str, keys: str, wait: timedelta
) -> None:
    asked = f'{{"kind":"Reboot","notBefore":"{date}"}}' if date else ASKING
    world = asking("a", request=asked)
    world.cluster.add_pod(builders.pod("ledger-0", "a"))
    world.cluster.add_budget(BudgetSpec("shop", "ledger", EVERYTHING, min_available=1))
    entry = (
        f"notify: [{{name: all, webhook: {{url: 'http://127.0.0.1:1/'}}, when: [Blocked], group: 0s{keys}}}]"
    )
    following = Following(world, entry)
    while not (told := following.step()):
        world.advance(timedelta(seconds=1))
    (blocked,) = told
    (receiver,) = NOTIFY.of(following.settings)

    assert ripe_at(receiver, blocked, blocked.at, UTC) - blocked.at == pytest.approx(
        wait, abs=timedelta(seconds=4)
    )
    assert blocked.text.startswith("pods stay: shop/ledger-0 (shop/ledger: ")
    assert (to_text(blocked.by) if blocked.by is not None else "") == date
    assert "`kubectl -n shop scale replicaset owner --replicas 2`" in blocked.remedy


DUE = '{"kind":"Reboot","notBefore":"2026-11-21T18:00:00Z"}'
ONE_PLACE, TWO_PLACES = (f"budget: {{maxUnavailable: {places}}}" for places in (1, 2))
TWO_RECEIVERS = """notify:
- {name: all, webhook: {url: 'http://127.0.0.1:1/'}, when: [WillBeMissed]}
- {name: patient, webhook: {url: 'http://127.0.0.1:1/'}, when: [WillBeMissed], after: 1h}
"""


def foretold(following: Following, wait: float = 0) -> list[tuple[Topic, str]]:
    """Let so many minutes pass, run a pass, and return the new messages of all kinds to all."""
    following.world.advance(minutes(wait))
    return [(one.topic, one.node) for one in following.step()]


def test_a_miss_is_told_once_it_has_been_foretold_for_ten_minutes_by_any_processes() -> None:
    following = Following(asking("a", "b", request=DUE), f"{ONE_PLACE}\n{TWO_RECEIVERS}")
    assert foretold(following) == []
    assert foretold(following, 9) == []
    # Each step keeps only the ConfigMap and the records, as runs of a CronJob do.
    assert foretold(following, 1) == [(Topic.WILL_BE_MISSED, "b")]
    assert foretold(following, 1) == []


def test_what_no_longer_holds_is_taken_back_for_those_who_got_it() -> None:
    following = Following(asking("a", "b", request=DUE), f"{ONE_PLACE}\n{TWO_RECEIVERS}")
    foretold(following)
    foretold(following, 10)
    (pending,) = following.memory.pending
    following.memory = following.memory.without("all", frozenset({pending.message.id}))
    following.settings = builders.settings(f"{TWO_PLACES}\n{TWO_RECEIVERS}")
    following.world.advance(minutes(1))
    (taken_back,) = following.step()

    assert (taken_back.topic, taken_back.node) == (Topic.NO_LONGER_MISSED, "b")
    assert (
        taken_back.text
        == "the node will be drained in time after all: its drain starts at 2026-11-21T16:45:00Z"
    )
    assert [one.to for one in following.memory.pending] == [("all",)]
    assert foretold(following, 1) == []


def test_a_miss_that_comes_back_is_told_again() -> None:
    following = Following(asking("a", "b", request=DUE), f"{ONE_PLACE}\n{ANY}")
    foretold(following)
    foretold(following, 10)
    for text, topic in ((TWO_PLACES, Topic.NO_LONGER_MISSED), (ONE_PLACE, Topic.WILL_BE_MISSED)):
        following.settings = builders.settings(f"{text}\n{ANY}")
        following.memory = replace(following.memory, pending=())
        found = foretold(following, 1) + foretold(following, 10)
        assert [each for each in found if each[0] is not Topic.PLANNED] == [(topic, "b")]


@pytest.mark.parametrize(
    ("drained", "text"),
    [
        (None, "nothing blocks its drain any more, 10m before the date"),
        (NOW - minutes(4), "drained in time, 14m before the date"),
    ],
)
def test_a_drain_that_ends_in_time_after_all_says_how_long_before_the_date(
    drained: datetime | None, text: str
) -> None:
    since = NOW - minutes(9)
    drain = DrainRecord(since, done=drained)
    case = builders.record(events=(builders.known(not_before=NOW + minutes(10)),), drain=drain)
    facts = replace(case.facts, will_be_missed=Forecast("pods stay", since, since, over=NOW))
    node = NodePlan(
        "a",
        "",
        "",
        State.IN_MAINTENANCE,
        State.IN_MAINTENANCE,
        record=replace(case, facts=facts),
        schedule=CaseSchedule(since, because="its drain has begun", started=True),
        uid="uid-a",
    )

    said = {f"{Topic.WILL_BE_MISSED} {seconds(since)}": 0}
    texts = {fact.topic: fact.text for fact in facts_of(node, (), said, NOW).values()}
    assert texts[Topic.NO_LONGER_MISSED] == text


def test_a_miss_that_was_foretold_for_a_moment_is_not_told() -> None:
    following = Following(asking("a", "b", request=DUE), f"{ONE_PLACE}\n{TWO_RECEIVERS}")
    foretold(following)
    following.settings = builders.settings(f"{TWO_PLACES}\n{TWO_RECEIVERS}")
    assert foretold(following, 9) == []
    assert foretold(following, 9) == []


def test_a_message_says_what_was_announced_too_late_and_which_pods_were_met() -> None:
    late = outcomes.history("budget: {maxUnavailable: 1, ignore: {notReadyFor: 10h}}")
    outcomes.say(late, outcomes.announced(minutes_ahead=4))
    outcomes.look(late)
    facts = facts_of(outcomes.look(late), (), {}, late.now)
    assert facts["DeadlinePassed"].text.startswith("it was announced too late, and no drain has begun: ")

    outcomes.say(late, outcomes.begun())
    outcomes.look(late)
    facts = facts_of(outcomes.look(late), (), {}, late.now)
    (missed,) = [fact.text for fact in facts.values() if fact.topic is Topic.MISSED]
    assert (
        "while 2 pods that had to be evicted were on the node: shop/web-1 (ReplicaSet shop/owner)" in missed
    )


def test_an_uncordon_by_hand_is_told_at_once_and_is_no_end() -> None:
    world = asking("a", request='{"kind":"Reboot","notBefore":"2026-11-21T12:30:00Z"}')
    following = Following(world)
    following.step()
    assert following.topics() == [Topic.DRAINED]
    world.cluster.cordon("a", on=False)
    (told,) = following.step()
    text = told.text

    assert told.topic is Topic.UNGUARDED
    assert "someone uncordoned the node at" in text
    assert "the platform may start Reboot from 2026-11-21T12:30:00Z on" in text
    assert "reconciler release a lets the reconciler drain it again" in text
    assert following.topics(NOW + minutes(5)) == []

    world.cluster.annotate("a", REQUEST, None)
    (done,) = following.step(NOW + minutes(6))

    assert done.topic is Topic.DONE
    assert "someone uncordoned the node" in done.text
    assert "in time" not in done.text


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        (
            "hold",
            '{"by":"alice","at":"2026-11-21T11:00:00Z","now":true}',
            "its drain is stopped: it is held by alice",
        ),
        ("hold", '{"by":"alice"}', "it is held by alice"),
        (
            "said-before",
            '[{"done":"resumed","did":"held","word":{"who":"alice"},"by":"bob"}]',
            "resumed by bob",
        ),
    ],
)
def test_what_a_person_says_of_a_drain_is_told_once(key: str, text: str, words: str) -> None:
    world = asking("a")
    world.cluster.add_pod(builders.pod("stuck", deleting_until=NOW))
    world.cluster.finalizers.add("uid-shop-stuck")
    following = Following(world)
    following.step()
    world.cluster.annotate("a", f"{builders.PREFIX}/{key}", text)
    told = [one for one in following.step() if one.topic is Topic.PERSON]

    assert len(told) == 1
    assert words in told[0].text
    assert Topic.PERSON not in following.topics()


def test_a_second_reconciler_is_told_once_to_each_entry_and_so_is_its_end() -> None:
    for_one_pool = "nodeSelector: {agentpool: other}, kinds: [Freeze], webhook: {url: 'http://127.0.0.1:1/'}"
    alarms = "pagerduty: {routingKey: key}, when: [TwoReconcilers]"
    notify = entries(f"notify: [{{name: pool, {for_one_pool}}}, {{name: alarms, {alarms}}}]")
    first = Reconciler(Running.RUNNING, lock="first", since=NOW)
    second = Reconciler(Running.RUNNING, lock="second", since=NOW + minutes(1))
    plan, outcomes = look(asking("a"), builders.settings())

    def after(memory: Memory, *others: Reconciler) -> Memory:
        seen = Pass.of(replace(plan, reconciler=beside(second, others)), outcomes)
        return after_pass(memory, seen, notify, NOW)

    once = after(Memory(), first)
    (told,) = once.pending
    assert (told.message.topic, told.message.node, told.to) == (Topic.TWO_RECONCILERS, "", ("pool", "alarms"))
    assert "the other lock is in namespace first; this one starts no drain" in told.message.text
    assert after(once, first) == once

    alone = after(once)
    # The alert is closed, though its entry does not choose `Done`.
    ends = {one.to: (one.message.topic, one.message.over) for one in alone.pending}
    assert ends == {("pool",): (Topic.DONE, False), ("alarms",): (Topic.TWO_RECONCILERS, True)}
    assert {one.message.case for one in alone.pending} == {told.message.case}
    assert after(alone) == alone


STOP = PersonHold(Word("alice@laptop", NOW, None, "incident 311", scope=ALL), stops=True)


def test_a_stop_of_all_nodes_is_told_once_with_what_it_stops_and_so_is_its_end() -> None:
    world = asking("a", request='{"kind":"Reboot","notBefore":"2026-11-21T12:30:00Z"}')
    world.cluster.add_pod(builders.pod("stuck", "a", deleting_until=NOW))
    world.cluster.finalizers.add("uid-shop-stuck")
    following = Following(world)
    following.step()
    world.cluster.ledger = replace(world.cluster.ledger, holds=(STOP,))
    (told,) = [one for one in following.step() if one.topic is Topic.PERSON]

    assert told.node == ""
    assert "all nodes are held by alice@laptop" in told.text
    assert "incident 311" in told.text
    assert "no drain starts, and 1 drain is stopped" in told.text
    assert Topic.PERSON not in following.topics()
    world.cluster.ledger = replace(world.cluster.ledger, holds=())
    (ended,) = [one for one in following.step() if one.topic is Topic.PERSON]
    assert ended.text == "the hold of all nodes has ended, so drains start again"
    assert Topic.PERSON not in following.topics()


def test_a_hold_of_a_node_without_an_event_is_told_too() -> None:
    world = world_of([builders.node("a"), builders.node("b")])
    following = Following(world)
    assert following.step() == []
    world.cluster.annotate("a", f"{builders.PREFIX}/hold", '{"by":"alice","reason":"disk copy"}')
    (told,) = following.step()

    assert (told.topic, told.node) == (Topic.PERSON, "a")
    assert "it is held by alice: disk copy" in told.text
    assert following.step() == []


def with_policy(following: Following, policy: Policy, file: str) -> list[Message]:
    """Run a pass with these settings from a file with this hash, and return its messages."""
    plan, outcomes = look(following.world, following.settings)
    plan = replace(plan, settings=replace(plan.settings, version=SettingsVersion(file)))
    before = len(following.memory.pending)
    entries = NOTIFY.of(following.settings)
    following.memory = after_pass(following.memory, Pass.of(plan, outcomes), entries, NOW, policy)
    return [one.message for one in following.memory.pending[before:]]


def test_changed_settings_are_told_with_the_names_of_what_has_changed() -> None:
    following = Following(world_of([builders.node("a")]))
    before = sections_of(builders.settings("mode: Enforce"))
    after = sections_of(builders.settings("mode: Enforce\nbudget: {maxUnavailable: 3}"))

    assert with_policy(following, Policy(before), "1") == []
    assert with_policy(following, Policy(before), "2") == []
    (told,) = with_policy(following, Policy(after), "3")
    assert (told.topic, told.text) == (Topic.PERSON, "the settings changed to 3: budget")
    # A newer program knows more sections of the same file.
    assert with_policy(following, Policy({**after, "moon": "1"}), "3") == []


def test_rejected_settings_are_told_until_they_can_be_used() -> None:
    following = Following(world_of([builders.node("a")]))
    (told,) = with_policy(following, Policy(mistake="x:2: windows: no list"), "1")

    assert told.topic is Topic.SETTINGS_REJECTED
    assert told.text == "passes go on with the last good settings: x:2: windows: no list"
    assert with_policy(following, Policy(mistake="x:2: windows: no list"), "1") == []
    (over,) = with_policy(following, Policy(), "1")
    assert (over.topic, over.text) == (Topic.DONE, "the newest settings are in use again")


def test_an_approval_is_asked_for_at_once_with_the_moment_until_which_it_helps() -> None:
    following = Following(asking("a", request=LATER), f"{ANY}\nevents: {{Reboot: {{approval: true}}}}")
    (told,) = [one for one in following.step() if one.topic is Topic.APPROVAL_NEEDED]

    assert told.text == (
        "the drain for Reboot needs an approval by 2026-11-23T11:45:00Z; the platform may start from "
        "2026-11-23T12:00:00Z on; without an approval, the node is not drained"
    )
    assert told.remedy == "whoever may approve it: reconciler approve a"
    assert Topic.APPROVAL_NEEDED not in following.topics()


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("budget: {maxUnavailable: 0}", "whoever can bring these nodes back into service"),
        ("events: {Redeploy: {approval: true}}", "whoever may approve it: "),
    ],
    ids=["no place", "no approval"],
)
def test_a_miss_is_told_with_what_lets_the_drain_begin(text: str, who: str) -> None:
    told = builders.reported(builders.signal(Kind.REDEPLOY, not_before=NOW + minutes(60)))
    seen = builders.snapshot(builders.node(), readings={"a": told})
    node = builders.plan_of(builders.planned(seen, builders.settings(text)))
    assert node.schedule is not None
    node = replace(node, schedule=replace(node.schedule, missed=True, remedies=("kubectl lift a",)))
    found = remedy(node, Topic.WILL_BE_MISSED, builders.PREFIX)

    assert found.startswith(who)
    assert found.endswith("; or whoever is on call: `kubectl lift a`")


def test_a_drain_by_hand_is_told() -> None:
    hold = NOT_CLAIMED.on("a", "it is drained by hand by alice")
    node = NodePlan("a", "", "", State.OPERATIONAL, State.OPERATIONAL, holds=(hold,), uid="uid-a")
    (fact,) = facts_of(node, (), {}, NOW).values()

    assert (fact.topic, fact.text) == (Topic.PERSON, "it is drained by hand by alice")
    assert "alice" not in fact.anyone


def test_the_end_of_a_drain_says_how_long_it_took_and_whether_it_was_in_time() -> None:
    world = asking("a", request='{"kind":"Redeploy","notBefore":"2026-11-21T12:15:00Z"}')
    world.cluster.add_pod(builders.pod("web-1", "a"))
    following = Following(world)
    following.step()
    world.advance(minutes(1))
    (drained,) = following.step()
    assert (drained.topic, drained.text) == (
        Topic.DRAINED,
        "drained for Redeploy in 1m, 1 pod moved, 14m before its date",
    )
    world.cluster.annotate("a", REQUEST, None)
    world.advance(minutes(1))
    ends = [*following.step(), *following.step()]

    assert [one.text for one in ends] == [
        "back in service at 2026-11-21T12:02:00Z; in time: drained at 2026-11-21T12:01:00Z"
    ]


def test_the_end_of_a_case_says_that_its_event_was_called_off() -> None:
    case = outcomes.history("budget: {maxUnavailable: 2}\nuncordon: {settle: 0s}", pods=())
    outcomes.say(case, outcomes.announced(minutes_ahead=14))
    for _ in range(3):
        outcomes.look(case)
    outcomes.say(case, published(vm="vm"))
    ended = [node for _ in range(3) if (node := outcomes.look(case)).ended is not None]

    (text,) = [facts_of(node, (), {}, NOW)["Done"].text for node in ended]
    assert text.startswith(f"back in service at {to_text(NOW)}; the Reboot was called off; drained at ")


def test_once_a_week_people_get_one_number() -> None:
    world = asking("a")
    world.cluster.add_pod(builders.pod("web-1", "a"))
    following = Following(world, f"{ANY}\ntimeZone: Europe/Berlin")
    for _ in range(2):
        following.step()
        world.advance(minutes(1))
    # The test's clock begins on a Saturday.
    world.cluster.annotate("a", REQUEST, None)
    for _ in range(3):
        following.step()
        world.advance(minutes(1))
    monday = datetime(2026, 11, 23, 7, tzinfo=UTC)
    assert Topic.SUMMARY not in following.topics(monday - minutes(1))
    (summary,) = following.step(monday)

    assert (summary.topic, summary.node) == (Topic.SUMMARY, "")
    assert summary.text == "drained before the platform struck: 1 of 1 since 2026-11-21T12:00:00Z"
    assert following.step(monday + minutes(1)) == []
    (quiet,) = following.step(monday + timedelta(days=7))
    assert quiet.text == (
        "no maintenance of a node has ended since 2026-11-23T07:00:00Z; nodes that are managed: 2"
    )


def test_a_node_that_is_deleted_counts_as_it_was_drained() -> None:
    world = asking("a")
    following = Following(world)
    for _ in range(3):
        following.step()
        world.advance(minutes(1))
    world.cluster.delete_node("a")
    following.step()

    assert following.memory.week is not None
    assert following.memory.week.ended == {InTime.YES: 1}


def test_a_silent_source_of_a_node_in_maintenance_is_told_with_what_helps() -> None:
    written = NOW - minutes(40)
    redeploy = builders.reported(builders.signal(Kind.REDEPLOY, not_before=NOW + minutes(60)))
    silent = (
        dataclasses.replace(redeploy[0], signals=(), answer=Answer.NO_EVENT, as_of=written),
        *redeploy[1:],
    )
    drained = builders.record(events=(builders.known(Kind.REDEPLOY, not_before=NOW + minutes(60)),))
    seen = builders.snapshot(builders.held_node(drained), builders.node("b"), readings={"a": silent})
    node = builders.plan_of(builders.planned(seen))
    (fact,) = [one for one in facts_of(node, (), {}, NOW).values() if one.topic is Topic.UNGUARDED]

    assert "can't be read now: whether it is over is not known (since " in fact.text
    assert "if it is over: `reconciler release a`" in remedy(node, Topic.UNGUARDED, builders.PREFIX)
