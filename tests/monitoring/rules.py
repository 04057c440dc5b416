"""The alerts of k8s/monitoring, and the cases of cases.yaml that say when each of them fires."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "k8s" / "monitoring"
RUNBOOKS = ROOT / "docs" / "runbooks"

Rule = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """Series, and what an alert does at moments: the labels of its instances, and their summary."""

    alert: str
    name: str
    series: dict[str, str]
    fires: dict[str, list[dict[str, str]]]

    @property
    def title(self) -> str:
        """Its name in the output of a test run."""
        return f"{self.alert}: {self.name}"

    def for_promtool(self, rules: str) -> dict[str, Any]:
        """Return it as a file of `promtool test rules`, about the rules in this file."""
        expected = [
            {"eval_time": at, "alertname": self.alert, "exp_alerts": [_instance(one) for one in instances]}
            for at, instances in self.fires.items()
        ]
        series = [{"series": name, "values": values} for name, values in self.series.items()]
        test = {"interval": "1m", "input_series": series, "alert_rule_test": expected}
        return {"rule_files": [rules], "evaluation_interval": "1m", "tests": [test]}


def _instance(found: dict[str, str]) -> dict[str, dict[str, str]]:
    labels = {name: value for name, value in found.items() if name != "summary"}
    return {"exp_labels": labels, "exp_annotations": {"summary": found["summary"]}}


def spec() -> dict[str, Any]:
    """Return the groups of each PrometheusRule, as Prometheus itself reads them from a file of rules."""
    files = sorted(MONITORING.glob("*rules.yaml"))
    specs = [yaml.safe_load(file.read_text(encoding="utf-8"))["spec"] for file in files]
    return {"groups": [group for spec in specs for group in spec["groups"]]}


def rules() -> list[Rule]:
    """Return every rule, in the order of the files."""
    return [dict(rule) for group in spec()["groups"] for rule in group["rules"]]


def cases() -> list[Case]:
    """Return every case, in the order of the file."""
    text = (Path(__file__).parent / "cases.yaml").read_text(encoding="utf-8")
    return [Case(**one) for one in yaml.safe_load(text)]


def with_summaries_only() -> dict[str, Any]:
    """Return the rules without the other annotations, so that a case does not repeat long texts."""
    found = spec()
    for group in found["groups"]:
        for rule in group["rules"]:
            rule["annotations"] = {"summary": rule["annotations"]["summary"]}
    return found


def metrics_in(expression: str) -> set[str]:
    """Return the names of our metrics in an expression."""
    return set(re.findall(r"\bnode_maintenance_\w+", expression))


def matched_labels(expression: str) -> set[tuple[str, str]]:
    """Return each metric of ours that an expression selects by labels, with each of the labels."""
    found = re.findall(r"\b(node_maintenance_\w+)\{([^}]*)\}", expression)
    return {(name, label) for name, inside in found for label in re.findall(r"(\w+)\s*[=!]", inside)}


def matched_values(expression: str) -> set[tuple[str, str]]:
    """Return each value that an expression selects, with its label; a choice has several, a pattern none."""
    found = re.findall(r"[{,]\s*(\w+)(?:=|!=|=~|!~)\"([^\"]*)\"", expression)
    return {
        (label, value)
        for label, values in found
        for value in values.split("|")
        if re.fullmatch(r"[\w-]+", value)
    }


def grouped_labels(expression: str) -> set[str]:
    """Return the labels by which an expression groups or joins."""
    found = re.findall(r"\b(?:by|on|group_left|ignoring|without) \(([^)]*)\)", expression)
    return {label for inside in found for label in re.findall(r"\w+", inside)}
