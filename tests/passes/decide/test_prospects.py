"""A drain that can't end is known at the announcement, with the pod, its owner and its budget."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from reconciler.drain.ahead import AT_ONCE, BUDGETS_EVERY, EVERY, PLACEMENT, PodsAhead
from reconciler.drain.refusal import BudgetIndex
from reconciler.drain.room import Elsewhere
from reconciler.model.drains import Blocker, DrainProgress, Phase, SlotUse
from reconciler.model.errors import ClusterError, Forbidden, Late, Unreachable
from reconciler.model.event import Kind
from reconciler.model.node import Node, Taint
from reconciler.model.pod import Owner, Placement, Pod, PodDisruptionBudget, PodSpec, Toleration
from reconciler.model.schedule import CaseForecast, CaseSchedule
from reconciler.model.selector import EVERYTHING, LabelSelector, Operator, Requirement
from reconciler.model.snapshot import Resting
from reconciler.model.values import replace
from reconciler.passes.observe import Rehearsal, observe
from reconciler.run import PARTS, examine, rehearse
from reconciler.simulation.api import Call
from reconciler.simulation.platform import VmEvent
from reconciler.simulation.workloads import BudgetSpec
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import NOW, REQUEST, case_of, codes, minutes, node, plan_of
from tests.support.worlds import look, world_of

NEVER = BudgetSpec("shop", "web", EVERYTHING, min_available=1)
FINE = BudgetSpec("shop", "web", EVERYTHING, min_available=0)
WHY = (
    "shop/web-1 (Deployment shop/web) can't be evicted: PodDisruptionBudget shop/web requires 1 healthy pod, "
    "and there is only 1 in all, so it never allows an eviction. Run more replicas than it requires, or let "
    "it allow one disruption (maxUnavailable: 1)."
)
SELECTED = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
NIGHT = 'windows: [{start: "22:00", end: "23:00"}]\nevents: {Redeploy: {outsideWindow: Never}}'


def due(after: float) -> str:
    """A request for a redeploy in so many minutes."""
    return f'{{"kind":"Redeploy","notBefore":"{NOW + minutes(after):%Y-%m-%dT%H:%M:%SZ}"}}'


def web(number: int = 1, on: str = "a", **changes: object) -> Pod:
    """A pod of the Deployment shop/web."""
    pod = replace(
        builders.pod(f"web-{number}", on),
        labels={"app": "web", "pod-template-hash": "abc"},
        owner=Owner("ReplicaSet", "web-abc", "apps/v1"),
    )
    return replace(pod, **changes)  # type: ignore[arg-type]


def announced(*pods: Pod, text: str = "", mode: str = "Enforce", after: float = 300) -> History:
    """A node that is due in so many minutes, with these pods."""
    settings = builders.settings(text, mode=mode)
    return History(world_of([node(annotations={REQUEST: due(after)}), node("b")], pods), settings)


def planned(history: History) -> CaseSchedule:
    """What the plan says of the node, after as many passes as it takes."""
    (plan,) = (one for one in history.until_still().nodes if one.node == "a")
    assert plan.schedule is not None
    return plan.schedule


def forecast_of(history: History) -> str | None:
    """The cause of the forecast of a miss that the record of the node has, None if none holds."""
    found = case_of(history.cluster.nodes["a"]).facts.will_be_missed
    return found.cause if found is not None and found.over is None else None


def warned(history: History) -> list[str]:
    """The messages of the Warning Events about a forecast, in order."""
    found = [one.notice for one in history.cluster.events if one.notice.reason == "MaintenanceWillBeMissed"]
    return [one.message for one in found]


def test_a_budget_that_never_allows_is_said_at_the_announcement_and_taken_back_with_the_budget() -> None:
    history = announced(web())
    history.cluster.add_budget(NEVER)

    schedule = planned(history)
    assert (schedule.forecast, schedule.missed, schedule.because) == (CaseForecast.WILL_BE_MISSED, True, WHY)
    assert schedule.planned_start == NOW + minutes(300 - 15 - 60)
    assert warned(history) == [f"the node will not be drained in time: {WHY}"]
    for _ in range(3):
        history.wait(minutes(20))
        assert planned(history).because == WHY
    assert len(warned(history)) == 1

    history.cluster.add_budget(FINE)
    assert planned(history).forecast is CaseForecast.ON_TRACK
    assert forecast_of(history) is None
    assert history.cluster.events[-1].notice.reason == "MaintenanceNoLongerMissed"

    history.wait(minutes(1))
    history.cluster.add_budget(NEVER)
    assert planned(history).missed
    assert len(warned(history)) == 2


def test_it_is_said_of_a_drain_that_is_under_way_until_the_pod_is_gone() -> None:
    history = announced(web(), after=40)
    history.cluster.add_budget(NEVER)

    schedule = planned(history)
    assert (schedule.started, schedule.forecast, schedule.because) == (True, CaseForecast.WILL_BE_MISSED, WHY)
    assert len(warned(history)) == 1
    history.cluster.drop_pod(web().uid)
    history.wait(minutes(1))
    assert planned(history).forecast is CaseForecast.ON_TRACK
    assert forecast_of(history) is None


def test_a_short_notice_is_cordoned_before_pods_are_read_and_the_next_pass_says_it() -> None:
    history = announced(web(), after=5, text=NIGHT)
    history.cluster.add_budget(NEVER)
    history.world.api.before_read = lambda call: seen.append(call.what)
    seen: list[str] = []

    plan, _ = history.look()
    first = plan_of(plan).schedule
    assert first is not None
    assert first.prospect.unknown.startswith(
        "not known whether its drain can end: its pods are read in the next"
    )
    assert "pods" not in seen
    assert planned(history).prospect.obstacles[0].pod == "shop/web-1"


def test_a_pass_that_cordons_for_a_short_notice_reads_the_pods_of_no_other_node() -> None:
    history = announced(web())
    assert planned(history).prospect.unknown == ""
    history.cluster.annotate("b", REQUEST, due(5))
    seen: list[str] = []
    history.api.before_read = lambda call: seen.append(call.what)
    history.settings = builders.settings("drain: {groupsTogether: 0s}")

    # What the drains do after the pass does not count.
    plan, _ = look(history.world, history.settings)
    assert history.cluster.nodes["b"].unschedulable
    assert {"pods", "budgets"}.isdisjoint(seen)
    schedule = plan_of(plan).schedule
    assert schedule is not None
    assert schedule.prospect.unknown
    assert planned(history).prospect.unknown == ""


def test_what_a_pass_does_not_read_for_a_short_notice_is_not_all_right() -> None:
    history = announced(web(), after=40)
    history.cluster.add_budget(NEVER)
    assert planned(history).missed
    history.wait(minutes(11))
    history.until_still()
    history.cluster.annotate("b", REQUEST, due(21))

    # A report looks with a process of its own, and so does the next sweep.
    shown = plan_of(rehearse(history.world.outside, history.settings, history.world.now), "a").schedule
    assert shown is not None
    assert shown.forecast is CaseForecast.WILL_BE_MISSED
    assert shown.because.endswith(
        "whether that has changed is not known: the PodDisruptionBudgets were not "
        "read yet; a later pass reads them"
    )
    plan, _ = history.look()
    swept = plan_of(plan, "a").schedule
    assert swept is not None
    assert swept.forecast is CaseForecast.WILL_BE_MISSED
    history.until_still()
    reasons = {one.notice.reason for one in history.cluster.events}
    assert "MaintenanceNoLongerMissed" not in reasons
    assert forecast_of(history) is not None


def test_a_report_before_the_cordon_of_a_short_notice_reads_its_pods_and_a_pass_does_not() -> None:
    history = announced(web(), after=5)
    history.cluster.add_budget(NEVER)
    outside, settings, now = history.world.outside, history.settings, history.world.now

    shown = plan_of(examine(outside, settings, now).plan, "a").schedule
    assert shown is not None
    assert (shown.forecast, shown.because) == (CaseForecast.WILL_BE_MISSED, WHY)
    for plan in (rehearse(outside, settings, now), history.look()[0]):
        schedule = plan_of(plan, "a").schedule
        assert schedule is not None
        assert schedule.forecast is CaseForecast.UNKNOWN


def test_a_pod_that_the_scheduler_places_nowhere_is_named_by_the_forecast_of_its_budget() -> None:
    waiting = web(3, "", phase="Pending", ready=False, unplaced="0/2 nodes are available: topology spread")
    history = announced(web(), web(2, "b"), waiting)
    history.cluster.add_budget(BudgetSpec("shop", "web", SELECTED, min_available=2))

    schedule = planned(history)

    assert schedule.forecast is CaseForecast.AT_RISK
    assert (
        "PodDisruptionBudget shop/web requires 2 healthy pods and has 2 of 3, so it allows no eviction now; "
        "shop/web-3, which it counts, has no node: 0/2 nodes are available: topology spread. Add or uncordon"
    ) in schedule.prospect.words


@pytest.mark.parametrize("unable", [Unreachable("no answer"), Forbidden("no", status=403)])
def test_a_forecast_does_without_the_pods_that_have_no_node(unable: ClusterError) -> None:
    history = announced(web(), web(2, "b"), web(3, "b", ready=False))
    history.cluster.add_budget(BudgetSpec("shop", "web", SELECTED, min_available=2))

    def refuse(call: Call) -> None:
        if call.what == "unplaced":
            raise unable

    history.world.api.before_read = refuse

    assert planned(history).prospect.words.count("so it allows no eviction now. Repair the pods") == 1


def test_a_forecast_without_the_budgets_is_unknown() -> None:
    history = announced(web(), after=300)
    outside = replace(history.world.outside, ahead=None)
    schedule = plan_of(rehearse(outside, history.settings, history.world.now), "a").schedule

    assert schedule is not None
    assert schedule.forecast is CaseForecast.UNKNOWN


@pytest.mark.parametrize("mode", ["Observe", "Enforce"])
def test_every_mode_that_has_a_schedule_has_its_forecast(mode: str) -> None:
    history = announced(web(), mode=mode)
    history.cluster.add_budget(NEVER)

    assert planned(history).forecast is CaseForecast.WILL_BE_MISSED
    assert bool(warned(history)) is (mode == "Enforce")


def test_in_mode_finish_the_forecast_names_the_mode_and_what_keeps_the_pods() -> None:
    history = announced(web(), mode="Finish")
    history.cluster.add_budget(NEVER)
    found = planned(history)

    assert (found.planned_start, found.forecast) == (None, CaseForecast.WILL_BE_MISSED)
    assert "mode: Enforce would do; besides, shop/web" in found.because


def test_two_budgets_on_a_pod_and_pods_of_one_workload_are_one_obstacle_with_their_number() -> None:
    history = announced(web(1), web(2), web(3))
    for name in ("web", "other"):
        history.cluster.add_budget(BudgetSpec("shop", name, EVERYTHING, max_unavailable=3))

    (obstacle,) = planned(history).prospect.obstacles
    assert (obstacle.code, obstacle.pod, obstacle.pods) == ("twoBudgets", "shop/web-1", 3)
    assert obstacle.budgets == ("shop/other", "shop/web")
    assert str(obstacle).startswith("shop/web-1 and 2 more (Deployment shop/web) can't be evicted: ")


def test_a_budget_that_allows_none_now_is_a_risk_and_no_miss() -> None:
    history = announced(web(1), web(2, "b", ready=False))
    history.cluster.add_budget(BudgetSpec("shop", "web", EVERYTHING, min_available=1))

    schedule = planned(history)
    assert (schedule.forecast, schedule.missed) == (CaseForecast.AT_RISK, False)
    assert "requires 1 healthy pods and has 1 of 2" in schedule.forecast_words
    assert warned(history) == []


def test_what_the_platform_has_started_is_a_fact_and_no_forecast() -> None:
    world = world_of([node(conditions=(builders.quiet(),))], [web()])
    world.cluster.add_budget(NEVER)
    world.platform.announce(VmEvent("a", Kind.REDEPLOY, NOW + minutes(40)))
    history = History(world, builders.settings())
    assert planned(history).missed

    history.wait(minutes(41))
    schedule = planned(history)
    assert (schedule.missed, schedule.prospect.obstacles) == (False, ())
    assert case_of(history.cluster.nodes["a"]).facts.will_be_missed is None
    assert "MaintenanceNoLongerMissed" not in [one.notice.reason for one in history.cluster.events]


def test_a_miss_names_the_pods_their_workloads_and_budgets_in_every_output() -> None:
    other = builders.pod("db-0", owner="StatefulSet")
    world = world_of([node(conditions=(builders.quiet(),))], [web(2), web(1), other])
    world.cluster.add_budget(BudgetSpec("shop", "web", SELECTED, max_unavailable=0))
    world.platform.announce(VmEvent("a", Kind.REDEPLOY, NOW + minutes(40)))
    history = History(world, builders.settings(NIGHT))
    history.until_still()
    history.wait(minutes(41))
    plan, _ = history.look()

    met = (
        "3 pods that had to be evicted were on the node: "
        "shop/web-1 (Deployment shop/web, PodDisruptionBudget shop/web), "
        "shop/web-2 (Deployment shop/web, PodDisruptionBudget shop/web), shop/db-0 (StatefulSet shop/owner)"
    )
    outcome = plan_of(plan).outcome
    assert outcome is not None
    assert met in outcome.words
    (event,) = [one for one in history.cluster.events if one.notice.reason == "MaintenanceMissed"]
    assert met in event.notice.message

    # The budget is gone later, and what happened is not.
    history.cluster.drop_budget("shop/web")
    later = plan_of(history.until_still()).outcome
    assert later is not None
    assert met in later.words


def test_a_grace_period_that_reaches_the_date_is_a_risk_from_the_start_that_is_planned() -> None:
    history = announced(web(spec=PodSpec(grace=80 * 60)))
    schedule = planned(history)
    assert (schedule.forecast, schedule.prospect.obstacles[0].code) == (CaseForecast.AT_RISK, "longGrace")
    assert schedule.forecast_words.startswith(
        "shop/web-1 (Deployment shop/web) may stay: its grace period is 1h20m, and the platform may start at "
        "2026-11-21T17:00:00Z. "
    )

    # Its drain begins 75 minutes before the date.
    for grace, text in ((70 * 60, ""), (80 * 60, "drain: {maxGracePeriod: 10m}")):
        assert planned(announced(web(spec=PodSpec(grace=grace)), text=text)).forecast is CaseForecast.ON_TRACK
    # A notice of seconds leaves no pod its grace period.
    assert planned(announced(web(), after=0.2)).forecast is CaseForecast.ON_TRACK


def test_a_pod_that_a_rule_lets_complete_is_a_risk() -> None:
    text = "drain: {rules: [{name: jobs, pods: {app: web}, behavior: WaitCompleted}]}"
    schedule = planned(announced(web(), builders.pod("other"), text=text))

    (obstacle,) = schedule.prospect.obstacles
    assert (schedule.forecast, obstacle.code, obstacle.pod) == (CaseForecast.AT_RISK, "waits", "shop/web-1")
    assert obstacle.because == "rule jobs says to wait until it has completed"


def test_what_only_the_process_that_drains_knows_is_no_part_of_the_forecast() -> None:
    history = announced(web(), after=40)
    history.look()
    blocker = Blocker("shop/web-1", "not allowed: no")
    running = DrainProgress("a", "uid-a", Phase.RUNNING, blockers=(blocker,), slot=SlotUse(blocked_since=NOW))
    plans = [
        builders.planned(
            replace(observe(history.world.outside, history.settings, NOW, PARTS), drains=drains),
            history.settings,
        )
        for drains in ({}, {"a": running})
    ]

    rehearsed, passed = (plan_of(plan).schedule for plan in plans)
    assert rehearsed is not None
    assert rehearsed == passed


def test_a_case_without_a_date_can_be_at_risk_only() -> None:
    history = announced(web())
    history.cluster.annotate("a", REQUEST, '{"kind":"Redeploy"}')
    history.cluster.add_budget(NEVER)

    assert planned(history).forecast is CaseForecast.AT_RISK
    assert warned(history) == []


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (web(spec=PodSpec(empty_dir=True)), "events: {Redeploy: {emptyDir: Keep}}"),
        (web(owner=None), "events: {Redeploy: {unmanagedPods: Keep}}"),
        (web(), "drain: {rules: [{name: all, pods: {}, behavior: Skip}]}"),
        (web(), "drain: {escalation: {deleteBeforeDeadline: true}}"),
        (web(), "drain: {restartSingletons: true}"),
        (web(phase="Succeeded", ready=False), ""),
    ],
    ids=["emptyDir", "unmanaged", "skipped", "deleted", "restarted", "finished"],
)
def test_a_pod_that_the_drain_does_not_evict_keeps_it_from_nothing(pod: Pod, text: str) -> None:
    history = announced(pod, text=text)
    history.cluster.add_budget(NEVER)

    assert planned(history).forecast is CaseForecast.ON_TRACK


def test_a_pod_that_waits_for_a_limited_time_is_evicted_then_so_its_budget_matters() -> None:
    history = announced(web(labels={"app": "web", "node-maintenance.dev/drain": "wait-completed"}))
    history.cluster.add_budget(NEVER)

    assert planned(history).forecast is CaseForecast.WILL_BE_MISSED


def test_a_pod_that_does_not_end_long_after_its_grace_period_is_known_at_that_moment() -> None:
    history = announced(web(deleting_until=NOW + minutes(2)))
    schedule = planned(history)
    assert schedule.forecast is CaseForecast.ON_TRACK
    assert schedule.forecast_until == NOW + minutes(12)

    history.wait(minutes(12))
    schedule = planned(history)
    assert schedule.forecast is CaseForecast.WILL_BE_MISSED
    assert "it is being deleted, and its grace period ended at 2026-11-21T12:02:00Z" in schedule.because


def test_pods_that_cannot_be_read_make_it_unknown_and_what_was_known_stays() -> None:
    history = announced(web())
    history.cluster.add_budget(FINE)

    def refuse(what: str) -> None:
        def answer(call: Call) -> None:
            if call.what == what:
                raise Forbidden("no", status=403, needs=f"list {what}")

        history.api.before_read = answer

    for what in ("pods", "budgets"):
        refuse(what)
        schedule = planned(history)
        assert schedule.forecast is CaseForecast.UNKNOWN
        assert f"needs list {what}" in schedule.forecast_words

    history.cluster.add_budget(NEVER)
    refuse("")
    assert planned(history).missed
    for what in ("pods", "budgets"):
        refuse(what)
        schedule = planned(history)
        assert schedule.forecast is CaseForecast.WILL_BE_MISSED
        assert schedule.because.startswith(
            "pods stay: budgetNever shop/web; whether that has changed is not known"
        )
    assert len(warned(history)) == 1


def test_a_start_that_is_too_late_and_a_budget_are_both_said() -> None:
    history = announced(web(), text=NIGHT)
    history.cluster.add_budget(NEVER)

    schedule = planned(history)
    assert schedule.missed
    assert not schedule.by_pods
    assert schedule.because.endswith(f"; besides, {WHY}")


def test_the_pods_of_one_node_that_break_the_program_harm_that_node_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = announced(web(), web(2, "b", namespace="bad"))
    history.cluster.annotate("b", REQUEST, due(300))
    history.cluster.add_budget(NEVER)

    def covering(self: BudgetIndex, pod: Pod) -> tuple[PodDisruptionBudget, ...]:
        if pod.namespace == "bad":
            raise ZeroDivisionError("no")
        return known(self, pod)

    known = BudgetIndex.covering
    monkeypatch.setattr(BudgetIndex, "covering", covering)
    plan, _ = history.look()

    assert codes(plan_of(plan, "b")) == {"internal"}
    schedule = plan_of(plan).schedule
    assert schedule is not None
    assert schedule.because == WHY


IN_POOL = Requirement("agentpool", Operator.IN, ("gpu",))
UNREAD = Requirement("disk", Operator.IN, ("ssd",))
NOWHERE = "shop/web-1 (Deployment shop/web) can't run elsewhere: no other node takes it: "
UNMATCHED = "1 not matching its node selector or affinity"


def on(history: History, pool: str | None = None, taint: str = "") -> None:
    """Change the other node."""
    history.cluster.label("b", "agentpool", pool)
    history.cluster.taint("b", [Taint(taint, effect="NoSchedule")] if taint else [])


@pytest.mark.parametrize(
    ("placement", "why"),
    [
        (Placement(node_selector={"agentpool": "gpu"}), UNMATCHED),
        (Placement(node_selector={"agentpool": "gpu", "disk": "ssd"}), UNMATCHED),
        (Placement(affinity=((IN_POOL, UNREAD),)), UNMATCHED),
        (Placement(), "1 tainted"),
        (Placement(tolerations=(Toleration("other", "Exists"),)), "1 tainted"),
    ],
    ids=["selector", "a label that no pass reads, too", "affinity", "taint", "another toleration"],
)
def test_a_pod_that_no_other_node_takes_is_a_risk_until_one_does(placement: Placement, why: str) -> None:
    history = announced(web(placement=placement))
    on(history, taint="dedicated" if "tainted" in why else "")

    schedule = planned(history)
    (obstacle,) = schedule.prospect.obstacles
    assert (schedule.forecast, schedule.missed, obstacle.code) == (CaseForecast.AT_RISK, False, "noRoom")
    assert schedule.forecast_words.startswith(f"{NOWHERE}{why}. Add or uncordon a node")
    assert warned(history) == []

    on(history, pool="gpu")
    assert planned(history).forecast is CaseForecast.ON_TRACK


def test_a_node_that_joins_is_room_and_one_that_is_out_of_service_is_none() -> None:
    history = announced(web(placement=Placement()), text="budget: {maxUnavailable: 2}")
    assert planned(history).forecast is CaseForecast.ON_TRACK

    cluster = history.cluster
    cluster.cordon("b")
    assert planned(history).forecast_words.startswith(f"{NOWHERE}1 cordoned.")
    cluster.cordon("b", on=False)
    assert planned(history).forecast is CaseForecast.ON_TRACK

    cluster.node_down("b")
    assert planned(history).forecast_words.startswith(f"{NOWHERE}1 not Ready.")
    cluster.delete_node("b")
    assert planned(history).forecast_words.startswith(f"{NOWHERE}there is none.")
    cluster.add_node(node("c"))
    assert planned(history).forecast is CaseForecast.ON_TRACK


def test_a_node_whose_own_drain_is_now_is_no_room_and_one_with_a_later_drain_is() -> None:
    history = announced(web(placement=Placement()), text="budget: {maxUnavailable: 2}")
    history.cluster.annotate("b", REQUEST, due(400))
    assert planned(history).forecast is CaseForecast.ON_TRACK

    history.cluster.annotate("b", REQUEST, due(40))
    plan, _ = history.look()
    schedule = plan_of(plan).schedule
    assert schedule is not None
    assert schedule.forecast_words.startswith(f"{NOWHERE}1 in maintenance.")


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (web(placement=None), ""),
        (web(placement=Placement(node_selector={"disk": "ssd"})), ""),
        (web(placement=Placement(affinity=((IN_POOL,), (UNREAD,)))), ""),
        (web(placement=Placement(node_selector={"agentpool": "gpu", "x": "y" * PLACEMENT})), ""),
        (web(placement=Placement(node_selector={"agentpool": "gpu"}), owner=None), ""),
        (
            web(placement=Placement(node_selector={"agentpool": "gpu"})),
            "drain: {rules: [{name: all, pods: {}, behavior: Skip}]}",
        ),
        (web(placement=Placement(node_selector={"agentpool": "gpu"}), deleting_until=NOW), ""),
    ],
    ids=[
        "unread",
        "a label that no pass reads",
        "a term of it",
        "too large",
        "unmanaged",
        "skipped",
        "going",
    ],
)
def test_a_pod_without_a_replacement_or_of_which_too_little_is_known_has_room(pod: Pod, text: str) -> None:
    assert planned(announced(pod, text=text)).forecast is CaseForecast.ON_TRACK


def test_a_plan_that_knows_all_labels_says_what_the_passes_say() -> None:
    history = announced(web(placement=Placement(node_selector={"disk": "ssd"})))
    outside = history.world.outside
    snapshots = [
        observe(outside, history.settings, NOW, PARTS, rehearsal=rehearsal)
        for rehearsal in (None, Rehearsal.WITH_PREVIEW)
    ]

    found = [plan_of(builders.planned(one, history.settings)).schedule for one in snapshots]
    assert [one is not None and one.forecast for one in found] == [CaseForecast.ON_TRACK] * 2


class Fleet:
    """Counts the nodes of a large fleet that a search looks at."""

    def __init__(self, count: int, most_looks: int = 1000) -> None:
        self.looked = 0
        self.found = Elsewhere(
            self._nodes(count),
            [Resting(node("rest", pool="gpu"), 3)],
            leaving=frozenset(),
            labels=frozenset({"agentpool"}),
            most_looks=most_looks,
        )

    def _nodes(self, count: int) -> Iterator[Node]:
        for number in range(count):
            self.looked += 1
            yield node(f"n{number}", pool=f"np{number % 2}")

    def nowhere(self, pool: str) -> str:
        """Why a pod on the first node that wants this pool can run nowhere else."""
        return self.found.nowhere(web(on="n0", placement=Placement(node_selector={"agentpool": pool})))


def test_a_search_ends_at_the_first_node_that_fits_and_looks_at_each_node_once() -> None:
    fleet = Fleet(1000)
    assert (fleet.nowhere("np1"), fleet.looked) == ("", 2)
    assert (fleet.nowhere("np0"), fleet.looked) == ("", 3)
    assert fleet.nowhere("gpu") == ""
    for _ in range(2):
        assert fleet.nowhere("none").endswith(": 1002 not matching its node selector or affinity")
    assert fleet.looked == 1000


def test_a_node_of_its_kind_alone_is_no_room_for_its_own_pod() -> None:
    assert Fleet(2).nowhere("np0").endswith(": 4 not matching its node selector or affinity")


def test_after_the_limit_nothing_is_said() -> None:
    fleet = Fleet(10, most_looks=3)
    assert fleet.nowhere("none")
    assert fleet.nowhere("none") == ""


class Reads:
    """Counts the reads of a world."""

    def __init__(self, nodes: int) -> None:
        self.world = world_of([node(f"n{number:03}") for number in range(nodes)])
        self.calls: list[tuple[str, str]] = []
        self.world.api.before_read = lambda call: self.calls.append((call.what, call.node))
        self.names = [f"n{number:03}" for number in range(nodes)]
        self.seconds = 0.0
        self.ahead = PodsAhead(self.world.api, seconds=lambda: self.seconds)

    def read(self, at: timedelta = timedelta()) -> list[str]:
        """The nodes that a read at this time asks for."""
        self.calls.clear()
        self.ahead.read(self.names, NOW + at, drains=False)
        return [name for what, name in self.calls if what == "pods"]


def test_one_pass_reads_a_bounded_number_of_nodes_and_none_again_before_its_time() -> None:
    reads = Reads(AT_ONCE + 10)

    assert reads.read() == reads.names[:AT_ONCE]
    assert reads.read() == reads.names[AT_ONCE:]
    assert reads.read() == []
    assert reads.calls == []
    assert reads.read(BUDGETS_EVERY) == []
    assert reads.calls == [("budgets", "")]
    assert reads.read(EVERY) == reads.names[:AT_ONCE]
    # A clock that was set back keeps nothing for ever.
    assert len(reads.read(-EVERY)) == AT_ONCE


def test_what_came_too_late_for_a_pass_is_asked_for_again_by_the_next_one() -> None:
    reads = Reads(3)
    reads.read()
    known = reads.world.api.before_read

    def late(call: Call) -> None:
        raise Late(f"no answer yet to: {call.what}")

    reads.world.api.before_read = late
    ahead = reads.ahead.read(reads.names, NOW + EVERY, drains=False)
    # What was known before still counts.
    assert (len(ahead.pods), ahead.unread, ahead.budgets) == (3, {}, ())

    reads.world.api.before_read = known
    assert reads.read(EVERY) == reads.names
    assert ("budgets", "") in reads.calls


def test_a_slow_server_ends_the_reads_of_a_pass_and_the_rest_is_not_known() -> None:
    reads = Reads(3)

    def slow(call: Call) -> None:
        reads.seconds += 3

    reads.world.api.before_read = slow
    found = reads.ahead.read(reads.names, NOW, drains=False)

    assert set(found.pods) == {"n000"}
    assert set(found.unread) == {"n001", "n002"}


def test_a_server_that_is_away_is_asked_once() -> None:
    reads = Reads(3)

    def away(call: Call) -> None:
        reads.calls.append((call.what, call.node))
        raise Unreachable("no route")

    reads.world.api.before_read = away
    found = reads.ahead.read(reads.names, NOW, drains=False)

    assert reads.calls == [("pods", "n000"), ("budgets", "")]
    assert set(found.unread.values()) == {"its pods can't be read: no route"}
    assert found.unbudgeted == "PodDisruptionBudgets can't be read: no route"


def test_the_most_urgent_nodes_are_read_first_and_quiet_ones_never() -> None:
    nodes = [node("late", annotations={REQUEST: due(900)}), node("soon", annotations={REQUEST: due(300)})]
    world = world_of([*nodes, node("quiet")])
    asked: list[str] = []
    world.api.before_read = lambda call: asked.append(call.node) if call.what == "pods" else None
    look(world, builders.settings("drain: {groupsTogether: 0s}"))

    assert asked == ["soon", "late"]
