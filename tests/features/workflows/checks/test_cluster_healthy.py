"""clusterHealthy: nodes, pods and alerts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.features.workflows.input import Member
from reconciler.model.check_reads import PrometheusAnswer, PrometheusQuery, ReadForChecks, Sample
from reconciler.model.plan import Verdict
from reconciler.model.pod import Pod
from reconciler.model.record import State
from reconciler.model.structs import replace
from tests.features.workflows.checks.scene import ask, config, given, member
from tests.support.builders import NOW, node, pod

URL = "http://prometheus:9090"
QUERY = PrometheusQuery(URL, 'ALERTS{alertstate="firing"}')


def broken(name: str, state: State = State.OPERATIONAL, *, cordoned: bool = False) -> Member:
    """A node that is NotReady."""
    made = member(name, state)
    return replace(made, node=node(name, ready=False, unschedulable=cordoned))


def pending(name: str, minutes: float, *, namespace: str = "shop", leaving: bool = False) -> Pod:
    """A pod that has been Pending for so long."""
    until = NOW if leaving else None
    waiting = pod(name, "", namespace=namespace, deleting_until=until)
    return replace(waiting, phase="Pending", created=NOW - timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("members", "most", "verdict"),
    [
        pytest.param([member("b")], 0, Verdict.PASSED, id="all are Ready"),
        pytest.param([broken("b")], 0, Verdict.FAILED, id="one is not"),
        pytest.param([broken("b")], 1, Verdict.PASSED, id="one may be NotReady"),
        pytest.param([broken("b")], "50%", Verdict.PASSED, id="half may be NotReady"),
        pytest.param([broken("b"), broken("c")], "33%", Verdict.FAILED, id="two thirds"),
        pytest.param([broken("b", State.IN_MAINTENANCE)], 0, Verdict.PASSED, id="in maintenance"),
        pytest.param([broken("b", cordoned=True)], 0, Verdict.PASSED, id="cordoned"),
    ],
)
def test_few_enough_nodes_are_not_ready(members: list[Member], most: object, verdict: Verdict) -> None:
    assert ask("clusterHealthy", given(*members), maxNotReady=most).verdict is verdict


@pytest.mark.parametrize(
    ("waiting", "keys", "verdict"),
    [
        pytest.param([pending("x", 9)], {"maxPending": 0}, Verdict.FAILED, id="for long"),
        pytest.param([pending("x", 4)], {"maxPending": 0}, Verdict.PASSED, id="not for long"),
        pytest.param([pending("x", 9)], {"maxPending": 1}, Verdict.PASSED, id="one may be"),
        pytest.param([pending("x", 9)], {}, Verdict.PASSED, id="not checked"),
        pytest.param([pending("x", 9)], {"maxPending": 0, "pendingFor": "10m"}, Verdict.PASSED, id="10m"),
        pytest.param([pending("x", 9, leaving=True)], {"maxPending": 0}, Verdict.PASSED, id="is deleted"),
        pytest.param(
            [pending("x", 9)], {"maxPending": 0, "namespaces": ["bank"]}, Verdict.PASSED, id="elsewhere"
        ),
        pytest.param(
            [pending("x", 9)], {"maxPending": 0, "namespaces": "shop"}, Verdict.FAILED, id="in the namespace"
        ),
    ],
)
def test_few_enough_pods_wait_for_long(waiting: list[Pod], keys: dict[str, object], verdict: Verdict) -> None:
    scene = given(read=ReadForChecks(pods={"": tuple(waiting)}, unread_pods=""))

    assert ask("clusterHealthy", scene, **keys).verdict is verdict


def alerts(*names: str, problem: str = "") -> ReadForChecks:
    """Alerts that fire."""
    samples = tuple(Sample(1, {"alertname": name}) for name in names)
    return ReadForChecks(answers={QUERY: PrometheusAnswer(samples, problem)})


@pytest.mark.parametrize(
    ("read", "ignore", "verdict"),
    [
        pytest.param(alerts(), {}, Verdict.PASSED, id="none"),
        pytest.param(alerts("Watchdog"), {}, Verdict.PASSED, id="the one that always fires"),
        pytest.param(alerts("Watchdog", "Down"), {}, Verdict.FAILED, id="one"),
        pytest.param(alerts("Down"), {"ignore": ["Down"]}, Verdict.PASSED, id="ignored"),
        pytest.param(alerts(problem="no answer"), {}, Verdict.UNKNOWN, id="no answer"),
    ],
)
def test_no_alert_fires(read: ReadForChecks, ignore: dict[str, object], verdict: Verdict) -> None:
    answer = ask("clusterHealthy", given(read=read), alerts={"url": URL, **ignore})

    assert answer.verdict is verdict


def test_what_fails_is_said_before_what_is_unknown() -> None:
    scene = given(broken("b"), read=alerts(problem="no answer"))

    answer = ask("clusterHealthy", scene, maxNotReady=0, alerts={"url": URL})

    assert answer.verdict is Verdict.FAILED
    assert answer.reason == "NotReady nodes: 1 (b), at most 0 may be"


def test_it_needs_only_what_it_checks() -> None:
    kind = CHECK_TYPES["clusterHealthy"]
    bare = kind.needs(config("clusterHealthy"))
    full = kind.needs(config("clusterHealthy", maxPending=1, alerts={"url": URL}))

    assert (bare.all_pods, bare.queries) == (False, frozenset())
    assert (full.all_pods, full.queries) == (True, frozenset({QUERY}))
