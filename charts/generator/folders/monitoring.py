"""The objects of the Prometheus Operator, and the dashboard, k8s/monitoring."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field

from charts.generator.edits import Edit, after
from charts.generator.part import Part
from release.repository import address
from release.version import ROOT


class Monitoring(Part):
    """A dashboard for Grafana, and objects of the Prometheus Operator, whose kinds must be in the cluster."""

    pod_monitor: bool = Field(
        default=False, description="A PodMonitor, so that Prometheus reads the metrics of the Deployment."
    )
    pod_monitor_api: Literal["monitoring.coreos.com/v1", "azmonitoring.coreos.com/v1"] = Field(
        default="monitoring.coreos.com/v1",
        description="The API of the PodMonitor: that of the Prometheus Operator, or that of the managed "
        "service for Prometheus of Azure Monitor.",
    )
    rules: bool = Field(default=False, description="A PrometheusRule with the alerts.")
    runbooks: str = Field(
        default=f"{address()}/blob/main/docs/runbooks/{{alert}}.md",
        min_length=1,
        description="Where the links in the alerts lead: the address at which your people on call read the "
        "page of an alert. `{alert}` stands for its name.",
    )
    labels: dict[str, str] = Field(
        default={}, description="Labels by which your Prometheus selects them, for example `release`."
    )
    dashboard: bool = Field(
        default=False, description="A ConfigMap with the dashboard, for the sidecar of Grafana's chart."
    )


VALUES = Monitoring
RULES = {file.name: file for file in sorted((ROOT / "k8s" / "monitoring").glob("*rules.yaml"))}
"""The files with alerts: those of the program, and those of plugins."""

CONDITIONS = {
    "pod-monitor.yaml": ".Values.monitoring.podMonitor",
    **dict.fromkeys(RULES, ".Values.monitoring.rules"),
}


def _linked(file: Path) -> tuple[Edit, ...]:
    """Return the edits that let the links of the alerts in a file lead where the value says."""
    link = re.escape(Monitoring().runbooks).replace(re.escape("{alert}"), r"(\w+)")
    return tuple(
        Edit(
            Monitoring().runbooks.replace("{alert}", alert),
            f'{{{{ $.Values.monitoring.runbooks | replace "{{alert}}" "{alert}" }}}}',
            everywhere=True,
        )
        for alert in sorted(set(re.findall(link, file.read_text(encoding="utf-8"))))
    )


EDITS = {
    "pod-monitor.yaml": (
        Edit(
            "apiVersion: monitoring.coreos.com/v1\n", "apiVersion: {{ .Values.monitoring.podMonitorApi }}\n"
        ),
        after(
            "spec:\n",
            '  {{- if eq .Values.monitoring.podMonitorApi "azmonitoring.coreos.com/v1" }}\n'
            "  # Without these limits, the service may drop series.\n"
            "  labelLimit: 63\n"
            "  labelNameLengthLimit: 511\n"
            "  labelValueLengthLimit: 1023\n"
            "  {{- end }}\n",
        ),
    ),
    **{name: _linked(file) for name, file in RULES.items()},
}
