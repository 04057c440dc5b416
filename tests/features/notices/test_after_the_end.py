"""After the end of a case nothing of it is sent, and what a channel was asked to open is closed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.features.notices import deliveries
from reconciler.features.notices.deliveries import due_for
from reconciler.features.notices.memory import SAID
from reconciler.features.notices.messages import Topic
from reconciler.features.notices.settings import NOTIFY
from reconciler.features.notices.transports.posts import pagerduty
from reconciler.model.errors import Forbidden
from reconciler.model.instructions import PersonHold, Word
from reconciler.model.moments import to_text
from reconciler.model.selector import EVERYTHING
from reconciler.model.values import replace
from reconciler.passes.instruct import held, resumed
from reconciler.simulation.api import Call
from reconciler.simulation.workloads import BudgetSpec
from tests.features.notices.following import Following, asking
from tests.passes.decide.test_outcomes import announced, begun
from tests.support import builders
from tests.support.builders import IMDS, PREFIX, REQUEST, minutes, published
from tests.support.searching import examples

SECOND = timedelta(seconds=1)
EVERY = "notify: [{name: oncall, pagerduty: {routingKey: key}, every: 20m}]"
CHAT = (
    "notify: [{name: oncall, slack: {webhook: 'http://127.0.0.1:1/'}, when: [Held, DeadlinePassed, Done], "
    "every: 20m}]"
)
PROBLEMS = "notify: [{name: oncall, pagerduty: {routingKey: key}, when: [Blocked, Missed, Held]}]"
TEAM = "notify: [{name: oncall, pagerduty: {routingKey: key}, nodeSelector: {team: shop}}]"
ALL_TOPICS = (
    f"notify: [{{name: oncall, pagerduty: {{routingKey: key}}, kinds: [Reboot], when: [{', '.join(Topic)}]}}]"
)


class Paged(Following):
    """A cluster whose notices go to PagerDuty; checks each event that PagerDuty gets."""

    def __init__(self, text: str = EVERY) -> None:
        super().__init__(asking("a", "b"), text)
        self.world.cluster.annotate("a", REQUEST, None)
        self.world.cluster.annotate("b", REQUEST, None)
        self.reachable = True
        self.open: dict[str, str] = {}
        """The alerts that are open: what each was opened with, by its key."""
        self.sent: list[dict[str, Any]] = []
        """The events that PagerDuty got."""
        self.ended: set[str] = set()
        """The cases that have ended."""

    def go(self, pause: timedelta = SECOND) -> None:
        """Have passes for so long, and send what is due after each."""
        ends = self.world.now + pause
        while self.world.now < ends:
            self.world.advance(min(ends - self.world.now, max(pause / 5, SECOND)))
            before = {known.case for known in self.memory.cases.values() if known.open}
            self.step()
            self.ended |= before - {known.case for known in self.memory.cases.values()}
            self.deliver()

    def deliver(self) -> None:
        """Send what is due now."""
        (entry,) = NOTIFY.of(self.settings)
        found = due_for(entry, self.memory, self.world.now, UTC).delivery
        if found is None or not self.reachable:
            self.memory = deliveries.too_old(self.memory, (entry,), self.world.now)
            return
        alive = {known.case for known in self.memory.cases.values()}
        for message in found.messages:
            late = not message.over and message.topic is not Topic.MISSED and message.case not in alive
            assert not late, f"after the end of its case: {message}"
        posts = pagerduty(entry.pagerduty, found) if entry.pagerduty is not None else ()
        for post in posts:
            sent = post.body
            assert isinstance(sent, dict)
            self.sent.append(sent)
            if sent["event_action"] == "trigger":
                self.open[sent["dedup_key"]] = sent["payload"]["class"]
            else:
                self.open.pop(sent["dedup_key"], None)
        self.memory = deliveries.sent(self.memory, found, self.world.now)

    def announce(self, name: str, kind: str = "Reboot", ahead: timedelta | None = None) -> None:
        """Announce maintenance of a node."""
        date = f',"notBefore":"{to_text(self.world.now + ahead)}"' if ahead is not None else ""
        self._annotate(name, REQUEST, f'{{"kind":"{kind}"{date}}}')

    def withdraw(self, name: str) -> None:
        """End the maintenance of a node."""
        self._annotate(name, REQUEST, None)

    def guard(self) -> None:
        """Let a PodDisruptionBudget keep a pod on the node a."""
        if "a" in self.world.cluster.nodes:
            self.world.cluster.add_pod(builders.pod("ledger-0", "a"))
        self.world.cluster.add_budget(BudgetSpec("shop", "ledger", EVERYTHING, min_available=1))

    def free(self) -> None:
        """Let everything go that a PodDisruptionBudget has kept."""
        if "shop/ledger" in self.world.cluster.budget_specs:
            self.world.cluster.drop_budget("shop/ledger")

    def hold(self, name: str) -> None:
        """Run `hold NODE --now`."""
        if (node := self.world.cluster.nodes.get(name)) is not None:
            word = PersonHold(Word("anna@desk", self.world.now, None, "why", ""), stops=True)
            self._write(name, held(node, word, PREFIX, self.world.now).write)

    def resume(self, name: str) -> None:
        """Run `resume NODE`."""
        if (node := self.world.cluster.nodes.get(name)) is not None:
            self._write(name, resumed(node, PREFIX, self.world.now, "anna@desk").write)

    def uncordon(self, name: str) -> None:
        """Run `kubectl uncordon`."""
        if name in self.world.cluster.nodes:
            self.world.cluster.cordon(name, on=False)

    def delete(self, name: str) -> None:
        """Delete a node."""
        if name in self.world.cluster.nodes:
            self.world.cluster.delete_node(name)

    def reach(self, *, reachable: bool) -> None:
        """Let PagerDuty answer, or not."""
        self.reachable = reachable

    def use(self, text: str) -> None:
        """Change the settings."""
        self.settings = builders.settings(f"uncordon: {{settle: 0s}}\n{text}")

    def refuse(self, *, refused: bool) -> None:
        """Let the API server refuse patches of nodes, or accept them again."""

        def refuse(write: Call) -> None:
            if write.what == "patch_node":
                raise Forbidden("no")

        self.world.api.before_write = refuse if refused else None

    def _annotate(self, name: str, key: str, value: str | None) -> None:
        if name in self.world.cluster.nodes:
            self.world.cluster.annotate(name, key, value)

    def _write(self, name: str, write: object) -> None:
        for key, value in getattr(write, "annotations", {}).items():
            self._annotate(name, key, value)


def test_a_drain_that_ended_while_it_was_held_leaves_no_message_that_it_is_blocked() -> None:
    paged = Paged()
    paged.guard()
    paged.announce("a")
    paged.go(minutes(1))
    paged.hold("a")
    paged.go()
    paged.free()
    paged.world.cluster.drop_pod(next(iter(paged.world.cluster.pods)))
    paged.go()
    paged.resume("a")
    paged.go(minutes(1))
    paged.withdraw("a")
    paged.go(minutes(20))

    assert paged.open == {}
    assert [one.message.topic for one in paged.memory.pending] == []
    assert len(paged.ended) == 1


def test_a_drain_that_a_person_has_stopped_is_not_blocked() -> None:
    paged = Paged()
    paged.guard()
    paged.announce("a")
    paged.go(minutes(1))
    paged.hold("a")
    paged.go(minutes(20))

    assert [value for value in paged.open.values() if value == Topic.BLOCKED] == []


def test_a_reminder_does_not_follow_the_end() -> None:
    paged = Paged(f"budget: {{maxUnavailable: 0}}\n{CHAT}")
    paged.announce("a", ahead=minutes(30))
    paged.go(timedelta(hours=1))
    reminded = paged.memory.receiver("oncall").reminded
    assert reminded is not None
    paged.withdraw("a")
    paged.world.advance(reminded + minutes(20) - paged.world.now)

    assert paged.topics() == [Topic.DONE]


APPROVAL = f"events: {{Reboot: {{approval: true}}}}\n{EVERY}"


def test_nodes_with_one_cause_have_one_alert_which_the_last_of_them_closes() -> None:
    paged = Paged(APPROVAL)
    for name in ("a", "b"):
        paged.announce(name, ahead=timedelta(hours=9))
        paged.go(minutes(1))

    assert len(paged.open) == 1
    assert [one["payload"]["custom_details"]["nodes"] for one in paged.sent] == ["a", "b"]
    paged.withdraw("a")
    paged.go(minutes(1))
    assert len(paged.open) == 1
    paged.withdraw("b")
    paged.go(minutes(1))
    assert paged.open == {}


def test_an_alert_that_gets_worse_is_opened_again_so_that_people_are_called_again() -> None:
    paged = Paged(APPROVAL)
    paged.announce("a", ahead=minutes(40))
    paged.go(minutes(39))

    (key,) = paged.open
    severities = [one["payload"]["severity"] for one in paged.sent if one["event_action"] == "trigger"]
    assert {one["dedup_key"] for one in paged.sent} == {key}
    worse = severities.index("error")
    assert set(severities[:worse]) == {"warning"}
    assert [one["event_action"] for one in paged.sent].index("resolve") == worse
    assert [one["event_action"] for one in paged.sent].count("resolve") == 1


def test_a_failure_on_a_node_without_a_case_is_closed_once_it_is_over() -> None:
    paged = Paged()
    paged.refuse(refused=True)
    paged.announce("a")
    paged.go(minutes(1))
    assert list(paged.open.values()) == [Topic.FAILED]
    paged.withdraw("a")
    paged.refuse(refused=False)
    paged.go(minutes(1))

    assert paged.open == {}


@pytest.mark.parametrize("text", [PROBLEMS, TEAM, ALL_TOPICS])
def test_who_was_asked_to_open_an_alert_closes_it_whatever_the_settings_select_then(text: str) -> None:
    paged = Paged(f"budget: {{maxUnavailable: 0}}\n{EVERY}")
    paged.announce("a", kind="Redeploy", ahead=timedelta(hours=2))
    paged.go(timedelta(hours=3))
    assert len(paged.open) == 1
    paged.use(text)
    paged.go()
    paged.withdraw("a")
    paged.go(minutes(1))

    assert paged.open == {}


def test_the_end_of_a_case_of_many_messages_is_sent() -> None:
    paged = Paged(f"budget: {{maxUnavailable: 0}}\n{CHAT}")
    paged.announce("a", ahead=minutes(30))
    paged.go(timedelta(hours=2))
    known = paged.memory.cases["uid-a"]
    many = {**known.said, **{f"Planned {number}": number for number in range(SAID)}}
    paged.memory = replace(paged.memory, cases={"uid-a": replace(known, said=many)})
    paged.withdraw("a")

    assert paged.topics() == [Topic.DONE]


def test_an_alert_is_closed_also_after_pagerduty_could_not_be_reached_for_days() -> None:
    paged = Paged(f"budget: {{maxUnavailable: 0}}\n{EVERY}")
    paged.announce("a", ahead=minutes(30))
    paged.go(timedelta(hours=2))
    assert len(paged.open) == 1
    paged.reachable = False
    paged.withdraw("a")
    paged.go(timedelta(days=3))
    paged.reachable = True
    paged.go(minutes(1))

    assert paged.open == {}


def test_a_miss_stays_open_until_a_person_closes_it() -> None:
    paged = Paged("budget: {maxUnavailable: 0}\nnotify: [{name: oncall, pagerduty: {routingKey: key}}]")
    paged.world.cluster.add_pod(builders.pod("web-1", "a"))
    for text in (announced(), begun(), published(vm="vm")):
        paged.world.cluster.annotate("a", IMDS, text)
        paged.go(minutes(4))
    paged.go(timedelta(hours=1))

    assert len(paged.ended) == 1
    assert list(paged.open.values()) == [Topic.MISSED]


_PAUSES = st.sampled_from([SECOND, minutes(1), minutes(11), minutes(70)])
_NODES = st.sampled_from(["a", "b"])
_MOVES: dict[str, Callable[[Paged, str], None]] = {
    "announce": lambda paged, name: paged.announce(name),
    "announce for soon": lambda paged, name: paged.announce(name, kind="Redeploy", ahead=minutes(20)),
    "announce for later": lambda paged, name: paged.announce(name, ahead=timedelta(hours=6)),
    "withdraw": lambda paged, name: paged.withdraw(name),
    "guard": lambda paged, _: paged.guard(),
    "free": lambda paged, _: paged.free(),
    "hold": lambda paged, name: paged.hold(name),
    "resume": lambda paged, name: paged.resume(name),
    "uncordon": lambda paged, name: paged.uncordon(name),
    "delete": lambda paged, name: paged.delete(name),
    "refuse": lambda paged, _: paged.refuse(refused=True),
    "accept": lambda paged, _: paged.refuse(refused=False),
    "restart": lambda paged, _: paged.world.restart(),
    "hang up": lambda paged, _: paged.reach(reachable=False),
    "pick up": lambda paged, _: paged.reach(reachable=True),
    "no places": lambda paged, _: paged.use(f"budget: {{maxUnavailable: 0}}\n{EVERY}"),
    "places": lambda paged, _: paged.use(EVERY),
    "problems only": lambda paged, _: paged.use(PROBLEMS),
    "other nodes": lambda paged, _: paged.use(TEAM),
}


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from(sorted(_MOVES)), _NODES, _PAUSES), min_size=2, max_size=10))
def test_over_any_history_nothing_follows_the_end_and_every_alert_is_closed(
    history: list[tuple[str, str, timedelta]],
) -> None:
    paged = Paged()
    for move, name, pause in history:
        _MOVES[move](paged, name)
        paged.go(pause)
    for move in ("withdraw", "resume", "accept", "free", "places", "pick up"):
        for name in ("a", "b"):
            _MOVES[move](paged, name)
    paged.go(timedelta(hours=3))

    assert {key: topic for key, topic in paged.open.items() if topic != Topic.MISSED} == {}
