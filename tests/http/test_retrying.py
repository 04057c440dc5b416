"""Writing until it is settled: what is repeated, what is read in between, and when it ends."""

from collections.abc import Callable

import pytest

from reconciler.http.retrying import PATIENCE, TRIES, write_until_settled
from reconciler.model.errors import ClusterError, Conflict, Forbidden, TooManyRequests, Unreachable


class Scripted:
    """A write that raises the given errors in turn, then succeeds; keeps the order of all calls."""

    def __init__(self, *errors: ClusterError) -> None:
        self.calls: list[str] = []
        self.slept: list[float] = []
        self._errors = list(errors)

    def write(self) -> None:
        self.calls.append("write")
        if self._errors:
            raise self._errors.pop(0)

    def settled(self, answer: bool = False) -> Callable[[], bool]:
        def read() -> bool:
            self.calls.append("read")
            return answer

        return read


def test_a_conflict_is_followed_by_a_read_and_another_write() -> None:
    script = Scripted(Conflict("one"), Conflict("two"))
    write_until_settled(script.write, script.settled(), sleep=script.slept.append)

    assert script.calls == ["write", "read", "write", "read", "write"]
    assert len(script.slept) == 1


def test_a_pause_comes_before_the_read_so_that_the_write_follows_it_at_once() -> None:
    script = Scripted(*(Conflict(str(number)) for number in range(TRIES)))
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        script.calls.append("sleep")
        slept.append(seconds)

    with pytest.raises(Conflict):
        write_until_settled(script.write, script.settled(), sleep=sleep)
    first = ["write", "read", "write", "sleep", "read", "write"]
    assert script.calls[: len(first)] == first
    assert script.calls.count("write") == TRIES
    # Random and growing, so that two writers do not stay in step.
    assert len(set(slept)) == len(slept)
    assert sum(slept) < 2 * TRIES


def test_a_write_whose_answer_was_lost_is_not_sent_again() -> None:
    script = Scripted(Unreachable("cut"))
    write_until_settled(script.write, script.settled(True), on=(Unreachable,), sleep=script.slept.append)

    assert (script.calls, script.slept) == (["write", "read"], [])


def test_after_the_last_try_the_last_error_is_raised_unless_it_was_written_after_all() -> None:
    errors = [Conflict(str(number)) for number in range(TRIES)]
    script = Scripted(*errors)
    with pytest.raises(Conflict) as caught:
        write_until_settled(script.write, script.settled(), sleep=script.slept.append)

    assert caught.value is errors[-1]
    assert script.calls == ["write", "read"] * TRIES
    assert len(script.slept) == TRIES - 2


def test_any_other_error_ends_it_at_once() -> None:
    script = Scripted(Forbidden("no"))
    with pytest.raises(Forbidden):
        write_until_settled(script.write, script.settled(), sleep=script.slept.append)

    assert script.calls == ["write"]


def test_what_the_read_raises_is_never_repeated() -> None:
    script = Scripted(Conflict("seen"))

    def settled() -> bool:
        raise Conflict("it no longer fits")

    with pytest.raises(Conflict, match="no longer fits"):
        write_until_settled(script.write, settled, sleep=script.slept.append)
    assert script.calls == ["write"]


@pytest.mark.parametrize("error", [TooManyRequests, Conflict])
def test_a_pause_that_the_server_asks_for_is_kept_and_a_long_one_ends_it(error: type[ClusterError]) -> None:
    script = Scripted(error("busy", retry_after=9), error("busy", retry_after=3600))
    with pytest.raises(error):
        write_until_settled(script.write, script.settled(), on=(error,), sleep=script.slept.append)
    assert (script.slept, script.calls) == ([9], ["write", "read"] * 2)


def test_an_error_that_came_late_is_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    script, seconds = Scripted(Unreachable("cut"), Unreachable("cut again")), iter([0.0, 1.0, PATIENCE + 1])
    monkeypatch.setattr("reconciler.http.retrying.time.monotonic", lambda: next(seconds))
    with pytest.raises(Unreachable, match="again"):
        write_until_settled(script.write, script.settled(), on=(Unreachable,), sleep=script.slept.append)
    assert script.calls == ["write", "read"] * 2
