"""Law 18: what goes to the owners of pods names nothing of other namespaces, whatever it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec import Struct, structs

from reconciler.features.notices.deliveries import Delivery, delivery_of
from reconciler.features.notices.deriving import Pass, after_pass
from reconciler.features.notices.messages import Message, Topic
from reconciler.features.notices.owners import Namespace, for_owners
from reconciler.features.notices.settings import NOTIFY
from reconciler.model.errors import Forbidden
from reconciler.model.record import KnownEvent
from reconciler.model.selector import EVERYTHING
from reconciler.model.values import replace
from reconciler.profiles.orders import why_drained
from reconciler.simulation.api import Call
from reconciler.simulation.workloads import BudgetSpec
from reconciler.simulation.world import World
from tests.features.notices.following import ASKING, Following, asking
from tests.passes.decide import test_outcomes as outcomes
from tests.support import builders
from tests.support.builders import PREFIX, REQUEST, minutes
from tests.support.worlds import carry_on, look

SECRET = "acme-takeover"
"""A name of another tenant, which stands in each text of a plan."""

OWN, OTHER = "tenant-a", "tenant-b"
ENTRY = f"""notify:
- name: all
  when: [{", ".join(Topic)}]
  mail: {{server: localhost, from: a@example.com, to: [all@example.com]}}
  to: {{namespaceAnnotation: mail, domains: [example.com]}}
"""
UTC = ZoneInfo("UTC")
SAFE = {"node", "uid", "code", "condition", "pool", "zone", "cause", "scope"}
"""Names of nodes, events and checks, and what is compared but not said."""


def spoiled(value: Any, name: str = "") -> Any:
    """Return a value of a plan in which each text names something of another tenant."""
    if isinstance(value, Struct):
        fields = value.__struct_fields__
        return structs.replace(value, **{each: spoiled(getattr(value, each), each) for each in fields})
    if isinstance(value, str) and not isinstance(value, Enum) and name not in SAFE:
        return f"{value} {OTHER}/{SECRET}"
    if isinstance(value, tuple):
        return tuple(spoiled(each, name) for each in value)
    if isinstance(value, Mapping):
        return {key: spoiled(each, name) for key, each in value.items()}
    return value


class Spoiling(Following):
    """Runs passes whose plans and outcomes are spoiled before messages are made of them."""

    def __init__(self, world: World, text: str = "") -> None:
        super().__init__(world, f"{ENTRY}{text}")
        self.sent: list[Message] = []
        self.events: list[KnownEvent] = []

    def step(self, now: datetime | None = None) -> list[Message]:
        plan, outcomes = look(self.world, self.settings, now)
        plan = replace(plan, nodes=tuple(spoiled(node) for node in plan.nodes))
        seen = Pass.of(plan, [replace(one, detail=spoiled(one.detail)) for one in outcomes])
        self.events += [event for node in plan.nodes if node.record for event in node.record.events]
        before = {one.message.id for one in self.memory.pending}
        self.memory = after_pass(self.memory, seen, NOTIFY.of(self.settings), now or self.world.now)
        carry_on(self.world)
        fresh = [one.message for one in self.memory.pending if one.message.id not in before]
        self.sent += fresh
        return fresh

    def steps(self, *waits: float) -> None:
        """Run a pass after each of these minutes."""
        for wait in waits:
            self.world.advance(minutes(wait))
            self.step()


SOON = '{"kind":"Reboot","notBefore":"2026-11-21T12:30:00Z"}'
LATER = '{"kind":"Reboot","notBefore":"2026-11-21T18:00:00Z"}'
ONE_PLACE = "budget: {maxUnavailable: 1}"


def _drained() -> Spoiling:
    world = asking("a")
    world.cluster.add_pod(builders.pod("web-1", "a"))
    following = Spoiling(world)
    following.steps(0, 1, 1)
    world.cluster.annotate("a", REQUEST, None)
    following.steps(1, 1)
    return following


def _refused() -> Spoiling:
    world = asking("a")

    def refuse(write: Call) -> None:
        if write.what == "patch_node":
            raise Forbidden("no")

    world.api.before_write = refuse
    following = Spoiling(world)
    following.steps(0)
    return following


def _full() -> Spoiling:
    following = Spoiling(asking("a"), "budget: {maxUnavailable: 0}")
    following.steps(0, 1)
    return following


def _foretold() -> Spoiling:
    following = Spoiling(asking("a", "b", request=LATER), ONE_PLACE)
    following.steps(0, 10)
    # The messages are sent.
    following.memory = replace(following.memory, pending=())
    following.settings = builders.settings(f"{ENTRY}budget: {{maxUnavailable: 2}}")
    following.steps(1, 1)
    return following


def _blocked() -> Spoiling:
    world = asking("a")
    world.cluster.add_pod(builders.pod("ledger-0", "a"))
    world.cluster.add_budget(BudgetSpec("shop", "ledger", EVERYTHING, min_available=1))
    following = Spoiling(world)
    following.steps(0, 1, 1)
    return following


def _uncordoned() -> Spoiling:
    world = asking("a", request=SOON)
    following = Spoiling(world)
    following.steps(0, 0)
    world.cluster.cordon("a", on=False)
    following.steps(0)
    world.cluster.annotate("a", REQUEST, None)
    following.steps(6)
    return following


def _held() -> Spoiling:
    world = asking("a", request=LATER)
    following = Spoiling(world)
    world.cluster.annotate("a", f"{PREFIX}/hold", '{"by":"alice","reason":"acme"}')
    following.steps(0)
    return following


def _struck() -> Spoiling:
    """The platform starts while the budget has no place for the node."""
    late = outcomes.history()
    following = Spoiling(late.world, "budget: {maxUnavailable: 1, ignore: {notReadyFor: 10h}}")
    outcomes.say(late, outcomes.announced(minutes_ahead=4))
    following.steps(0, 1)
    outcomes.say(late, outcomes.begun())
    following.steps(1, 1)
    return following


def _deleted() -> Spoiling:
    world = asking("a", request=ASKING)
    following = Spoiling(world)
    following.steps(0)
    world.cluster.delete_node("a")
    following.steps(1)
    return following


def _unapproved() -> Spoiling:
    following = Spoiling(asking("a", request=LATER), "events: {Reboot: {approval: true}}")
    following.steps(0)
    return following


SCENES: Mapping[Callable[[], Spoiling], tuple[Topic, ...]] = {
    _drained: (Topic.RECEIVED, Topic.STARTED, Topic.DRAINED, Topic.DONE),
    _refused: (Topic.FAILED,),
    _full: (Topic.HELD,),
    _foretold: (Topic.PLANNED, Topic.WILL_BE_MISSED, Topic.NO_LONGER_MISSED),
    _blocked: (Topic.BLOCKED,),
    _uncordoned: (Topic.UNGUARDED, Topic.DONE),
    _held: (Topic.PERSON,),
    _unapproved: (Topic.APPROVAL_NEEDED,),
    _struck: (Topic.DEADLINE_PASSED, Topic.MISSED),
    _deleted: (Topic.DONE,),
}


def _for(namespace: str, messages: list[Message]) -> Delivery:
    """What the owner of a namespace with pods on each node gets."""
    (entry,) = NOTIFY.of(builders.settings(ENTRY))
    delivery = delivery_of(entry, tuple(messages), UTC)
    on_node = {one.node: (OTHER, namespace) for one in messages}
    owners = {namespace: Namespace(annotations={"mail": "owner@example.com"})}
    (found,) = for_owners(entry, delivery, on_node, owners, UTC).deliveries
    return found


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_whatever_a_message_is_about_its_owners_read_nothing_of_others(scene: Callable[[], Spoiling]) -> None:
    sent = scene().sent
    assert {*SCENES[scene]} <= {one.topic for one in sent}
    assert any(SECRET in one.text for one in sent)

    found = _for(OWN, sent)
    assert len(found.messages) == len(sent)
    assert all(one.text for one in found.messages)
    for text in (found.title, found.text, repr(found.values()), repr(found.messages)):
        assert SECRET not in text
        assert OTHER not in text
        assert "alice" not in text


def test_each_topic_about_a_node_is_looked_at() -> None:
    # Nothing about the whole cluster goes to owners.
    of_cluster = {Topic.TWO_RECONCILERS, Topic.SETTINGS_REJECTED, Topic.SUMMARY}
    assert {topic for topics in SCENES.values() for topic in topics} == {*Topic} - of_cluster


def _said(namespace: str, sent: list[Message], topic: Topic) -> str:
    return next(one.text for one in _for(namespace, sent).messages if one.topic is topic)


def test_an_event_on_a_pod_says_nothing_that_somebody_wrote() -> None:
    events = _foretold().events

    assert SECRET in repr(events)
    assert SECRET not in why_drained(events)


def test_owners_read_of_their_own_pods_and_how_many_those_of_others_are() -> None:
    world = asking("a")
    for namespace, count in ((OWN, 5), (OTHER, 2)):
        for number in range(count):
            world.cluster.add_pod(replace(builders.pod(f"db-{number}", "a", namespace=namespace)))
        world.cluster.add_budget(BudgetSpec(namespace, "db", EVERYTHING, min_available=5))
    following = Following(world, ENTRY)
    sent = following.step()
    world.advance(minutes(1))
    sent += following.step()

    own, other = (_said(namespace, sent, Topic.BLOCKED) for namespace in (OWN, OTHER))
    assert own.startswith(f"pods stay: {OWN}/db-0 ({OWN}/db: ")
    assert f"2 more of {OWN}" in own
    assert own.endswith("; 2 pods of others")
    assert OTHER not in own
    assert f"{OTHER}/db-0" in other
    assert other.endswith("; 5 pods of others")
