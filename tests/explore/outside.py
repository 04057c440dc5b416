"""Who answers from outside of the cluster: the clouds, and a calendar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Generic, TypeVar

from reconciler.model.content import CalendarPlace, CalendarText
from reconciler.model.moments import to_text
from reconciler.simulation.cluster import SimulatedCluster
from tests.explore.history import move

if TYPE_CHECKING:
    from tests.explore.play import Play


Fact = TypeVar("Fact")


@dataclass(frozen=True, slots=True)
class Said(Generic[Fact]):
    """What a cloud answered last about a node: facts, or the problem for which it refused."""

    found: tuple[Fact, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class SimulatedCloud(Generic[Fact]):
    """A cloud that a source asks. `problem` refuses every request; `said` are its last answers, by node."""

    cluster: SimulatedCluster
    problem: str = ""
    said: dict[str, Said[Fact]] = field(default_factory=dict)

    def over(self) -> None:
        """Let everything that it plans be over."""
        raise NotImplementedError


@move("arm", 3, values=("", "403 AuthorizationFailed", "503"))
def cloud(play: Play, _: str, value: str) -> None:
    """Let the clouds answer, or not."""
    for one in play.clouds:
        one.problem = value


@dataclass(slots=True)
class Calendars:
    """A CalendarReader that finds the same content at each place."""

    found: CalendarText = CalendarText("[]")

    def read(self, places: Sequence[CalendarPlace]) -> Mapping[str, CalendarText]:
        """Return the content of each place."""
        return {place.name: self.found for place in places}


_SPANS = {"0 to 60": (0, 60), "0 to 600": (0, 600), "30 to 90": (30, 90), "-60 to 10000": (-60, 10000)}


@move("calendar", 5, values=("", *_SPANS, "unreadable"), on_node=False)
def calendar(play: Play, _: str, value: str) -> None:
    """Change the content of the calendar: no event, one event from and to so many minutes, or unreadable."""
    if value == "unreadable":
        play.calendars.found = CalendarText(unread="403 Forbidden")
    elif value:
        begin, end = (to_text(play.now + timedelta(minutes=one)) for one in _SPANS[value])
        play.calendars.found = CalendarText(f"- {{start: {begin}, end: {end}}}")
    else:
        play.calendars.found = CalendarText("[]")
    play.wake()
