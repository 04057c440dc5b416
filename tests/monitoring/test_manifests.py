"""What is scraped is there, and the dashboard is where Grafana looks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.monitoring.rules import MONITORING, ROOT
from tests.real.manifests.applying import built
from tests.real.manifests.schemas import keeps_its_schema
from tests.real.manifests.test_docs import kustomized


def test_the_pods_that_are_scraped_are_those_of_the_deployment_at_a_port_that_they_have() -> None:
    (monitor,) = [one for one in built("monitoring") if one["kind"] == "PodMonitor"]
    (server,) = [one for one in built("deployment") if one["kind"] == "Deployment"]
    (container,) = server["spec"]["template"]["spec"]["containers"]
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]

    assert monitor["metadata"]["namespace"] == server["metadata"]["namespace"]
    assert monitor["spec"]["selector"] == server["spec"]["selector"]
    assert endpoint["port"] in {port["name"] for port in container["ports"]}


def test_the_dashboard_is_a_config_map_that_the_sidecar_finds() -> None:
    (found,) = [one for one in built("monitoring") if one["kind"] == "ConfigMap"]

    keeps_its_schema(found)
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert found["data"] == {"dashboard.json": (MONITORING / "dashboard.json").read_text(encoding="utf-8")}


@pytest.mark.heavy
def test_the_kustomization_of_the_page_labels_what_prometheus_selects(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)

    found = list(yaml.safe_load_all(kustomized(tmp_path, block)))

    assert {one["kind"] for one in found} == {"ConfigMap", "PodMonitor", "PrometheusRule"}
    assert {one["metadata"]["labels"]["release"] for one in found} == {"kube-prometheus-stack"}
