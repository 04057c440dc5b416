"""A simulated cluster, and what its notices say after each pass."""

from __future__ import annotations

from datetime import datetime

from reconciler.features.notices.deriving import Pass, after_pass
from reconciler.features.notices.memory import Memory, PendingMessage, from_text, to_text
from reconciler.features.notices.messages import Message, Topic
from reconciler.features.notices.settings import NOTIFY, Notify
from reconciler.features.notices.transports.sending import Http
from reconciler.features.notices.transports.table import Tools
from reconciler.model.leases import LeaseRef, LeaseTake
from reconciler.model.values import replace
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.builders import NOW, REQUEST
from tests.support.worlds import carry_on, look, world_of

ANY = "notify: [{name: all, webhook: {url: 'http://127.0.0.1:1/'}}]"
CALM = "uncordon: {settle: 0s}\n"
ASKING = '{"kind":"Reboot"}'


def asking(*names: str, request: str = ASKING) -> World:
    """A world with a node for which nothing is asked, and these."""
    nodes = [builders.node(name, annotations={REQUEST: request}, pool="np") for name in names]
    return world_of([*nodes, builders.node("rest")])


def entries(text: str = ANY) -> tuple[Notify, ...]:
    """The entries of `notify` in a text."""
    return NOTIFY.of(builders.settings(text))


class Following:
    """Runs passes over a world, and keeps the memory of its notices as a ConfigMap does."""

    def __init__(self, world: World, text: str = ANY) -> None:
        self.world, self.settings = world, builders.settings(CALM + text)
        self.memory = Memory()

    def step(self, now: datetime | None = None) -> list[Message]:
        """Run a pass, and return the messages that it adds; they stay pending."""
        plan, outcomes = look(self.world, self.settings, now)
        before = {(one.message.id, one.to) for one in self.memory.pending}
        seen = Pass.of(plan, outcomes)
        self.memory = after_pass(self.memory, seen, NOTIFY.of(self.settings), now or self.world.now)
        assert from_text(to_text(self.memory)) == self.memory
        carry_on(self.world)
        return [one.message for one in self.memory.pending if (one.message.id, one.to) not in before]

    def topics(self, now: datetime | None = None) -> list[Topic]:
        """Run a pass, and return the topics of its messages."""
        return [one.topic for one in self.step(now)]


def message(
    topic: Topic = Topic.STARTED, node: str = "a", at: datetime = NOW, text: str = "it is"
) -> Message:
    """A message about a node."""
    return Message(topic, node, f"uid-{node}@1", topic.value, at, text)


class NoLeases:
    """No entry of `notify` keeps its threads in Leases."""

    def lease(self, ref: LeaseRef) -> None:
        raise AssertionError(ref)

    def take_lease(self, take: LeaseTake) -> None:
        raise AssertionError(take)


def tools_at(now: datetime, http: Http | None = None) -> Tools:
    """What a transport needs, with a clock that shows this moment."""
    return Tools(http or Http(total=2), NoLeases(), lambda: now)


def told(*messages: Message, to: str = "all") -> Memory:
    """A memory in which these messages are to be sent."""
    return replace(Memory(), pending=tuple(PendingMessage(one, (to,)) for one in messages))
