"""Law 15: no start is early, whatever the calendar says, and also where the clocks change."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.event import REQUEST, Kind, PlatformPlan, Signal, Status
from reconciler.model.instructions import Deferral, PersonHold, Word, deferral_text, hold_text
from reconciler.model.machine import OPENSHIFT_MACHINE
from reconciler.model.moments import to_text
from reconciler.model.node import AUTOSCALER_TAINT, CONTROL_PLANE_LABELS, Taint
from reconciler.passes.assess import join
from reconciler.settings.schema import Settings
from tests.laws.azure import Azure
from tests.laws.hits import Hits
from tests.laws.test_law_14_the_forecast_comes_true import TEXTS, Announced, announced, begin, run_on
from tests.support.builders import IMDS, NOW, PREFIX, event, judged, minutes, node, on_vm, plan_of, vm_name
from tests.support.builders import REQUEST as ASKED
from tests.support.builders import settings as policy_of
from tests.support.fakes.imds import event as imds_event
from tests.support.searching import QUARTER, examples
from tests.support.strategies import rfc1123
from tests.support.worlds import in_pool, look, world_of

LEAD, AHEAD = minutes(15), minutes(60)


def latest_start(policy: Settings, deadline: datetime, now: datetime) -> datetime:
    """Return the latest start, minute by minute: the last that is open and stays so for the lead time."""
    moment = deadline
    while moment >= now:
        if all(policy.calendar.at(moment + minutes(each), {}).open for each in range(15)):
            return moment
        moment -= minutes(1)
    return deadline


STARTED = Hits()


@STARTED.at_least(60, QUARTER)
@settings(max_examples=examples(30, QUARTER))
@given(st.lists(announced, min_size=1, max_size=5), st.sampled_from(TEXTS))
def test_nothing_that_the_platform_ends_starts_before_its_hour(events: list[Announced], text: str) -> None:
    policy = policy_of(text)
    _, began = run_on(begin(events, policy), events)
    for name, start in began.items():
        one = events[int(name[1:])]
        if "start: Early" in text and one.kind is Kind.REBOOT:
            continue
        STARTED.count()
        ahead = minutes(20) if "ahead: 20m" in text and one.kind is Kind.REDEPLOY else AHEAD
        latest = latest_start(policy, NOW + minutes(one.within) - LEAD, NOW)
        assert start >= min(max(latest - ahead, NOW), NOW + minutes(one.within) - LEAD), (name, start, latest)


WISHES = ("replace: true", "acknowledge: true", "replace: true, acknowledge: true")
CAN = ("replaced", "control plane", "no provider", "no pool", "out of order", "busy")

ONLY_THE_PLATFORM = Hits()


@ONLY_THE_PLATFORM.at_least(20, QUARTER)
@settings(max_examples=examples(30, QUARTER))
@given(
    st.sampled_from(WISHES),
    st.sampled_from(CAN),
    st.sampled_from((120, 600, 9 * 24 * 60)),
    st.sampled_from((17, 90)),
)
def test_what_only_the_platform_can_end_starts_late_and_takes_no_place(
    wish: str, can: str, within: int, other: int
) -> None:
    policy = policy_of(f"budget: {{maxUnavailable: 1}}\nevents: {{Redeploy: {{{wish}}}}}")
    there = world_of()
    machines, pool = in_pool(there, "a", "b")
    match can:
        case "control plane":
            there.cluster.label("a", CONTROL_PLANE_LABELS[0], "")
        case "no provider":
            there.cluster.annotate("a", OPENSHIFT_MACHINE, None)
        case "no pool":
            pool.members.clear()
        case "out of order":
            machines.out_of_order = "it is forbidden"
        case "busy":
            pool.busy = "it is Upgrading"
    there.cluster.annotate("a", ASKED, _requested(Kind.REDEPLOY, within))
    for _ in range(6):
        look(there, policy)
    if can == "replaced" and "replace" in wish:
        assert there.cluster.nodes["a"].unschedulable
        return
    there.cluster.annotate("b", ASKED, _requested(Kind.REBOOT, other))
    while there.now < NOW + minutes(other + 1):
        plan, _ = look(there, policy)
        schedule = next(node.schedule for node in plan.nodes if node.node == "a")
        assert schedule is not None
        if there.now < NOW + minutes(within) - LEAD - AHEAD:
            ONLY_THE_PLATFORM.count()
            assert not there.cluster.nodes["a"].unschedulable
            assert schedule.ending.startswith("only the platform ends it: ")
            assert schedule.ends is None or schedule.ends > NOW + minutes(within)
        there.advance(minutes(5))
    if within > other + 120:
        assert there.cluster.nodes["b"].unschedulable


def _requested(kind: Kind, within: int) -> str:
    return json.dumps({"kind": kind.value, "notBefore": to_text(NOW + minutes(within))})


SETTINGS = """
budget: {maxUnavailable: 2}
events: {Reboot: {acknowledge: true}}
overrides:
  - nodeSelector: {other: approval}
    events: {Reboot: {approval: true}}
  - nodeSelector: {other: policy}
    events: {Reboot: {acknowledge: false}}
  - nodeSelector: {other: late}
    events: {Reboot: {start: Late}}
"""


def _says(name: str, minutes_ahead: int | None) -> Callable[[Azure], None]:
    def happen(history: Azure) -> None:
        until = history.now + minutes(minutes_ahead) if minutes_ahead is not None else None
        word = Word("alice@laptop", history.now, until)
        said = deferral_text(Deferral(word)) if name == "defer" else hold_text(PersonHold(word))
        history.cluster.annotate("n1", f"{PREFIX}/{name}", said)

    return happen


def _labelled(key: str, value: str) -> Callable[[Azure], None]:
    return lambda history: history.cluster.label("n1", key, value)


def _tainted(history: Azure) -> None:
    history.cluster.taint("n1", (Taint(AUTOSCALER_TAINT, "", "NoSchedule"),))


def _no_agent(history: Azure) -> None:
    history.late.add("n1")
    history.cluster.annotate("n1", IMDS, None)


def _one_place(history: Azure) -> None:
    history.settings = policy_of(SETTINGS.replace("maxUnavailable: 2", "maxUnavailable: 1"))


def _a_place_of_others(history: Azure) -> None:
    history.cluster.cordon("n3")


OTHER_VM: dict[str, Callable[[Azure], None]] = {
    "a hold": _says("hold", None),
    "a long hold": _says("hold", 20 * 24 * 60),
    "a deferral": _says("defer", 20 * 24 * 60),
    "no approval": _labelled("other", "approval"),
    "another policy": _labelled("other", "policy"),
    "a late start": _labelled("other", "late"),
    "not managed": _labelled(f"{PREFIX}/ignore", "true"),
    "the autoscaler": _tainted,
    "no agent": _no_agent,
    "one place": _one_place,
    "a place of others": _a_place_of_others,
}
NO_OTHER_VM = Hits()


@NO_OTHER_VM.at_least(40, QUARTER)
@settings(max_examples=examples(30, QUARTER))
@given(
    st.sampled_from(sorted(OTHER_VM)), st.booleans(), st.sampled_from((20, 90, 600)), st.sampled_from((2, 9))
)
def test_a_node_whose_event_waits_for_another_vm_starts_late_and_takes_no_place(
    why: str, drained: bool, other: int, days: int
) -> None:
    """Azure starts an event for all of its VMs. The other node is kept for days, also after the drain."""
    names = ("n0", "n1", "n2", "n3")
    nodes = [on_vm(node(name), number) for number, name in enumerate(names)]
    history = Azure(world_of(nodes), policy_of(SETTINGS))
    if drained:
        # Soon the other one is drained as well, as far as anybody knows.
        _says("hold", 30)(history)
    else:
        OTHER_VM[why](history)
    when = rfc1123(NOW + timedelta(days=days))
    history.events["A1"] = imds_event([vm_name(0), vm_name(1)], "Reboot", event_id="A1", not_before=when)
    history.go_on(passes=3)
    if drained:
        assert history.cluster.nodes["n0"].unschedulable
        OTHER_VM[why](history)
        history.go_on(passes=3)
        history.wait(minutes(11))
        history.go_on(passes=3)
    begins = history.now
    history.cluster.annotate("n2", ASKED, _requested(Kind.REBOOT, round((begins - NOW) / minutes(1)) + other))
    while history.now < begins + minutes(other):
        history.publish()
        plan, _ = history.look()
        schedule = plan_of(plan, "n0").schedule
        assert schedule is not None
        NO_OTHER_VM.count()
        assert not history.cluster.nodes["n0"].unschedulable
        assert schedule.ending.startswith("only the platform ends it: ")
        assert schedule.planned_start == NOW + timedelta(days=days) - LEAD - AHEAD
        assert schedule.ends is None or schedule.ends > NOW + timedelta(days=days)
        history.wait(minutes(5))
    assert history.cluster.nodes["n2"].unschedulable or why == "one place"


def test_a_drained_node_does_not_keep_its_place_for_days_until_the_hold_of_another_one_ends() -> None:
    history = Azure(world_of([on_vm(node(f"n{number}"), number) for number in range(3)]), policy_of(SETTINGS))
    _says("hold", 30)(history)
    when = rfc1123(NOW + timedelta(days=9))
    history.events["A1"] = imds_event([vm_name(0), vm_name(1)], "Reboot", event_id="A1", not_before=when)
    history.go_on(passes=3)
    assert history.cluster.nodes["n0"].unschedulable

    _says("hold", 3 * 24 * 60)(history)
    for _ in range(3):
        history.go_on(passes=3)
        history.wait(minutes(11))
    assert not history.cluster.nodes["n0"].unschedulable


@pytest.mark.parametrize("resumed", [False, True])
def test_the_nodes_of_one_event_start_early_together_once_the_hold_of_one_ends(resumed: bool) -> None:
    history = Azure(world_of([on_vm(node(f"n{number}"), number) for number in range(3)]), policy_of(SETTINGS))
    _says("hold", 3 * 24 * 60)(history)
    when = rfc1123(NOW + timedelta(days=9))
    history.events["A1"] = imds_event([vm_name(0), vm_name(1)], "Reboot", event_id="A1", not_before=when)
    history.go_on(passes=3)
    (schedule, other) = (plan_of(history.look()[0], name).schedule for name in ("n0", "n1"))

    assert schedule is not None
    assert other is not None
    assert schedule.planned_start == other.planned_start == NOW + timedelta(days=3)
    assert "node n1 does not start before" in schedule.because
    assert "Azure is asked to start it" in schedule.ending
    assert not history.cluster.nodes["n0"].unschedulable

    if resumed:
        history.cluster.annotate("n1", f"{PREFIX}/hold", None)
    else:
        history.wait(timedelta(days=3))
    history.go_on(passes=4)
    assert history.acknowledged() == {"n0": ["A1"], "n1": ["A1"]}


@pytest.mark.parametrize(("within", "may"), [(76, False), (75, True)])
def test_an_event_may_start_an_hour_before_its_latest_start(within: int, may: bool) -> None:
    assert judged(event(not_before=NOW + minutes(within)), now=NOW).may_start is may


NIGHT = 'timeZone: Europe/Berlin\nwindows: [{name: night, start: "01:30", end: "03:30"}]'


@pytest.mark.parametrize(
    ("day", "hours"),
    [
        # In Berlin the clocks go forward at 02:00 on 29 March 2026, and back at 03:00 on 25 October 2026.
        pytest.param(datetime(2026, 3, 28, 12, tzinfo=UTC), 1, id="an hour is left out"),
        pytest.param(datetime(2026, 10, 24, 12, tzinfo=UTC), 3, id="an hour comes twice"),
        pytest.param(datetime(2026, 11, 20, 12, tzinfo=UTC), 2, id="an ordinary night"),
    ],
)
def test_a_window_in_the_night_in_which_the_clocks_change_has_its_real_length(
    day: datetime, hours: int
) -> None:
    policy = policy_of(NIGHT)
    (night,) = policy.calendar.openings(day, {}, count=1)
    assert night.end is not None
    assert night.end - night.start == timedelta(hours=hours)
    one = judged(event(not_before=day + timedelta(hours=20)), policy, now=day)

    assert one.times is not None
    assert one.times.latest == night.end - LEAD
    assert one.times.earliest == night.end - LEAD - AHEAD


@pytest.mark.parametrize(
    ("text", "latest", "never"),
    [
        pytest.param("", 345, "", id="no window"),
        pytest.param('windows: [{start: "14:00", end: "14:10"}]', 120, "", id="shorter than the lead time"),
        pytest.param('windows: [{start: "14:00", end: "16:00"}]', 225, "", id="ends before the deadline"),
        pytest.param('windows: [{start: "17:00", end: "20:00"}]', 345, "", id="is open at the deadline"),
        pytest.param('windows: [{start: "22:00", end: "23:00"}]', 345, "", id="opens after it"),
        pytest.param(
            "notAllowed: [{start: 2026-11-21T17:00, end: 2026-11-21T19:00}]", 285, "", id="before a freeze"
        ),
        pytest.param(
            "notAllowed: [{start: 2026-11-21T11:00, end: 2026-11-21T19:00}]", 345, "", id="in a freeze"
        ),
        pytest.param(
            "notAllowed: [{start: 2026-11-21T11:00, end: 2026-11-21T19:00, absolute: true}]",
            None,
            "an absolute freeze covers the deadline",
            id="in an absolute one",
        ),
        pytest.param(
            'events: {Reboot: {outsideWindow: Never}}\nwindows: [{start: "22:00", end: "23:00"}]',
            None,
            "outsideWindow is Never",
            id="never",
        ),
    ],
)
def test_the_latest_start_is_the_last_moment_that_the_calendar_allows(
    text: str, latest: int | None, never: str
) -> None:
    one = judged(event(not_before=NOW + minutes(360)), policy_of(text), now=NOW)

    assert one.times is not None
    assert one.times.latest == (None if latest is None else NOW + minutes(latest))
    assert never in one.times.never
    assert bool(one.times.never) is bool(never)


def test_a_request_without_a_date_is_for_now_whatever_another_source_plans() -> None:
    plan = PlatformPlan(NOW + timedelta(days=9))
    far = Signal("arm", Kind.REDEPLOY, Status.SCHEDULED, not_before=NOW + timedelta(days=2), plan=plan)
    (joined,) = join("a", [far, Signal(REQUEST, Kind.REDEPLOY, Status.SCHEDULED)])

    assert judged(joined, policy_of()).may_start
    assert not judged(replace(joined, at_once=False), policy_of()).may_start
