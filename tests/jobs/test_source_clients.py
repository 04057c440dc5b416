"""The clients of polled sources: when each is made, and how one that may write nothing keeps answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from jobs.runtime.outside import KEPT_PROBLEM, Keeping, SourceClients, factory
from reconciler.http.retrying import Guard
from reconciler.model.machine import PlatformWriter
from reconciler.model.polling import Listing
from reconciler.passes.polled import PolledSource
from reconciler.run import PARTS
from reconciler.settings.schema import Settings
from tests.support import builders
from tests.support.builders import minutes

SETTINGS = builders.settings()


@dataclass(frozen=True, slots=True)
class Section:
    """What the settings have of a source."""

    enabled: bool = True
    every: timedelta = minutes(15)


class Queried:
    """A source of this name, whose client is a `Client`."""

    client = __name__

    def __init__(self, name: str, sections: dict[str, Section]) -> None:
        self.name, self._sections = name, sections

    def section(self, _: Settings) -> Section:
        """Return its section as it is now."""
        return self._sections[self.name]


class Client:
    """Asks nobody, and may write."""

    def ask(self, scopes: Sequence[str], /) -> tuple[Listing[str, int], ...]:
        """Return no answer."""
        return ()

    def perform(self, *_: Any) -> None:
        """Do nothing."""


def for_source(settings: Settings, guard: Guard | None) -> Client:
    """Return the client, as the module of a source's client does."""
    return Client()


@pytest.fixture
def sections() -> dict[str, Section]:
    """What the settings have of two sources."""
    return {"one": Section(), "two": Section()}


@pytest.fixture
def sources(sections: dict[str, Section]) -> list[Any]:
    """Two sources."""
    return [Queried(name, sections) for name in sections]


def guard() -> None:
    """Let everything be written."""


def test_only_sources_that_are_on_have_a_client(sections: dict[str, Section], sources: list[Any]) -> None:
    clients = SourceClients(sources, guard)
    sections["one"] = Section(enabled=False)
    assert clients.of(SETTINGS).keys() == {"two"}

    sections["one"] = Section()
    assert clients.of(SETTINGS).keys() == {"one", "two"}

    sections["two"] = Section(enabled=False)
    assert clients.of(SETTINGS).keys() == {"one"}


def test_a_client_stays_until_its_own_section_changes(
    sections: dict[str, Section], sources: list[Any]
) -> None:
    clients = SourceClients(sources, guard)
    first = clients.of(SETTINGS)
    assert clients.of(SETTINGS) == first

    sections["one"] = Section(every=minutes(30))
    second = clients.of(SETTINGS)
    assert second["two"] is first["two"]
    assert second["one"] is not first["one"]


@pytest.mark.parametrize("source", PARTS.sources.polled, ids=lambda source: source.name)
def test_the_module_that_a_source_names_makes_its_client(source: PolledSource[Any, Any]) -> None:
    assert callable(factory(source))


def test_without_a_guard_a_client_keeps_answers_and_starts_nothing(sources: list[Any]) -> None:
    assert isinstance(Client(), PlatformWriter)

    found = SourceClients(sources).of(SETTINGS)

    assert {type(client) for client in found.values()} == {Keeping}
    assert not any(isinstance(client, PlatformWriter) for client in found.values())


@dataclass(slots=True)
class Service:
    """Counts its queries; `answers` are given in turn, and the last one is repeated."""

    answers: list[Listing[str, int]]
    asked: list[str] = field(default_factory=list)

    def ask(self, scopes: Sequence[str], /) -> tuple[Listing[str, int], ...]:
        self.asked += scopes
        now = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        return tuple(Listing(one, now.found, now.seen, now.problem, now.wait, now.asked) for one in scopes)


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        pytest.param(Listing("", (("a", 1),)), 900.0, id="an answer for its interval"),
        pytest.param(Listing("", problem="500"), KEPT_PROBLEM, id="a problem for a minute"),
        pytest.param(Listing("", problem="429", wait=240.0), 240.0, id="as long as the service wishes"),
        pytest.param(Listing("", problem="429", wait=1e6), 900.0, id="never longer than the interval"),
    ],
)
def test_an_answer_is_repeated_until_its_time_is_over(answer: Listing[str, int], seconds: float) -> None:
    clock = {"seconds": 0.0}
    service = Service([answer])
    client = Keeping(service, 900.0, clock=lambda: clock["seconds"])
    first = client.ask(["x"])

    clock["seconds"] = seconds - 1
    (again,) = client.ask(["x"])
    assert service.asked == ["x"]
    assert (again.found, again.problem, again.wait) == (first[0].found, first[0].problem, None)

    clock["seconds"] = seconds
    client.ask(["x"])
    assert service.asked == ["x", "x"]


def test_a_query_that_failed_is_not_repeated_as_often_as_others() -> None:
    clock = {"seconds": 0.0}
    service = Service([Listing("", problem="a wrong password")])
    client = Keeping(service, 10.0, clock=lambda: clock["seconds"])

    for seconds in (0.0, 10.0, KEPT_PROBLEM - 1, KEPT_PROBLEM):
        clock["seconds"] = seconds
        client.ask(["x"])

    assert service.asked == ["x", "x"]


def test_what_was_not_asked_for_is_not_kept_and_the_order_stays() -> None:
    service = Service([Listing("", (("a", 1),)), Listing("", asked=False), Listing("", (("b", 2),))])
    client = Keeping(service, 900.0, clock=lambda: 0.0)
    client.ask(["x"])

    assert [one.asked for one in client.ask(["w", "x"])] == [False, True]
    assert [(one.scope, one.found) for one in client.ask(["x", "w"])] == [
        ("x", (("a", 1),)),
        ("w", (("b", 2),)),
    ]
    assert service.asked == ["x", "w", "w"]
