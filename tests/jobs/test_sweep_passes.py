"""A sweep tells what it did in all of its passes, also if a later one fails, and when it passes again."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest

from jobs.cli import main
from jobs.commands import sweep
from jobs.commands.sweep import ended_drains
from jobs.runtime.acting import Acting, Yields
from jobs.runtime.clock import SystemClock
from jobs.runtime.process import Observers
from reconciler.model.drains import DrainProgress, Phase, SlotUse
from reconciler.model.errors import ReconcilerError, Unreachable
from reconciler.model.holds import INTERNAL
from reconciler.model.outcome import Outcome, Result
from reconciler.model.plan import Hold, NodePlan, NodeStatus, Plan, Transition
from reconciler.model.ports import RequestProgress
from reconciler.model.record import CaseFacts, PlatformStart, State
from reconciler.model.values import replace
from reconciler.run import run_pass
from reconciler.simulation.world import World
from tests.support import builders
from tests.support.builders import NOW, REQUEST, known
from tests.support.stub import kubeconfig
from tests.support.worlds import world_of

ASKING = '{"kind":"Reboot"}'
SETTINGS = "mode: Enforce\nbudget: {maxUnavailable: 100%}\nuncordon: {settle: 0s}\n"

Passes = list["tuple[Plan, tuple[Outcome, ...]] | ReconcilerError"]


class _Drainer:
    """A drain that goes on with each pass but the last one."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes

    def watched_pods(self, node: str, uid: str) -> None:
        pass

    def progress(self) -> Mapping[str, DrainProgress]:
        return {"x": DrainProgress("x", "uid-x", Phase.RUNNING, total=max(1, len(self._passes)))}

    def wait(self, seconds: float) -> bool:
        del seconds
        return True


class _Acting:
    """What runs the passes of a sweep; an error is raised."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self.drainer = _Drainer(passes)
        self.waited: list[bool] = []

    @property
    def late(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is to end."""

    def drains_run(self) -> bool:
        return bool(self._passes)

    def requests(self) -> RequestProgress:
        return RequestProgress()

    def run_pass(self, *, waits: bool = False) -> tuple[Plan, tuple[Outcome, ...]]:
        self.waited.append(waits)
        now = self._passes.pop(0)
        if isinstance(now, ReconcilerError):
            raise now
        return now


def swept(passes: Passes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    """Run a sweep of these passes; its exit code."""
    return swept_by(_Acting(passes), tmp_path, monkeypatch, *options)


def swept_by(acting: _Acting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig("http://127.0.0.1:1", {})), encoding="utf-8")
    (tmp_path / "maintenance.yaml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.setattr(sweep, "Acting", lambda *_: acting)
    where = ["--config", str(tmp_path / "maintenance.yaml"), "--kubeconfig", str(tmp_path / "kubeconfig")]
    return main(["sweep", *where, *options])


def a_whole_case() -> Passes:
    """The passes over one node from its event to its end."""
    world: World = world_of([builders.node("a", annotations={REQUEST: ASKING}), builders.node("b")])
    chosen = builders.settings(SETTINGS)
    done: Passes = [run_pass(world.outside, chosen, world.now)]
    world.clock.advance(world.now)
    done.append(run_pass(world.outside, chosen, world.now))
    world.cluster.annotate("a", REQUEST, None)
    done += [run_pass(world.outside, chosen, world.now) for _ in range(2)]
    assert not world.cluster.nodes["a"].unschedulable
    return done


def test_the_actions_of_all_passes_are_told_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = swept(a_whole_case(), tmp_path, monkeypatch, "--output", "json")

    document = json.loads(capsys.readouterr().out)
    (node,) = [one for one in document["nodes"] if one["name"] == "a"]
    assert code == 0
    told = [one for one in node["actions"] if one in ("cordon", "drain", "uncordon")]
    assert told == ["cordon", "drain", "uncordon"]
    assert (node["stateBefore"], node["state"]) == ("operational", "operational")
    assert [step["to"] for step in node["transitions"]][-1] == "operational"
    assert [one["action"] for one in document["outcomes"] if one["action"] in told] == told


def test_the_text_has_a_node_that_only_an_earlier_pass_acted_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    swept(a_whole_case(), tmp_path, monkeypatch)

    text = capsys.readouterr().out
    assert re.search(r"^a\b.*: operational$", text, re.MULTILINE)
    assert re.search(r"does +cordon, drain, .*uncordon", text)


def test_what_was_done_before_an_error_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = swept([a_whole_case()[0], Unreachable("no connection")], tmp_path, monkeypatch)

    printed = capsys.readouterr()
    assert code == 3
    assert "cordon, drain" in printed.out
    assert printed.err.startswith("no connection. The API server is http")


def plan(*nodes: NodePlan) -> tuple[Plan, tuple[Outcome, ...]]:
    return Plan(NOW, "Enforce", nodes), ()


HELD = NodePlan(
    "a", "", "", State.OPERATIONAL, State.OPERATIONAL, holds=(Hold("a", "budgetLeft", "maxUnavailable is 1"),)
)


def test_a_hold_of_an_earlier_pass_that_is_over_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    swept([plan(HELD), plan()], tmp_path, monkeypatch, "--output", "json")

    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["nodes"] == []


def test_an_error_of_this_program_in_an_earlier_pass_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = replace(HELD, holds=(INTERNAL.on("a", "an error"),))

    assert swept([plan(broken), plan()], tmp_path, monkeypatch) == 1


def test_a_failure_that_a_later_pass_made_good_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Outcome("a", "cordon", Result.FAILED, "no")
    first, _ = plan(HELD)
    passes: Passes = [(first, (failed,)), (first, (replace(failed, result=Result.DONE),))]

    assert swept(passes, tmp_path, monkeypatch) == 0


def _with_a_miss(*, struck: bool = True) -> Passes:
    start = PlatformStart(known(ids=("A1",)), NOW, 2)
    case = replace(builders.record(State.REQUIRED), facts=CaseFacts((start,)))
    over = NodePlan("a", "", "", State.REQUIRED, State.OPERATIONAL, ended=case, struck=struck)
    return [(Plan(NOW, "Enforce", (over,)), ()), (Plan(NOW, "Enforce"), ())]


def test_a_node_that_was_missed_is_no_success_even_if_its_case_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert swept(_with_a_miss(), tmp_path, monkeypatch) == 4


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 4)])
def test_a_miss_that_an_earlier_sweep_has_found_is_a_row_and_no_failure_unless_strict(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    code: int,
) -> None:
    passes = _with_a_miss(struck=False)[:1]

    assert swept(passes, tmp_path, monkeypatch, "--output", "json", *options) == code
    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert node["outcome"] == "missed"


def test_a_failure_is_still_a_failure_where_a_node_was_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = _with_a_miss()
    passes.append((Plan(NOW, "Enforce"), (Outcome("b", "cordon", Result.FAILED, "no"),)))

    assert swept(passes, tmp_path, monkeypatch) == 1


def test_a_hold_of_an_earlier_pass_that_acted_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step = Transition("platform", State.OPERATIONAL, State.REQUIRED, "an event")
    acted = replace(HELD, transitions=(step,), status=NodeStatus(unread=(("imds", "silent"),)))
    swept([plan(acted), plan()], tmp_path, monkeypatch, "--output", "json")

    (node,) = json.loads(capsys.readouterr().out)["nodes"]
    assert (node["holds"], node["unknown"]) == ([], [])
    assert [one["because"] for one in node["transitions"]] == ["an event"]


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (Phase.RUNNING, Result.RUNNING),
        (Phase.DRAINED, Result.DONE),
        (Phase.TIMED_OUT, Result.LATER),
        (Phase.FAILED, Result.FAILED),
    ],
)
def test_a_drain_is_done_only_when_the_node_is_drained(phase: Phase, expected: Result) -> None:
    ordered = (Outcome("a", "cordon", Result.DONE), Outcome("a", "drain", Result.RUNNING))
    found = ended_drains(ordered, {"a": DrainProgress("a", "uid-a", phase)})

    assert [one.result for one in found] == [Result.DONE, expected]


def test_a_drain_that_could_not_be_ordered_stays_failed() -> None:
    refused = (Outcome("a", "drain", Result.FAILED, "no"),)

    assert ended_drains(refused, {"a": DrainProgress("a", "uid-a", Phase.DRAINED)}) == refused


GOES_ON = DrainProgress("a", "uid-a", Phase.RUNNING, slot=SlotUse(held=True))
BLOCKED = DrainProgress("a", "uid-a", Phase.RUNNING, slot=SlotUse(blocked_since=NOW))
ASKS_AGAIN = replace(BLOCKED, slot=SlotUse(held=True, blocked_since=NOW))
WAITS = replace(BLOCKED, slot=SlotUse(awaited=True, blocked_since=NOW))
ENDED = DrainProgress("a", "uid-a", Phase.TIMED_OUT)


@pytest.mark.parametrize(
    ("seen", "wakes"),
    [
        ([GOES_ON, BLOCKED], [False, True]),
        ([BLOCKED, ASKS_AGAIN, BLOCKED], [True, False, False]),
        ([BLOCKED, GOES_ON, BLOCKED], [True, False, True]),
        ([BLOCKED, ENDED, BLOCKED], [True, False, True]),
        ([WAITS, BLOCKED], [False, True]),
        ([BLOCKED, replace(BLOCKED, node="b")], [True, True]),
    ],
)
def test_a_drain_that_gives_its_slot_away_is_noticed_once(
    seen: list[DrainProgress], wakes: list[bool]
) -> None:
    yields = Yields()

    assert [yields.see(one) for one in seen] == wakes


class _Sweep:
    """A sweep over one drain that is blocked from the start on, on a clock of its own."""

    late = False

    def __init__(self) -> None:
        self.time = NOW
        self.passes: list[datetime] = []
        self.drainer = self

    def now(self) -> datetime:
        return self.time

    def drains_run(self) -> bool:
        return True

    def requests(self) -> RequestProgress:
        return RequestProgress()

    def run_pass(self, *, waits: bool = False) -> tuple[None, tuple[()]]:
        del waits
        self.passes.append(self.time)
        return None, ()

    def progress(self) -> Mapping[str, DrainProgress]:
        return {"a": BLOCKED} if self.passes and self.drains_run() else {}

    def wait(self, seconds: float) -> bool:
        self.time += timedelta(seconds=seconds)
        return False


class _Asking(_Sweep):
    """A sweep without drains; its hook is asked by the first pass, and answers a while later."""

    def __init__(self, answers: datetime) -> None:
        super().__init__()
        self.answers = answers

    def drains_run(self) -> bool:
        return False

    def requests(self) -> RequestProgress:
        # Each look takes a moment.
        self.time += timedelta(milliseconds=500)
        return (
            RequestProgress(0, 1) if self.time >= self.answers else RequestProgress(len(self.passes[:1]), 0)
        )


def test_a_sweep_does_not_end_before_a_pass_has_read_what_a_hook_answered() -> None:
    run = _Asking(NOW + timedelta(seconds=20))
    story = cast("sweep.Story", SimpleNamespace(add=lambda *_: None))
    until, stop = NOW + timedelta(seconds=5), threading.Event()
    stop.wait = lambda timeout=None: False  # type: ignore[method-assign]
    sweep.run_passes(cast("Acting", run), Observers(), cast("SystemClock", run), until, stop, story)

    assert len(run.passes) == 2
    assert run.passes[-1] >= run.answers


def test_a_sweep_runs_a_pass_once_when_a_drain_gives_its_slot_away() -> None:
    run = _Sweep()
    story = cast("sweep.Story", SimpleNamespace(add=lambda *_: None))
    until = NOW + sweep.LOOK_AGAIN
    sweep.run_passes(
        cast("Acting", run), Observers(), cast("SystemClock", run), until, threading.Event(), story
    )

    assert run.passes == [NOW, NOW + sweep.GLANCE]


class _Late(_Acting):
    """A sweep whose first pass goes on without an answer."""

    @property
    def late(self) -> bool:
        return self.waited == [False]


def test_a_pass_that_went_on_without_an_answer_is_followed_by_one_that_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acting = _Late(a_whole_case()[:3])
    assert swept_by(acting, tmp_path, monkeypatch) == 0

    assert acting.waited == [False, True, False]
