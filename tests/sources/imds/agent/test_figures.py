"""The figures that an agent shows to Prometheus."""

from __future__ import annotations

import re
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from reconciler import __version__
from reconciler.sources.imds.agent.figures import FAMILIES, PREFIX, Figures
from tests.docs.pages import written
from tests.sources.imds.agent.conftest import StartAgent
from tests.sources.imds.agent.fake_node_api import VM, Failure, FakeNodeApi
from tests.support.controlplane.processes import wait_for
from tests.support.fakes.imds import Answer, FakeImds, event

pytestmark = pytest.mark.heavy


def read(text: str) -> dict[tuple[str, ...], float]:
    """The series: the name without the prefix, and the labels, sorted by name."""
    return {
        (
            sample.name.removeprefix(PREFIX),
            *(value for _, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_an_agent_counts_its_requests_and_writes(
    imds: FakeImds, api: FakeNodeApi, start_agent: StartAgent
) -> None:
    began = time.time()
    imds.script(Answer(status=500), Answer(status=500))
    api.fail("PATCH", [Failure(500)])
    imds.announce(event(VM, event_id="A"), event("aks-np-12345678-vmss_10", event_id="B"))
    agent = start_agent("--interval", "0.05")
    agent.wait_until_ready()
    api.wait_for_events("A")
    wait_for("both writes", lambda: 'writes_total{result="written"} 1' in agent.asked("/metrics")[1])

    found = read(agent.asked("/metrics")[1])
    assert found["polls_total", "failed"] == 2
    assert found["polls_total", "answered"] >= 1
    assert found["annotation_writes_total", "failed"] == 1
    assert found["events",] == 1
    assert began <= found["last_poll_timestamp_seconds",] <= time.time()
    assert any(key[0] == "build_info" and key[-1] == __version__ for key in found)


def test_before_the_first_answer_nothing_is_said_of_its_time_and_its_events() -> None:
    figures = Figures()
    figures.failed()

    found = read(figures.document().body.decode())
    assert found["polls_total", "failed"] == 1
    assert {name for name, *_ in found}.isdisjoint({"events", "last_poll_timestamp_seconds"})
    figures.answered(7.0, 0)
    found = read(figures.document().body.decode())
    assert (found["last_poll_timestamp_seconds",], found["events",]) == (7, 0)


def test_every_family_is_shown_with_its_type_and_labels() -> None:
    figures = Figures()
    figures.answered(7.0, 0)

    families = {one.name: one for one in text_string_to_metric_families(figures.document().body.decode())}
    assert len(families) == len(FAMILIES)
    for family in FAMILIES:
        shown = families[family.name.removesuffix("_total")]
        assert (shown.type, shown.documentation) == (family.type, family.help)
        assert {tuple(sorted(one.labels)) for one in shown.samples} == {tuple(sorted(family.labels))}


def test_every_family_has_a_row_with_its_type_and_labels_and_every_row_is_a_family() -> None:
    rows = re.findall(rf"^\| `({PREFIX}\w+)` \| (\w+) \|([^|]*)\| \S", written("metrics.md"), re.MULTILINE)

    described = [(name, kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows]
    assert described == [(family.name, family.type, family.labels) for family in FAMILIES]
