"""EC2 in the histories of the exploration: what it schedules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from reconciler.model.event import Kind
from reconciler.model.moments import to_text
from reconciler.model.node import Node
from reconciler.model.polling import Listing
from reconciler.settings.schema import Settings
from reconciler.simulation.world import World
from reconciler.sources.aws import source as aws
from reconciler.sources.aws.source import CODES, SECTION, InstanceEvent
from tests.explore.history import move
from tests.explore.outside import Said, SimulatedCloud
from tests.explore.truth import Channel, Told

if TYPE_CHECKING:
    from tests.explore.play import Play


@dataclass(slots=True)
class SimulatedEc2(SimulatedCloud[InstanceEvent]):
    """DescribeInstanceStatus: `events` of each instance, by node."""

    events: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    def ask(self, scopes: Sequence[str]) -> tuple[Listing[str, InstanceEvent], ...]:
        """List the events of these regions."""
        return tuple(self._answer(scope) for scope in scopes)

    def _answer(self, region: str) -> Listing[str, InstanceEvent]:
        listing: Listing[str, InstanceEvent] = Listing(region, problem=self.problem)
        if not self.problem:
            listing = aws.listing(region, self._statuses(region))
        for name, node in self.cluster.nodes.items():
            place = aws.instance_of(node.provider_id)
            if place is not None and place[0] == region:
                found = tuple(event for of, event in listing.found if of == place[1])
                self.said[name] = Said(found, self.problem)
        return listing

    def _statuses(self, region: str) -> list[dict[str, object]]:
        statuses: list[dict[str, object]] = []
        for name, node in self.cluster.nodes.items():
            place = aws.instance_of(node.provider_id)
            if place is not None and place[0] == region and self.events.get(name):
                statuses.append({"InstanceId": place[1], "Events": list(self.events[name])})
        return statuses

    def over(self) -> None:
        """Let every event be over."""
        self.events.clear()


CLIENTS = {"aws": lambda world: SimulatedEc2(world.cluster)}


def channels(world: World, node: Node, policy: Settings) -> Iterator[Channel]:
    """Yield what EC2 has answered last about a node."""
    if SECTION.of(policy).enabled:
        said: Said[InstanceEvent] = world.clients["aws"].said.get(node.name, Said())
        yield Channel("aws", not said.problem, tuple(_scheduled(one) for one in said.found))


def _scheduled(event: InstanceEvent) -> Told:
    return Told("aws", event.id, CODES.get(event.code, Kind.UNKNOWN), event.not_before)


_CODES = ("instance-reboot", "system-maintenance", "instance-stop", "instance-retirement", "strange-code")
_EC2 = ("", *(f"{code} in {date}" for date in ("60", "600", "20160") for code in _CODES))


@move("aws", 8, values=_EC2)
def ec2_event(play: Play, name: str, value: str) -> None:
    """Let EC2 schedule one more event of an instance, or let all of them be over."""
    events: dict[str, list[dict[str, object]]] = play.world.clients["aws"].events
    if not value:
        events.pop(name, None)
        return
    code, _, date = value.partition(" in ")
    found = events.setdefault(name, [])
    found.append(
        {
            "InstanceEventId": f"instance-event-{len(play.world.log.happenings)}-{len(found)}",
            "Code": code,
            "Description": "explored",
            "NotBefore": to_text(play.now + timedelta(minutes=int(date))),
        }
    )
