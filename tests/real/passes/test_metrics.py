"""What Prometheus reads of a program while a PodDisruptionBudget blocks a drain."""

from __future__ import annotations

import signal
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.real.passes.processes import ENFORCE, Programs
from tests.real.passes.scene import Scene
from tests.support.controlplane.processes import wait_for
from tests.support.controlplane.workloads import budget

pytestmark = pytest.mark.slow

Series = dict[tuple[str, ...], float]


def scraped(address: str) -> Series:
    """The series of a serving program."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return read(answer.read().decode())


def read(text: str) -> Series:
    """The series as Prometheus reads them: the name without our prefix, and the labels, sorted by name."""
    return {
        (
            sample.name.removeprefix("node_maintenance_"),
            *(value for _, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_shows_a_blocked_drain_until_its_node_is_back(scene: Scene, programs: Programs) -> None:
    programs.configure(ENFORCE)
    node = scene.node()
    scene.workload("web", node)
    scene.api.create("poddisruptionbudgets", budget("web", min_available=1))
    process = programs.start("serve", "--every", "2s", "--listen", "127.0.0.1:0")
    (line,) = process.wait_for("listening")
    scene.condition_tells(node)
    blocked = {("blocked_pods", "web", "default", node), ("node_hold", "drain", node)}
    wait_for("a blocked drain", lambda: blocked <= scraped(line["address"]).keys(), seconds=60)

    found = scraped(line["address"])
    assert found["lock_held",] == 1
    assert found["drains_running",] == 1
    assert found["nodes", "in-maintenance"] == 1
    assert found["evictions_refused_total", "budget"] >= 1
    assert found["api_requests_total", "kubernetes", "429", "POST"] >= 1
    assert found["pass_nodes",] == 1
    # The page is on the same listener.
    with urllib.request.urlopen(f"http://{line['address']}/", timeout=60) as answer:
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "the owner of Deployment default/web" in answer.read().decode()

    scene.api.delete("poddisruptionbudgets", "web", "default")
    drained = ("drains_total", "drained")
    wait_for("the end of the drain", lambda: scraped(line["address"])[drained] == 1, seconds=60)
    scene.condition_silent(node)
    wait_for("its end", lambda: not any(node in key for key in scraped(line["address"])), seconds=60)

    found = scraped(line["address"])
    assert found["drain_duration_seconds_count",] == 1
    ended = {key[2]: value for key, value in found.items() if key[:2] == ("cases_total", "Reboot")}
    assert {key for key, value in ended.items() if value} == {"cancelled"}

    # Its end is in no scrape before, so it waits for one. Another process may have the lock meanwhile.
    process.signal(signal.SIGTERM)
    process.wait_for("waits to be read once more")
    assert not scene.api.get("leases", "reconciler-lock", "node-maintenance")["spec"].get("holderIdentity")
    assert scraped(line["address"])["lock_held",] == 0
    assert process.wait().code == 0
