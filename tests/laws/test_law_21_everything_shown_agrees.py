"""Law 21: what people and programs are shown of a case is one forecast: all of it asks the same fact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.model.outcome import Outcome
from reconciler.model.plan import NodePlan, Plan
from reconciler.model.pod import Owner, Placement
from reconciler.model.schedule import CaseForecast, ObstacleCode
from reconciler.model.selector import LabelSelector, Operator, Requirement
from reconciler.model.values import replace
from reconciler.passes.assess import assess
from reconciler.report import explained
from reconciler.report.ahead import Status, plan_ahead
from reconciler.report.columns import schedule_line
from reconciler.report.document import to_report
from reconciler.report.explain import explain_node
from reconciler.run import examine
from reconciler.simulation.workloads import BudgetSpec
from tests.laws.agreement import ShownNode
from tests.laws.histories import History
from tests.laws.hits import Hits
from tests.support import builders
from tests.support.builders import NOW, REQUEST, case_of, minutes, node
from tests.support.of_features import from_tests
from tests.support.searching import examples
from tests.support.worlds import world_of

NAMES = ("n0", "n1", "n2")
TEXTS = ("budget: {maxUnavailable: 3}", "budget: {maxUnavailable: 1}")
PUBLISHED = "\npublish: [drainsafe, nodemaintenances]\nhints: {label: true}"
MISSED, AT_RISK, STARTED, NO_ROOM = Hits(), Hits(), Hits(), Hits()
"""Cases that will be missed, that are at risk, that will be missed though their drain has begun, and that
have a pod that no other node takes."""


@dataclass(frozen=True, slots=True)
class Step:
    """What happens to the pod of a node: so many budgets select it, and it is ready; then time passes.

    Its replacement has room on another node, or no pod has.
    """

    node: str
    budgets: int
    required: int
    ready: bool
    after: int
    room: bool = True


steps = st.builds(
    Step,
    st.sampled_from(NAMES),
    st.integers(0, 2),
    st.integers(0, 1),
    st.booleans(),
    st.sampled_from((0, 1, 60)),
    st.booleans(),
)


def begin(due: Sequence[int], text: str) -> History:
    """Nodes that are due in so many minutes (0: without a date), each with a pod of a workload of two."""
    nodes = []
    for name, after in zip(NAMES, due, strict=True):
        date = f',"notBefore":"{NOW + minutes(after):%Y-%m-%dT%H:%M:%SZ}"' if after else ""
        nodes.append(node(name, annotations={REQUEST: f'{{"kind":"Redeploy"{date}}}'}))
    pods = [
        replace(
            builders.pod(f"pod-{name}", name),
            labels={"on": name},
            owner=_owner(name),
            placement=Placement(node_selector={"agentpool": "np"}),
        )
        for name in NAMES
    ]
    spare = [
        replace(
            builders.pod(f"spare-{name}", "elsewhere"), labels={"on": name}, ready=False, owner=_owner(name)
        )
        for name in NAMES
    ]
    return History(
        world_of([*nodes, node("elsewhere", pool="np")], [*pods, *spare]), builders.settings(text + PUBLISHED)
    )


def _owner(name: str) -> Owner:
    return Owner("StatefulSet", f"of-{name}", "apps/v1")


def take(step: Step, history: History) -> None:
    """Let a step happen."""
    cluster = history.cluster
    for number in range(2):
        key = f"shop/{step.node}-{number}"
        if key in cluster.budgets:
            cluster.drop_budget(key)
    selector = LabelSelector((Requirement("on", Operator.IN, (step.node,)),))
    for number in range(step.budgets):
        least = 2 if step.required and step.ready else step.required
        cluster.add_budget(BudgetSpec("shop", f"{step.node}-{number}", selector, min_available=least))
    cluster.label("elsewhere", "agentpool", "np" if step.room else "other")
    history.wait(minutes(step.after))


@MISSED.at_least(60)
@AT_RISK.at_least(20)
@STARTED.at_least(8)
@NO_ROOM.at_least(20)
@settings(max_examples=examples(120))
@given(
    due=st.tuples(*[st.sampled_from((0, 40, 100, 400))] * 3),
    text=st.sampled_from(TEXTS),
    before=st.lists(steps, max_size=3),
    taken=st.lists(steps, max_size=3),
)
@example(due=(400, 400, 400), text=TEXTS[1], before=[], taken=[])
@example(due=(40, 400, 0), text=TEXTS[0], before=[Step(name, 2, 1, True, 0) for name in NAMES], taken=[])
@example(
    due=(400, 400, 0),
    text=TEXTS[0],
    before=[Step("n0", 1, 1, True, 0)],
    taken=[Step("n0", 1, 1, False, 0), Step("n1", 2, 1, False, 0)],
)
def test_report_plan_explain_page_metrics_events_and_messages_agree_on_each_case(
    due: tuple[int, int, int], text: str, before: Sequence[Step], taken: Sequence[Step]
) -> None:
    history = begin(due, text)
    for first in before:
        take(first, history)
    for step in (None, *taken):
        if step is not None:
            take(step, history)
        history.until_still()
        plan, outcomes = history.look()
        for one in plan.nodes:
            if one.schedule is not None:
                MISSED.count(one.schedule.missed)
                AT_RISK.count(one.schedule.forecast is CaseForecast.AT_RISK)
                STARTED.count(one.schedule.started and one.schedule.missed)
                NO_ROOM.count(
                    any(each.code is ObstacleCode.NO_ROOM for each in one.schedule.prospect.obstacles)
                )
                agree(one, plan, outcomes, history)


def agree(one: NodePlan, plan: Plan, outcomes: tuple[Outcome, ...], history: History) -> None:
    """Everything that is shown of the node says its forecast, and why."""
    document = to_report(plan, outcomes, rehearsed=False).document
    report = next(each for each in document["nodes"] if each["name"] == one.node)
    shown = ShownNode(one, plan, outcomes, history, report)
    schedule, missed, risk = shown.schedule, shown.missed, shown.at_risk
    forecast, why = schedule.forecast, schedule.forecast_words
    assert bool(why) is (forecast is not CaseForecast.ON_TRACK)

    assert (report["schedule"]["forecast"], report["schedule"]["missed"]) == (forecast.value, missed)
    assert report["schedule"]["forecastBecause"] == (why or None)
    if missed and not schedule.started:
        assert schedule_line(schedule) == f"will be missed: {why}{schedule.offer}"

    ahead = plan_ahead(plan, plan.labels, history.settings.calendar, plan.now + timedelta(days=7))
    (case,) = (each for each in ahead.cases if each.node == one.node)
    assert (case.status is Status.MISSED, case.status is Status.AT_RISK) == (missed, risk)
    assert not (missed or risk) or case.forecast_words == why

    recorded = case_of(history.cluster.nodes[one.node]).facts.will_be_missed
    assert (recorded is not None and recorded.over is None) is missed
    # A miss that may go away by itself is no Event at once.
    warned = recorded is not None and recorded.is_due(history.now)
    assert warned or not schedule.by_pods
    events = [
        each.notice.message
        for each in history.cluster.events
        if each.node == one.node and each.notice.reason == "MaintenanceWillBeMissed"
    ]
    assert events or not warned

    _explain_agrees(one, history)
    for agrees in from_tests("agreement", "agrees"):
        agrees(shown)


def _explain_agrees(one: NodePlan, history: History) -> None:
    found = examine(history.world.outside, history.settings, history.now, with_preview=True, also_pods=True)
    seen = next(each for each in found.snapshot.nodes if each.name == one.node)
    node_assessment = assess(found.snapshot, history.now).of(one.node)
    explanation = explain_node(seen, found, node_assessment, history.settings, history.now)
    document = explained.Explanation(found.plan, explanation).document
    schedule = one.schedule
    assert schedule is not None
    assert document["node"]["schedule"]["forecast"] == schedule.forecast.value
