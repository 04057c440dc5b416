"""What a command that ends leaves of its metrics: a file, or a request to a Pushgateway."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jobs.cli import main
from jobs.runtime.process import Observers, Passed
from reconciler.features.metrics import exposition
from reconciler.features.metrics.exposition import holds_in
from reconciler.features.metrics.output import MetricsOutput, RunMeter
from reconciler.model.drains import DrainProgress, Phase
from reconciler.model.errors import OutputError, Unreachable
from reconciler.model.plan import Hold, NodePlan, Plan
from reconciler.model.record import State
from reconciler.model.values import replace
from tests.support import builders
from tests.support.builders import NOW, minutes
from tests.support.stub import Answer, Asked, Stub

SETTINGS = builders.settings()
Answering = Callable[[Asked], Answer]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "node_maintenance.prom"


@pytest.fixture
def answers() -> list[Answer]:
    return [Answer()]


@pytest.fixture
def gateway(answers: list[Answer]) -> Iterator[Stub]:
    stub = Stub(lambda _: answers[0])
    yield stub
    stub.close()


def held(now: datetime = NOW, code: str = "windowOpen") -> Plan:
    """A plan with a node that waits."""
    hold = Hold("a", code, "because")
    node = NodePlan("a", "", "", State.REQUIRED, State.REQUIRED, holds=(hold,))
    return Plan(now, "Observe", nodes=(node,), managed=1)


def observed(output: MetricsOutput, warn: Callable[[str], object] = print) -> Observers:
    return Observers(RunMeter(output, warn, lambda: NOW))


def run(output: MetricsOutput, plan: Plan) -> list[str]:
    """A command that rehearses this plan; its warnings."""
    warnings: list[str] = []
    with observed(output, warnings.append) as observers:
        assert observers.timed(lambda: plan) is plan
        observers.after(Passed(plan, SETTINGS))
    return warnings


def series(file: Path) -> dict[str, float]:
    families = text_string_to_metric_families(file.read_text(encoding="utf-8"))
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_a_run_leaves_its_metrics_in_a_file(file: Path) -> None:
    assert run(MetricsOutput(file), held()) == []

    found = series(file)
    assert found["node_maintenance_node_hold"] == 1
    assert found["node_maintenance_pass_last_success_timestamp_seconds"] > NOW.timestamp()
    assert found["node_maintenance_pass_duration_seconds_count"] == 1
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_a_hold_is_there_since_the_run_that_saw_it_first(file: Path) -> None:
    run(MetricsOutput(file), held())
    run(MetricsOutput(file), held(NOW + minutes(5)))

    assert holds_in(file.read_text(encoding="utf-8")) == {("a", "windowOpen"): NOW}
    run(MetricsOutput(file), held(NOW + minutes(6), "budgetLeft"))
    assert holds_in(file.read_text(encoding="utf-8")) == {("a", "budgetLeft"): NOW + minutes(6)}


@pytest.mark.parametrize(
    "before",
    [
        b"\xff\xfe",
        b"node_maintenance_node_hold_since_timestamp_seconds{node=",
        b'node_maintenance_node_hold_since_timestamp_seconds{node="a",code="windowOpen"} 1e300\n',
        b'node_maintenance_node_hold_since_timestamp_seconds{node="a",code="windowOpen"} 4e9\n',
        b'node_maintenance_node_hold_since_timestamp_seconds{node="a"} 1.7e9\n',
    ],
)
def test_whatever_is_in_the_file_before_a_hold_is_there_since_now_at_the_latest(
    file: Path, before: bytes
) -> None:
    file.write_bytes(before)

    assert run(MetricsOutput(file), held()) == []

    assert holds_in(file.read_text(encoding="utf-8")) == {("a", "windowOpen"): NOW}


def test_a_run_without_a_plan_leaves_the_file_of_the_one_before(file: Path) -> None:
    def fails() -> Plan:
        raise Unreachable("no answer")

    file.write_text("before", encoding="utf-8")
    with observed(MetricsOutput(file)) as observers:
        with pytest.raises(Unreachable):
            observers.timed(fails)
        observers.drains({})

    assert file.read_text(encoding="utf-8") == "before"


def test_an_error_after_a_plan_leaves_what_was_taken_before_it(file: Path) -> None:
    def fails() -> Plan:
        raise Unreachable("no answer")

    def runs() -> None:
        with observed(MetricsOutput(file)) as observers:
            observers.after(Passed(held(), SETTINGS))
            observers.timed(fails)

    with pytest.raises(Unreachable):
        runs()

    assert series(file)["node_maintenance_pass_nodes"] == 1


def test_the_drains_at_the_end_are_those_that_are_shown(file: Path) -> None:
    drains = {"a": DrainProgress("a", "u", Phase.RUNNING)}
    with observed(MetricsOutput(file)) as observers:
        observers.after(Passed(held(), SETTINGS, rehearsed=False, drains=drains))
        observers.drains({"a": replace(drains["a"], phase=Phase.FAILED, finished=NOW)})

    assert series(file)["node_maintenance_drains_running"] == 0
    assert 'drains_total{result="failed"} 1.0' in file.read_text(encoding="utf-8")


def test_a_file_that_can_not_be_written_is_a_warning_and_one_without_a_folder_an_error(file: Path) -> None:
    file.mkdir()
    (warning,) = run(MetricsOutput(file), held())
    assert warning.startswith(f"the metrics are not in the file: {file}: can't be written: ")

    with pytest.raises(OutputError, match="does not exist"):
        observed(MetricsOutput(file.parent / "no" / "file"))


def test_metrics_are_pushed_in_place_of_those_of_the_last_run(gateway: Stub) -> None:
    assert run(MetricsOutput(metrics_push=gateway.url), held()) == []

    (asked,) = gateway.asked
    assert (asked.method, asked.path) == ("PUT", "/metrics/job/node-maintenance")
    assert b"node_maintenance_pass_nodes 1.0\n" in asked.body
    # Nothing says since when: the run before has left nothing that could be read.
    assert b"node_hold_since" not in asked.body


def test_metrics_go_by_otlp_too_and_without_the_extra_that_is_a_warning(
    gateway: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = MetricsOutput(metrics_push=gateway.url, metrics_otlp=gateway.url)
    assert run(both, held()) == []
    assert [one.path for one in gateway.asked] == ["/metrics/job/node-maintenance", "/v1/metrics"]

    monkeypatch.delitem(sys.modules, "reconciler.features.metrics.otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.metrics.export", None)
    (warning,) = run(both, held())
    assert warning == "the metrics are not pushed: --metrics-otlp needs the extra [otel]"


def test_a_gateway_that_does_not_take_them_is_a_warning(gateway: Stub, answers: list[Answer]) -> None:
    answers[0] = Answer(b"text format parsing error\n in line 1", status=400)
    (refused,) = run(MetricsOutput(metrics_push=gateway.url), held())
    assert refused == (
        "the metrics are not pushed: the gateway answered 400: text format parsing error in line 1"
    )
    gateway.close()
    (silent,) = run(MetricsOutput(metrics_push=gateway.url), held())
    assert silent.startswith("the metrics are not pushed: no answer of the gateway: ")


def test_a_gateway_that_hangs_ends_with_its_time(
    gateway: Stub, answers: list[Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exposition, "TOTAL", 0.2)
    answers[0] = Answer(hang=True)

    (warning,) = run(MetricsOutput(metrics_push=gateway.url), held())
    assert "no answer of the gateway" in warning


@pytest.mark.parametrize("url", ["http://169.254.169.254", "pushgateway:9091"])
def test_metrics_are_sent_to_no_other_address(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--metrics-push", url]) == 2

    assert "--metrics-push" in capsys.readouterr().err


@pytest.mark.heavy
def test_no_command_loads_what_it_needs_for_metrics_unless_they_are_wanted() -> None:
    commands = ", ".join(f"jobs.commands.{name}" for name in ("drain", "report", "serve", "sweep"))
    code = f"import sys, {commands}; print('prometheus_client' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8")

    assert done.stdout == "False\n"
