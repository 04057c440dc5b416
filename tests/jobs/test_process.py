"""What features give to a process: each observer sees all that happens, and options reach their command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import MappingProxyType
from typing import Any

import click
import pytest
from click.testing import CliRunner

from jobs.runtime import process
from jobs.runtime.process import Observer, Observers, Past, Process, Seen, inform, options_of_features
from reconciler.model.errors import LockLost
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from tests.support.builders import NOW


class Noted(Observer):
    """Notes what it sees in a list that others share."""

    def __init__(self, name: str, seen: list[str], past: Past | None = None) -> None:
        self.name, self.seen, self._past = name, seen, past

    def stopped(self) -> None:
        self.seen.append(f"{self.name} stopped")

    def past(self, since: datetime, now: datetime) -> Past | None:
        return self._past

    @contextmanager
    def passing(self) -> Iterator[Seen]:
        def see(plan: Plan, outcomes: Sequence[Outcome]) -> None:
            self.seen.append(f"{self.name} {plan.mode}")

        yield see


def test_every_observer_sees_what_happens_in_their_order() -> None:
    seen: list[str] = []
    past = Past(NOW, ())
    observers = Observers(Noted("a", seen), Noted("b", seen, past))
    with observers.passing() as see:
        see(Plan(NOW, "Enforce"), ())
    observers.stopped()

    assert seen == ["a Enforce", "b Enforce", "a stopped", "b stopped"]
    assert observers.past(NOW, NOW) is past


class Broken(Observer):
    """Fails at whatever it sees."""

    def stopped(self) -> None:
        raise ZeroDivisionError

    @contextmanager
    def passing(self) -> Iterator[Seen]:
        def see(plan: Plan, outcomes: Sequence[Outcome]) -> None:
            raise ZeroDivisionError

        yield see


def test_an_observer_that_fails_harms_no_other_and_no_pass(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []
    observers = Observers(Broken(), Noted("a", seen))
    with observers.passing() as see:
        see(Plan(NOW, "Enforce"), ())
    observers.stopped()

    assert seen == ["a Enforce", "a stopped"]
    assert caplog.text.count("internal error: Broken misses what happens: ZeroDivisionError") == 2


def test_who_hears_that_the_lock_is_lost_ends_the_pass() -> None:
    def lost(_: Observer) -> None:
        raise LockLost("gone")

    with pytest.raises(LockLost):
        inform([Observer()], lost)


def test_nothing_that_an_observer_may_see_is_forgotten() -> None:
    public = {name for name in vars(Observer) if not name.startswith("_")}

    assert public <= vars(Observers).keys()


def test_the_values_of_options_of_features_reach_their_command(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"sweep": (click.option("--first"), click.option("--second", default="2"))}
    monkeypatch.setattr(process, "processes", lambda: (Process(options=MappingProxyType(options)), Process()))
    got: list[Mapping[str, Any]] = []

    @click.command()
    @click.option("--own")
    @options_of_features("sweep")
    def command(own: str, given: Mapping[str, Any]) -> int:
        got.append({**given, "own": own})
        return 0

    done = CliRunner().invoke(command, ["--own", "o", "--first", "1"])
    assert (done.exit_code, got) == (0, [{"first": "1", "second": "2", "own": "o"}])
