"""The label of an ESX host's maintenance: what it means, and what is unknown."""

from __future__ import annotations

import pytest

from reconciler.features.esx.settings import LABEL, VERSION, EsxSource
from reconciler.features.esx.source import HOST, read
from reconciler.model.case_outcome import CaseResult
from reconciler.model.errors import SettingsError
from reconciler.model.event import Answer, Kind
from reconciler.model.node import Node
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings
from tests.laws.histories import History, small_world
from tests.support import builders
from tests.support.builders import minutes

ON = EsxSource(enabled=True)


def on_host(value: str | None, **more: str) -> Node:
    labels = {} if value is None else {LABEL: value}
    return builders.node(labels={**labels, **more})


@pytest.mark.parametrize(("value", "kind"), [("true", Kind.REBOOT), ("alarm", Kind.REDEPLOY)])
def test_maintenance_and_alarms_are_events(value: str, kind: Kind) -> None:
    reading = read(on_host(value), ON)

    assert reading.answer is Answer.EVENT
    assert [(one.kind, one.not_before) for one in reading.signals] == [(kind, None)]


def test_the_settings_choose_the_kinds() -> None:
    chosen = EsxSource(enabled=True, maintenance=Kind.LIVE_MIGRATION, alarm=Kind.PREEMPT)
    kinds = [read(on_host(value), chosen).signals[0].kind for value in ("true", "alarm")]

    assert kinds == [Kind.LIVE_MIGRATION, Kind.PREEMPT]


@pytest.mark.parametrize("key", ["maintenance", "alarm"])
@pytest.mark.parametrize("kind", ["Unknown", "Rebalance"])
def test_a_kind_that_is_no_maintenance_of_a_host_is_refused(key: str, kind: str) -> None:
    with pytest.raises(SettingsError, match=f"sources.esx.{key}: is {kind}, .*; write Reboot or Redeploy"):
        parse_settings(f"sources: {{esx: {{enabled: true, {key}: {kind}}}}}", "f")


@pytest.mark.parametrize(
    ("value", "answer", "installed"),
    [
        pytest.param("false", Answer.NO_EVENT, True, id="over"),
        pytest.param(None, Answer.UNKNOWN, False, id="no label"),
        pytest.param("True", Answer.UNKNOWN, True, id="another case"),
        pytest.param("", Answer.UNKNOWN, True, id="empty"),
    ],
)
def test_anything_else_is_no_event_or_unknown(value: str | None, answer: Answer, installed: bool) -> None:
    reading = read(on_host(value), ON)

    assert (reading.answer, reading.signals, reading.installed) == (answer, (), installed)


def test_the_event_names_the_host_and_its_version() -> None:
    words = [
        read(on_host("true", **more), ON).signals[0].description
        for more in ({}, {HOST: "esx-1"}, {HOST: "esx-1", VERSION: "7.0.3"})
    ]

    assert words == [
        "the ESX host is in maintenance",
        "the ESX host esx-1 is in maintenance",
        "the ESX host esx-1 (7.0.3) is in maintenance",
    ]


# Over whole passes.

SETTINGS = "sources: {esx: {enabled: true}}\nuncordon: {settle: 0s}\nbudget: {maxUnavailable: 100%}"


def scene(chosen: Settings | None = None) -> History:
    made = History(small_world(), chosen or builders.settings(SETTINGS))
    made.cluster.label("n0", LABEL, "true")
    for _ in range(3):
        made.look()
        made.wait(minutes(1))
    return made


def test_a_case_ends_as_drained_although_nobody_reports_a_start() -> None:
    made = scene()
    made.cluster.label("n0", LABEL, "false")
    ended = []
    for _ in range(3):
        made.wait(minutes(10))
        plan, _ = made.look()
        ended += [one.outcome for one in plan.nodes if one.node == "n0" and one.ended is not None]

    assert [one.result for one in ended if one is not None] == [CaseResult.DRAINED]
