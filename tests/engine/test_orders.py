"""What a drain is ordered to do with pods, from the settings' rules."""

from __future__ import annotations

import pytest

from reconciler.engine.orders import pod_rules
from reconciler.model.drains import Behavior, PodRule
from reconciler.model.selector import LabelSelector
from tests.support.builders import settings

JOBS = LabelSelector.of({"app": "job"})


@pytest.mark.parametrize(
    ("namespaces", "expected"),
    [
        pytest.param("", PodRule("jobs", JOBS), id="all namespaces"),
        pytest.param(
            "namespaces: [shop, chat]",
            PodRule("jobs", JOBS, frozenset({"shop", "chat"})),
            id="a list of names",
        ),
        pytest.param(
            "namespaces: {team: blue}",
            PodRule("jobs", JOBS, namespace_selector=LabelSelector.of({"team": "blue"})),
            id="a selector",
        ),
        pytest.param("namespaces: {}", PodRule("jobs", JOBS), id="a selector that selects all"),
    ],
)
def test_a_rules_namespaces_are_names_or_a_selector_or_nothing(namespaces: str, expected: PodRule) -> None:
    rule = ", ".join(part for part in ("name: jobs", "pods: {app: job}", namespaces) if part)

    assert pod_rules(settings(f"drain: {{rules: [{{{rule}}}]}}")) == (expected,)


def test_pods_to_skip_come_before_the_rules() -> None:
    chosen = settings(
        "drain: {skipPods: [{namespaces: [infra]}, {selector: {app: job}}], "
        "rules: [{name: last, behavior: WaitCompleted, order: 7}]}"
    )

    assert pod_rules(chosen) == (
        PodRule("drain.skipPods[0]", namespaces=frozenset({"infra"}), behavior=Behavior.SKIP),
        PodRule("drain.skipPods[1]", JOBS, behavior=Behavior.SKIP),
        PodRule("last", behavior=Behavior.WAIT_COMPLETED, order=7),
    )
