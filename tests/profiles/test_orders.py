"""What a drain is ordered to do with pods, from the settings' rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType

import pytest

from reconciler.model.drains import Behavior, DrainOptions, PodRule
from reconciler.model.event import Kind
from reconciler.model.moments import to_text
from reconciler.model.record import KnownEvent
from reconciler.model.selector import LabelSelector
from reconciler.profiles.orders import drain_options, drain_order, pod_rules
from reconciler.settings.schema import Settings
from tests.support.builders import NOW, known, minutes, node, settings, snapshot

JOBS = LabelSelector.of({"app": "job"})


def options_of(
    events: Iterable[KnownEvent], chosen: Settings, labels: Mapping[str, str] = MappingProxyType({})
) -> DrainOptions:
    return drain_options(events, chosen, chosen.policies(labels))


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


KEPT = [
    pytest.param("", {}, "events.Reboot.{}: Evict", id="the default of the kind"),
    pytest.param(
        "events: {Reboot: {emptyDir: Keep, unmanagedPods: Keep}}", {}, "events.Reboot.{}: Evict", id="base"
    ),
    pytest.param(
        "overrides: [{nodeSelector: {a: b}}, {nodeSelector: {a: b}, events: {Reboot: {drain: true, "
        "emptyDir: Keep, unmanagedPods: Keep}}}]",
        {"a": "b"},
        "overrides[1].events.Reboot.{}: Evict",
        id="the override that sets it",
    ),
    pytest.param(
        "overrides: [{nodeSelector: {a: c}, events: {Reboot: {emptyDir: Keep, unmanagedPods: Keep}}}]",
        {"a": "b"},
        "events.Reboot.{}: Evict",
        id="an override of other nodes",
    ),
]


@pytest.mark.parametrize(("text", "labels", "setting"), KEPT)
def test_the_reason_of_a_kept_pod_names_the_setting_that_lets_it_go(
    text: str, labels: dict[str, str], setting: str
) -> None:
    refusals = options_of([known()], settings(text), labels).refusals

    assert refusals.empty_dir == f"has local storage (to evict it, set {setting.format('emptyDir')})"
    assert refusals.unmanaged == f"has no controller (to evict it, set {setting.format('unmanagedPods')})"


def test_the_reason_names_a_condition_and_each_of_several_events() -> None:
    events = [known(), known(Kind.UNKNOWN, condition="Broken")]
    chosen = settings("overrides: [{nodeSelector: {}, conditions: {Broken: {}}}]")

    assert options_of(events, chosen).refusals.empty_dir == (
        "has local storage (to evict it, set events.Reboot.emptyDir: Evict "
        "or overrides[0].conditions.Broken.emptyDir: Evict)"
    )


def test_without_a_policy_the_reason_says_that_no_setting_helps() -> None:
    assert options_of([], settings("")).refusals.empty_dir == (
        "has local storage (it stays, because the settings have no policy for an event of the node)"
    )


@pytest.mark.parametrize("kind", [Kind.REBOOT, Kind.REDEPLOY, Kind.LIVE_MIGRATION, Kind.TERMINATE])
@pytest.mark.parametrize("field", ["emptyDir", "unmanagedPods"])
def test_the_named_setting_lets_the_pod_go(kind: Kind, field: str) -> None:
    """What the reason says to write is written, and then the pod is evicted."""
    base = settings(f"events: {{{kind}: {{emptyDir: Keep, unmanagedPods: Keep}}}}")
    refusals = options_of([known(kind)], base).refusals
    text = refusals.empty_dir if field == "emptyDir" else refusals.unmanaged
    path, _, value = text.partition("set ")[2].rstrip(")").partition(": ")
    section, name, key = path.split(".")
    changed = options_of([known(kind)], settings(f"{section}: {{{name}: {{{key}: {value}}}}}"))

    assert changed.evict_empty_dir if field == "emptyDir" else changed.evict_unmanaged


@pytest.mark.parametrize(
    ("dates", "ends"),
    [
        pytest.param([(Kind.PREEMPT, None)], minutes(0), id="lost at any moment"),
        pytest.param(
            [(Kind.PREEMPT, None), (Kind.REBOOT, minutes(20))], minutes(0), id="beside another event"
        ),
        pytest.param([(Kind.PREEMPT, minutes(20))], minutes(20), id="with a date"),
        pytest.param([(Kind.REBOOT, None)], minutes(60), id="a kind that waits"),
    ],
)
def test_a_pod_may_not_wait_on_a_node_that_is_lost_at_any_moment(
    dates: list[tuple[Kind, timedelta | None]], ends: timedelta
) -> None:
    events = tuple(known(kind, not_before=None if left is None else NOW + left) for kind, left in dates)
    order = drain_order(node(), events, NOW, settings(""), snapshot(node()))

    assert order.options.waits.own is not None
    assert order.options.waits.own.ends(timedelta()) == NOW + ends


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([known(Kind.REDEPLOY, not_before=NOW)], f"Redeploy at {to_text(NOW)}", id="a date"),
        pytest.param([known(Kind.REBOOT)], "Reboot without a date", id="none"),
        pytest.param(
            [known(Kind.UNKNOWN, condition="KernelDeadlock")],
            "the condition KernelDeadlock",
            id="a condition",
        ),
        pytest.param(
            [known(Kind.REBOOT), known(Kind.REDEPLOY, ids=("secret",)), known(Kind.REBOOT)],
            "Reboot without a date and Redeploy without a date",
            id="several, each once, and no texts of others",
        ),
    ],
)
def test_the_order_says_for_which_events_the_node_is_drained(events: list[KnownEvent], expected: str) -> None:
    order = drain_order(node(), tuple(events), NOW, settings(), snapshot())

    assert order.why == expected
