"""The alerts: few, with metrics that exist, cases on both sides, and a page each for the person on call."""

from __future__ import annotations

import re

import pytest

from reconciler.features.metrics.catalogue import FAMILIES
from reconciler.features.metrics.metering import FAILED, NOT_SENT, SENT, STANDBY, SUCCEEDED
from reconciler.model.record import State
from reconciler.profiles.checks import CHECKS
from release.repository import address
from tests.monitoring.rules import (
    RUNBOOKS,
    Rule,
    cases,
    grouped_labels,
    matched_labels,
    matched_values,
    metrics_in,
    rules,
)

RULES = rules()
NAMES = sorted({rule["alert"] for rule in RULES})
LABELS = {family.name: set(family.labels) for family in FAMILIES}


def name_of(rule: Rule) -> str:
    return f"{rule['alert']}-{rule['labels']['severity']}"


OF_A_NODE = [
    rule for rule in RULES if "node" in grouped_labels(rule["expr"]) and not rule["expr"].startswith("count(")
]


def test_no_two_rules_have_one_name_and_severity() -> None:
    assert len({name_of(rule) for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_an_alert_has_a_severity_and_all_its_texts(rule: Rule) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook_url"] == f"{address()}/blob/main/docs/runbooks/{rule['alert']}.md"


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_an_expression_has_only_metrics_and_labels_of_the_catalogue(rule: Rule) -> None:
    metrics = metrics_in(rule["expr"])

    assert metrics
    assert metrics - set(LABELS) == set()
    assert {
        (name, label) for name, label in matched_labels(rule["expr"]) if label not in LABELS[name]
    } == set()
    assert grouped_labels(rule["expr"]) - set().union(*(LABELS[name] for name in metrics)) == set()


def test_each_value_that_an_expression_selects_is_one_that_the_program_has() -> None:
    known = {
        "alertname": set(NAMES),
        "code": set(CHECKS),
        "result": {SUCCEEDED, STANDBY, FAILED, SENT, NOT_SENT},
        "source": {"imds"},
        "state": {state.value for state in State},
        "status": {"401", "403", "none"},
    }
    selected = set().union(*(matched_values(rule["expr"]) for rule in RULES))

    assert {label for label, _ in selected} == set(known)
    assert {(label, value) for label, value in selected if value not in known[label]} == set()


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_the_texts_name_only_labels_that_the_alert_has(rule: Rule) -> None:
    named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))

    assert named - grouped_labels(rule["expr"]) == set()


@pytest.mark.parametrize("rule", OF_A_NODE, ids=name_of)
def test_an_alert_about_a_node_names_it_in_its_summary_and_in_its_command(rule: Rule) -> None:
    texts = rule["annotations"]

    assert "{{ $labels.node }}" in texts["summary"]
    assert texts["description"].endswith("reconciler explain {{ $labels.node }}")


@pytest.mark.parametrize("rule", RULES, ids=name_of)
def test_an_alert_says_how_long_it_has_been_so_or_how_much_time_is_left(rule: Rule) -> None:
    texts = f"{rule['annotations']['summary']} {rule['annotations']['description']}"

    assert re.search(r"humanizeDuration|\b(minutes|hours?|days)\b", texts)


@pytest.mark.parametrize("alert", NAMES)
def test_each_alert_has_a_case_where_it_fires_and_one_where_it_does_not(alert: str) -> None:
    own = [case for case in cases() if case.alert == alert]
    severities = {rule["labels"]["severity"] for rule in RULES if rule["alert"] == alert}

    fired = [one for case in own for instances in case.fires.values() for one in instances]
    assert {one["severity"] for one in fired} == severities
    assert [case for case in own if not any(case.fires.values())]


def test_each_alert_has_its_page_and_each_page_an_alert() -> None:
    assert sorted(page.stem for page in RUNBOOKS.glob("*.md")) == NAMES


@pytest.mark.parametrize("alert", NAMES)
def test_a_page_says_what_it_means_what_to_look_at_and_what_to_do(alert: str) -> None:
    text = (RUNBOOKS / f"{alert}.md").read_text(encoding="utf-8")

    assert text.startswith(f"# {alert}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["What it means", "What to look at", "What to do"]


def test_the_page_about_monitoring_lists_each_alert_with_its_severities() -> None:
    text = (RUNBOOKS.parent / "monitoring.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| \[(\w+)\]\(runbooks/\1\.md\) \| ([^|]+) \|", text, re.MULTILINE))

    assert sorted(rows) == NAMES
    for rule in RULES:
        assert rule["labels"]["severity"] in rows[rule["alert"]]
