"""What a process counts of itself while it runs, and what it shows of its last pass."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jobs.runtime.metrics import Family, Sample, Type
from jobs.runtime.process import Observer, Observers, Passed
from reconciler.features.metrics import metering
from reconciler.features.metrics.catalogue import FAMILIES, PREFIX
from reconciler.features.metrics.metering import Meter
from reconciler.features.metrics.samples import ProcessView
from reconciler.http.failures import report
from reconciler.model.case_outcome import CaseResult
from reconciler.model.drains import DrainOrder, DrainProgress, Phase
from reconciler.model.event import Kind
from reconciler.model.plan import Actions, NodePlan, Plan
from reconciler.model.record import State
from reconciler.model.values import replace
from tests.features.metrics.everything import full
from tests.support.builders import (
    NOW,
    held_node,
    minutes,
    node,
    planned,
    record,
    reported,
    settings,
    signal,
    snapshot,
)
from tests.support.cases import ended

Series = dict[tuple[str, tuple[str, ...]], float]


@pytest.fixture
def meter() -> Iterator[Meter]:
    with Meter() as made:
        yield made


def shown(meter: Meter) -> Series:
    """Our series, without the prefix; labels in the order of their names."""
    return {
        (
            sample.name.removeprefix(PREFIX),
            tuple(value for _, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(meter.text().decode())
        for sample in family.samples
        if sample.name.startswith(PREFIX)
    }


def with_case(now: datetime = NOW) -> Plan:
    event = reported(signal(Kind.REBOOT, not_before=NOW + timedelta(hours=9)))
    return replace(planned(snapshot(node("a"), readings={"a": event})), now=now)


def draining(since: datetime = NOW) -> Plan:
    """A plan that orders the drain of a node."""
    todo = Actions(drain=DrainOrder("a", "u", since, None))
    state = State.IN_MAINTENANCE
    return Plan(NOW, "Enforce", nodes=(NodePlan("a", "", "", state, state, todo=todo),), managed=1)


def progress(phase: Phase, finished: datetime | None = None) -> dict[str, DrainProgress]:
    return {"a": DrainProgress("a", "u", phase, finished=finished)}


def test_passes_are_counted_by_their_results(meter: Meter) -> None:
    meter.succeeded(0.2, NOW)
    meter.failed(3.0)
    meter.stands_by("other")

    found = shown(meter)
    assert [found["passes_total", (result,)] for result in ("succeeded", "failed", "standby")] == [1, 1, 1]
    assert found["pass_duration_seconds_count", ()] == 2
    assert found["pass_last_success_timestamp_seconds", ()] == NOW.timestamp()


def test_a_standby_shows_no_nodes_but_the_process_that_leads(meter: Meter) -> None:
    meter.shows(with_case(), {})
    assert any(name == "node_state" for name, _ in shown(meter))
    meter.failed(1)
    assert any(name == "node_state" for name, _ in shown(meter)), "the last plan is shown while passes fail"
    meter.stands_by("other")

    left = {name for name, _ in shown(meter) if name.startswith(("node", "case_", "budget"))}
    assert left == set()


def test_a_hold_is_there_since_the_first_pass_that_had_it(meter: Meter) -> None:
    meter.shows(with_case(NOW), {})
    meter.shows(with_case(NOW + minutes(5)), {})

    since = {
        value for (name, _), value in shown(meter).items() if name == "node_hold_since_timestamp_seconds"
    }
    assert since == {NOW.timestamp()}
    meter.shows(planned(snapshot(node("a"))), {})
    meter.shows(with_case(NOW + minutes(9)), {})
    since = {
        value for (name, _), value in shown(meter).items() if name == "node_hold_since_timestamp_seconds"
    }
    assert since == {(NOW + minutes(9)).timestamp()}


def test_a_drain_is_counted_once_when_it_has_ended_with_its_time_since_the_start(meter: Meter) -> None:
    meter.shows(draining(), progress(Phase.RUNNING))
    assert shown(meter)["drains_running", ()] == 1
    for _ in range(2):
        meter.shows(planned(snapshot(held_node(record(), "a"))), progress(Phase.DRAINED, NOW + minutes(3)))

    found = shown(meter)
    assert found["drains_running", ()] == 0
    assert found["drains_total", ("drained",)] == 1
    assert found["drain_duration_seconds_sum", ()] == 180


def test_a_drain_that_timed_out_is_counted_each_time_and_has_no_duration(meter: Meter) -> None:
    for count in (1, 2):
        meter.shows(draining(), progress(Phase.RUNNING))
        meter.shows(draining(), progress(Phase.TIMED_OUT, NOW + minutes(30 * count)))

    found = shown(meter)
    assert found["drains_total", ("timed_out",)] == 2
    assert found["drain_duration_seconds_count", ()] == 0


def test_answers_of_sources_add_up(meter: Meter) -> None:
    for _ in range(3):
        meter.shows(with_case(), {})

    assert shown(meter)["source_answers_total", ("event", "imds")] == 3


def test_cases_that_end_are_counted_by_kind_and_outcome(meter: Meter) -> None:
    meter.keep([ended("a"), ended("b", outcome=CaseResult.MISSED), ended("c", kind="Preempt")])
    meter.keep([ended("a")])

    found = shown(meter)
    assert found["cases_total", ("Reboot", "drained")] == 2
    assert found["cases_total", ("Reboot", "missed")] == 1
    assert found["cases_total", ("Preempt", "drained")] == 1


def test_a_case_that_was_missed_names_its_node_for_an_hour(meter: Meter) -> None:
    meter.keep([ended("a", outcome=CaseResult.MISSED, at=NOW), ended("b", at=NOW)])
    meter.shows(planned(snapshot(), now=NOW), {})
    missed = {
        labels: value for (name, labels), value in shown(meter).items() if name.startswith("case_missed")
    }
    assert missed == {("Reboot", "a", "missed"): NOW.timestamp()}

    meter.shows(planned(snapshot(), now=NOW + minutes(61)), {})
    assert not any(name.startswith("case_missed") for name, _ in shown(meter))


def test_an_open_case_has_the_series_of_its_end_before_it_ends(meter: Meter) -> None:
    meter.shows(with_case(), {})

    found = shown(meter)
    assert {labels for name, labels in found if name == "cases_total"} == {
        ("Reboot", outcome) for outcome in ("drained", "late", "missed", "cancelled", "stopped")
    }
    assert found["cases_total", ("Reboot", "missed")] == 0


def test_requests_are_counted_while_the_meter_is_open() -> None:
    with Meter() as meter:
        report("arm", "GET", 200, 0.2)
        report("arm", "GET", None, 9.0)
    report("arm", "GET", 200, 0.2)

    found = shown(meter)
    assert found["api_requests_total", ("arm", "200", "GET")] == 1
    assert found["api_requests_total", ("arm", "none", "GET")] == 1
    assert found["api_request_duration_seconds_count", ("arm",)] == 2


def test_errors_that_no_code_expected_are_counted(meter: Meter) -> None:
    log, jobs = logging.getLogger("reconciler.model.problems"), logging.getLogger("jobs.runtime.supervised")
    log.error("internal error: %s", "x")
    log.warning("the memory of notices can't be read")
    jobs.error("the watch of nodes failed", exc_info=ZeroDivisionError())
    jobs.error("the watch of nodes failed: no answer", exc_info=False)
    meter.unexpected()

    assert shown(meter)["unexpected_errors_total", ()] == 3


def test_notices_refusals_and_the_state_of_the_process_are_shown(meter: Meter) -> None:
    assert ("notices_waiting", ()) not in shown(meter)
    meter.notice("slack", sent=True)
    meter.notice("slack", sent=False)
    meter.waiting(7)
    meter.refused("budget")
    meter.leads(leads=True)
    meter.settings(good=False)

    found = shown(meter)
    assert (found["notices_total", ("sent", "slack")], found["notices_total", ("failed", "slack")]) == (1, 1)
    assert found["notices_waiting", ()] == 7
    assert found["evictions_refused_total", ("budget",)] == 1
    assert found["evictions_refused_total", ("webhook",)] == 0
    assert (found["lock_held", ()], found["settings_good", ()]) == (1, 0)


def test_the_document_says_that_it_is_the_text_of_prometheus(meter: Meter) -> None:
    document = meter.documents["/metrics"]()

    assert document.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert b"\nnode_maintenance_build_info{" in document.body
    assert b"\nprocess_cpu_seconds_total " in document.body


def test_every_family_of_the_catalogue_can_be_shown(meter: Meter) -> None:
    full(meter)

    names = {line.split()[2] for line in meter.text().decode().splitlines() if line.startswith("# TYPE")}
    with_series = {name for name, _ in shown(meter)}
    for family in FAMILIES:
        assert family.name in names
        plain = family.name.removeprefix(PREFIX)
        assert {plain, f"{plain}_count"} & with_series, family.name
    assert {name for name in names if not name.startswith(("process_", "python_"))} == {
        one.name for one in FAMILIES
    }


def test_what_two_threads_note_at_once_is_both_there(meter: Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    other = threading.Thread(target=meter.waiting, args=(7,))

    def slow(view: ProcessView, **changes: Any) -> ProcessView:
        if "leads" in changes:
            other.start()
            other.join(0.1)
        return replace(view, **changes)

    monkeypatch.setattr(metering, "replace", slow)
    meter.leads(leads=True)
    other.join()

    assert (shown(meter)["lock_held", ()], shown(meter)["notices_waiting", ()]) == (1, 7)


def test_a_plan_that_can_not_be_counted_is_an_unexpected_error_and_ends_no_pass(
    meter: Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Plan) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(metering, "count_answers", broken)

    Observers(meter).after(Passed(with_case(), settings()))

    assert shown(meter)["unexpected_errors_total", ()] == 1


def test_what_other_observers_show_is_shown_as_well() -> None:
    class Crane(Observer):
        def samples(self) -> Iterable[Sample]:
            return [Sample(Family("crane_lifts", Type.UNTYPED, "Lifts."), 7)]

    assert b"crane_lifts 7.0" in Meter(Observers(Crane())).text()
