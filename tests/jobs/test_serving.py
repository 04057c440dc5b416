"""`serve` in this process, before a server that refuses everything: what it survives, and what it says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.commands import serve as serving
from jobs.commands.serve import Serving
from jobs.runtime import pass_loop
from jobs.runtime.clock import ServerClock, SystemClock
from jobs.runtime.environment import Target
from jobs.runtime.pass_loop import PassLoop
from jobs.runtime.process import Observer
from jobs.runtime.supervised import Ending
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import LockHeld, NoThread, ReconcilerError, SettingsError, Unreachable
from reconciler.model.plan import Plan
from reconciler.model.values import replace
from reconciler.plugins import PluginError
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.timer import HandTimer
from tests.support.handlers import restored
from tests.support.stub import Answer, Asked, Stub, status

Script = list[BaseException]
EVERY = timedelta(hours=1)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """The errors of the first passes; later ones succeed. There are no pauses after failures."""
    errors: Script = []

    def rehearse(*_: object) -> Plan:
        if errors:
            raise errors.pop(0)
        return Plan(now=datetime.now(UTC), mode="Observe")

    monkeypatch.setattr(serving, "rehearse", rehearse)
    monkeypatch.setattr(serving, "PassLoop", partial(PassLoop, pause=lambda _: 0.0))
    monkeypatch.setattr(pass_loop, "APART", 0.01)
    return errors


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "settings" / "maintenance.yaml"
    file.parent.mkdir()
    file.write_text("mode: Observe\n", encoding="utf-8")
    return file


@pytest.fixture
def server() -> Iterator[Stub]:
    """A server that forbids everything, also the watch of nodes, but takes Events."""
    stub = Stub(refuse)
    yield stub
    stub.close()


@pytest.fixture
def target(server: Stub, tmp_path: Path) -> Target:
    return Target(str(server.write_kubeconfig(tmp_path / "kubeconfig")), None, "node-maintenance")


def refuse(asked: Asked) -> Answer:
    if asked.method == "POST":
        return Answer(status=201)
    return status(403, "Forbidden", f"no {asked.path}")


Run = Callable[[], tuple[Serving, Ending]]


class Counted(Observer):
    """Counts the ends of passes by what became of them; `good` is what was said last of the settings."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.good: bool | None = None

    def settings(self, *, good: bool) -> None:
        self.good = good

    def stands_by(self, holder: str) -> None:
        self.ends["standby"] += 1

    def succeeded(self, seconds: float, now: datetime) -> None:
        self.ends["succeeded"] += 1

    def failed(self, seconds: float) -> None:
        self.ends["failed"] += 1

    def unexpected(self) -> None:
        self.ends["unexpected"] += 1


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def run(config: Path, target: Target, counted: Counted) -> Iterator[Run]:
    connection = Connection(target.kubeconfig)
    made: list[Serving] = []

    def start() -> tuple[Serving, Ending]:
        ending = Ending()
        server = Serving(connection, target, config, EVERY, ending, counted)
        made.append(server.__enter__())
        return server, ending

    yield start
    for server in made:
        server.__exit__()
    connection.close()


def test_an_error_of_the_program_is_logged_with_its_traceback_and_the_next_pass_goes_on(
    run: Run, script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    script += [OverflowError("date value out of range"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "lone")]
    server, ending = run()
    wait_for("a good pass", lambda: "pass" not in server.unready())
    assert server.stuck() == ""
    assert not ending.stop.is_set()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    failed = [line for line in lines if line["event"] == "pass failed"]
    assert [line["failures"] for line in failed] == [1, 2]
    assert failed[0]["because"] == "OverflowError: date value out of range"
    assert "in rehearse" in failed[0]["traceback"]


def test_passes_are_counted_by_what_became_of_them(
    run: Run, script: Script, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "AGAIN", 0.0)
    script += [OverflowError("date value out of range"), Unreachable("no answer"), LockHeld("other")]
    run()
    wait_for("a good pass", lambda: counted.ends["succeeded"])

    assert counted.ends == {"failed": 2, "standby": 1, "unexpected": 1, "succeeded": 1}
    assert counted.good is True


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(NoThread("the thread 'x' can't start"), id="a thread"),
        pytest.param(PluginError("the plugin toy of toy 1.0: it does not fit"), id="a plugin"),
    ],
)
def test_a_pass_that_ends_with_an_error_that_explains_itself_is_logged_without_a_traceback(
    run: Run, script: Script, counted: Counted, capsys: pytest.CaptureFixture[str], error: ReconcilerError
) -> None:
    script.append(error)
    run()
    wait_for("a good pass", lambda: counted.ends["succeeded"])

    assert counted.ends == {"failed": 1, "succeeded": 1}
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (failed,) = [line for line in lines if line["event"] == "pass failed"]
    assert failed["because"] == f"{type(error).__name__}: {error}"
    assert "traceback" not in failed


def test_a_watch_that_does_not_work_is_said_by_readyz(run: Run, script: Script) -> None:
    server, _ = run()
    wait_for("a good pass", lambda: "pass" not in server.unready())
    wait_for("the watch's failure", server.unready)
    assert server.unready().startswith("the watch of nodes failed ")
    assert "Forbidden: " in server.unready()
    assert server.stuck() == ""


def test_a_change_of_the_plan_that_comes_while_the_pass_runs_is_not_left_to_the_schedule(
    run: Run, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[Plan] = []

    def slow(*_: object) -> Plan:
        now = datetime.now(UTC)
        # The pass ends after the moment at which its plan changes.
        began = now - timedelta(seconds=5)
        passes.append(Plan(now=began, mode="Observe", next_change=began + timedelta(seconds=2)))
        return passes[-1]

    monkeypatch.setattr(serving, "rehearse", slow)
    run()
    wait_for("a second pass", lambda: len(passes) > 1)


class HandTime:
    """Passes of `serve` by a clock that the test moves, from `start` on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, start: datetime) -> None:
        self._start, self._seconds = start, 0.0
        self._timer = HandTimer(lambda: self._seconds)
        self.loops: list[PassLoop] = []
        monkeypatch.setattr(serving, "PassLoop", self._loop)
        monkeypatch.setattr(ServerClock, "now", lambda _: self.now)
        monkeypatch.setattr(SystemClock, "now", lambda _: self.now)

    def _loop(self, run: Any, every: float, failed: Any, ending: Ending) -> PassLoop:
        clock = lambda: self._seconds  # noqa: E731
        made = PassLoop(run, every, failed, ending, timer=lambda ring: self._timer, clock=clock)
        self.loops.append(made)
        return made

    @property
    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._seconds)

    def next_pass(self) -> datetime:
        """Make the pass that is due, and return when the next one is, to the second."""
        self._seconds = max(self._seconds, self._timer.at)
        self.loops[-1].make_pass()
        seconds = round(self._timer.at)
        return self._start + timedelta(seconds=seconds)


@pytest.fixture
def made(config: Path, target: Target) -> Iterator[Callable[[], Serving]]:
    """Makes a `serve` that is not entered: the test makes its passes."""
    connection = Connection(target.kubeconfig)
    yield lambda: Serving(connection, target, config, EVERY, Ending())
    connection.close()


def test_passes_begin_at_the_times_of_the_cron_schedule(
    script: Script, config: Path, made: Callable[[], Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('timeZone: Europe/Berlin\npasses: {cron: "*/20 9 * * *"}\n', encoding="utf-8")
    at = HandTime(monkeypatch, datetime(2026, 11, 28, 7, 55, tzinfo=UTC))
    server = made()

    due = [at.next_pass() for _ in range(4)]
    assert [f"{one:%d %H:%M:%S}" for one in due] == [
        "28 08:00:00",
        "28 08:20:00",
        "28 08:40:00",
        "29 08:00:00",
    ]
    assert at.loops[-1].watchdog.every == timedelta(hours=23, minutes=20).total_seconds()
    assert "pass" not in server.unready()

    # Other settings apply from the pass that reads them.
    config.write_text("passes: {every: 5m}\n", encoding="utf-8")
    assert f"{at.next_pass():%d %H:%M:%S}" == "29 08:05:00"
    assert at.loops[-1].watchdog.every == timedelta(minutes=5).total_seconds()


def test_the_plans_next_change_does_not_wait_for_the_cron_schedule(
    script: Script, config: Path, made: Callable[[], Serving], monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('passes: {cron: "@daily"}\n', encoding="utf-8")
    at = HandTime(monkeypatch, datetime(2026, 11, 28, 8, 0, tzinfo=UTC))
    changes = at.now + timedelta(minutes=3)
    monkeypatch.setattr(serving, "rehearse", lambda *_: Plan(now=at.now, mode="Observe", next_change=changes))
    made()

    assert at.next_pass() == changes


def as_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set what the downward API would set."""
    for name, value in {"NAME": "reconciler-0", "NAMESPACE": "node-maintenance", "UID": "uid-0"}.items():
        monkeypatch.setenv(f"POD_{name}", value)


OUR_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "namespace": "node-maintenance",
    "name": "reconciler-0",
    "uid": "uid-0",
}


@pytest.fixture
def in_pod(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process in our Pod, which writes its logs as `serve` does."""
    as_pod(monkeypatch)
    with restored():
        yield


@pytest.mark.usefixtures("in_pod")
def test_a_start_without_settings_ends_with_the_mistakes_and_an_event_on_our_pod(
    config: Path, target: Target, server: Stub
) -> None:
    config.write_text("mode: Enforced\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=f"^{config}:1:"):
        serving.serve(config, target, listen=None, every=EVERY)

    (asked,) = server.asked
    event = json.loads(asked.body)
    assert (event["reason"], event["type"]) == ("SettingsRejected", "Warning")
    assert event["message"].startswith("serve does not start: the settings can't be used, ")
    assert f"{config}:1:" in event["message"]
    assert event["involvedObject"] == OUR_POD


@pytest.mark.usefixtures("in_pod")
def test_a_start_without_settings_ends_with_the_mistakes_whatever_the_api_server_does(
    config: Path, target: Target, server: Stub
) -> None:
    config.unlink()
    server.close()
    for where in (target, replace(target, kubeconfig="/nowhere/kubeconfig")):
        with pytest.raises(SettingsError, match="can't be read: No such file"):
            serving.serve(config, where, listen=None, every=EVERY)


@pytest.mark.parametrize("content", [b"mode: \xff\xfe", b"mode: Enforced\n"])
def test_whatever_is_in_a_changed_settings_file_the_previous_ones_apply(
    run: Run,
    script: Script,
    config: Path,
    content: bytes,
    server: Stub,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    counted: Counted,
) -> None:
    as_pod(monkeypatch)

    def events() -> list[dict[str, Any]]:
        return [json.loads(one.body) for one in server.asked if one.method == "POST"]

    running, _ = run()
    wait_for("a good pass", lambda: "pass" not in running.unready())
    fresh = config.with_name("fresh")
    fresh.write_bytes(content)
    fresh.rename(config)
    said: list[str] = []

    def rejected() -> bool:
        said.append(capsys.readouterr().out)
        return "settings rejected; previous ones still apply" in "".join(said)

    wait_for("the rejection", rejected)
    assert "settings rejected at " in running.trouble()
    assert f" still apply: {config}:1:" in running.trouble()
    assert "settings" not in running.unready(), "the page would have no endpoint"
    assert running.stuck() == "", "a restart would lose the last good settings"
    wait_for("the Event", events)
    wait_for("its metric", lambda: counted.good is False)
    (event,) = events()
    assert (event["reason"], event["type"]) == ("SettingsRejected", "Warning")
    assert event["message"].startswith("settings rejected at ")
    assert f" still apply: {config}:1:" in event["message"]
    assert event["involvedObject"] == OUR_POD

    fresh.write_text("mode: Observe\n", encoding="utf-8")
    fresh.rename(config)
    wait_for("the repair", lambda: "settings rejected" not in running.trouble())
    wait_for("its metric", lambda: counted.good)
    wait_for("the Event that it is over", lambda: len(events()) == 2)
    assert (events()[1]["reason"], events()[1]["type"]) == ("SettingsAccepted", "Normal")
    assert events()[1]["involvedObject"] == OUR_POD
