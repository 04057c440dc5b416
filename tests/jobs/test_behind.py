"""Events behind passes: their order, what is not put off, and what a failure drops."""

from __future__ import annotations

import threading

import pytest

from jobs.runtime import behind
from jobs.runtime.behind import FAILED, Behind, OnceBeside
from reconciler.kubernetes.scale.beside import ThreadsBeside
from reconciler.model.errors import LockLost
from reconciler.model.plan import Notice
from reconciler.model.ports import Notification
from tests.support.fakes.threads import Once, refused


class _Notifier:
    """Keeps what it is given, once it may."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.may = threading.Event()
        self.answers: list[bool | Exception] = []

    def notify(self, notification: Notification) -> bool:
        if not notification.notice.once:
            self.may.wait(30)
        self.told.append(notification.node)
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer


def _about(node: str, once: str = "") -> Notification:
    return Notification(node, "uid", Notice("Reason", "message", once=once))


def test_a_pass_does_not_wait_and_all_are_sent_in_order() -> None:
    notifier = _Notifier()
    later = Behind(lambda: None).over(notifier)
    assert all(later.notify(_about(f"n{number}")) for number in range(20))
    assert notifier.told == []

    notifier.may.set()
    later.close()
    assert notifier.told == [f"n{number}" for number in range(20)]


def test_what_a_record_notes_is_sent_at_once() -> None:
    notifier = _Notifier()
    notifier.answers = [False]
    assert not Behind(lambda: None).over(notifier).notify(_about("n", once="fact"))
    assert notifier.told == ["n"]


@pytest.mark.parametrize("answers", [[False] * FAILED, [LockLost("gone")]])
def test_after_failures_the_rest_is_dropped(answers: list[bool | Exception]) -> None:
    notifier = _Notifier()
    notifier.answers = list(answers)
    later = Behind(lambda: None).over(notifier)
    for number in range(20):
        later.notify(_about(f"n{number}"))
    notifier.may.set()
    later.close()
    assert len(notifier.told) == len(answers)


def test_what_does_not_fit_is_sent_by_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behind, "MOST", 0)
    notifier = _Notifier()
    notifier.may.set()
    assert Behind(lambda: None).over(notifier).notify(_about("n"))
    assert notifier.told == ["n"]


def test_an_event_whose_thread_can_not_start_is_sent_by_the_pass_and_the_next_one_is_not() -> None:
    notifier = _Notifier()
    later = Behind(lambda: None).over(notifier)
    with refused(Once("events")):
        notifier.may.set()
        later.notify(_about("first"))
        assert notifier.told == ["first"]
    notifier.may.clear()
    later.notify(_about("second"))
    assert notifier.told == ["first"]

    notifier.may.set()
    later.close()
    assert notifier.told == ["first", "second"]


class _Silent:
    """A notifier that sends nothing until the test is over."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def notify(self, notification: Notification) -> bool:
        del notification
        return self.over.wait()


def test_a_notice_that_hangs_holds_no_pass_and_is_not_sent_until_it_ends() -> None:
    notifier, beside = _Silent(), ThreadsBeside()
    beside.begins(0.05)
    try:
        assert not OnceBeside(notifier, beside).notify(_about("n", once="fact"))
    finally:
        notifier.over.set()
    beside.begins(None)
    assert OnceBeside(notifier, beside).notify(_about("n", once="fact"))
