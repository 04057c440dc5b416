"""What a drain is ordered to do with pods, from the settings' rules."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.engine.orders import drain_order, pod_rules
from reconciler.model.drains import Behavior, PodRule
from reconciler.model.selector import LabelSelector
from tests.support.builders import NOW, known, minutes, node, settings, snapshot

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


@pytest.mark.parametrize(
    ("left", "text", "expected"),
    [
        pytest.param(minutes(4), "", minutes(2), id="half of what is left"),
        pytest.param(minutes(60), "", minutes(5), id="at most 5 minutes"),
        pytest.param(None, "", minutes(5), id="without a date"),
        pytest.param(-minutes(1), "", timedelta(seconds=10), id="nothing is left"),
        pytest.param(
            minutes(4), "drain: {escalation: {warnAfter: 7m}}", minutes(7), id="as the settings say"
        ),
        pytest.param(
            minutes(4), "drain: {escalation: {deleteBeforeDeadline: true}}", minutes(2), id="beside others"
        ),
    ],
)
def test_a_drain_that_does_not_end_is_reported_after_half_of_its_notice(
    left: timedelta | None, text: str, expected: timedelta
) -> None:
    events = (known(not_before=NOW + left if left is not None else None),)
    order = drain_order(node(), events, NOW, settings(text), snapshot(node()))

    assert order.escalation.warn_after == expected
