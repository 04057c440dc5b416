"""All notifiers as one: each gets every notice, and one that fails harms nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.features.events import registry
from reconciler.features.events.registry import AllNotifiers
from reconciler.model.errors import LockLost
from reconciler.model.plan import Notice
from reconciler.model.ports import Notification
from tests.support import builders
from tests.support.stub import connection_to_nowhere

WORDS = Notification("a", "uid-a", Notice("MaintenanceCordon", "because"))


class Remembering:
    """A notifier that remembers what it was given, and then raises an error if it has one.

    It settles nothing while it is `away`.
    """

    def __init__(self, error: Exception | None = None, *, away: bool = False) -> None:
        self.given: list[Notification] = []
        self.error = error
        self.away = away

    def notify(self, notification: Notification) -> bool:
        self.given.append(notification)
        if self.error is not None:
            raise self.error
        return not self.away


def test_every_notifier_gets_every_notice() -> None:
    first, second = Remembering(), Remembering()
    AllNotifiers({"first": first, "second": second}).notify(WORDS)

    assert (first.given, second.given) == ([WORDS], [WORDS])


def test_a_notifier_that_fails_is_logged_and_the_next_one_is_asked(caplog: pytest.LogCaptureFixture) -> None:
    broken, second = Remembering(TimeoutError("the webhook hangs")), Remembering()
    AllNotifiers({"webhook": broken, "second": second}).notify(WORDS)

    assert (broken.given, second.given) == ([WORDS], [WORDS])
    assert "notifier=webhook node=a" in caplog.text
    assert "the webhook hangs" in caplog.text


def test_a_notice_is_settled_when_it_is_for_every_notifier() -> None:
    away, second = Remembering(away=True), Remembering()
    both = AllNotifiers({"away": away, "second": second})

    assert not both.notify(WORDS)
    away.away = False
    assert both.notify(WORDS)


def test_an_unexpected_error_is_not_tried_again() -> None:
    assert AllNotifiers({"broken": Remembering(OverflowError("out of range"))}).notify(WORDS)


def test_a_lost_lock_ends_the_pass_in_any_notifier() -> None:
    second = Remembering()
    notifier = AllNotifiers({"events": Remembering(LockLost("not renewed")), "second": second})

    with pytest.raises(LockLost):
        notifier.notify(WORDS)
    assert second.given == []


def test_a_notifier_is_added_by_a_line_of_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Remembering()
    lines: dict[str, registry.NotifierFactory] = {
        "toy": lambda connection, settings, guard: toy,
        "switchedOff": lambda connection, settings, guard: None,
    }
    monkeypatch.setattr(registry, "NOTIFIERS", lines)
    with connection_to_nowhere(tmp_path) as connection:
        registry.notifiers(connection, builders.settings(), None).notify(WORDS)

    assert toy.given == [WORDS]
