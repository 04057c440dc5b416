"""Histories that `nox -s explore` found, shrunk: each broke the law that its comment names."""

from __future__ import annotations

from tests.explore.choices import CAREFUL, PLAIN
from tests.explore.exploring import play
from tests.explore.history import History, Scene, Step

ACTING = ("mode: Enforce", "budget: {maxUnavailable: 1}")
ASKING = (
    "sources: {arm: {enabled: true, every: 1h}, aws: {enabled: true, every: 1h}, "
    "nodeConditions: {staleAfter: 2h}}"
)


def holds(scene: Scene, steps: tuple[Step, ...], *, seed: int = 0) -> None:
    """Play a history; it has to break no law."""
    found = play(History(scene, steps, seed))
    assert found.broken == []


def test_an_unready_pod_under_a_budget_whose_news_are_lost() -> None:
    # Law 17: evict shop/guarded-... again and again, without a pause.
    holds(
        Scene(1, pods=("budget",), settings=ACTING),
        (Step("watches", value="lost"), Step("wide event", value="Reboot in 15 by both", then=15)),
    )


def test_objects_that_are_switched_off_in_mid_case() -> None:
    # Law calm: NodeMaintenances go on.
    holds(
        Scene(1, settings=(*ACTING, "publish: [nodemaintenances, node-conditions]")),
        (Step("request", value="Reboot"), Step("settings", value="publish: []")),
    )


def test_an_object_on_a_node_with_a_silent_source_that_never_reported_its_event() -> None:
    # Law shown: the object stayed open for as long as the detector knew nothing.
    holds(
        Scene(1, settings=(*ACTING, "publish: [nodemaintenances, node-conditions]")),
        (Step("request", value="Reboot", then=5), Step("condition unknown"), Step("withdraw", then=60)),
    )


def test_a_request_that_is_withdrawn_while_a_plan_of_its_kind_stays() -> None:
    # Law 6: n0 is uncordoned 0:00:00 after its last event.
    holds(
        Scene(1, settings=(*ACTING, "sources: {arm: {enabled: true, every: 30m}}")),
        (
            Step("arm plan", value="in 20160", then=60),
            Step("request", value="Redeploy", then=60),
            Step("withdraw", then=60),
        ),
    )


def test_a_node_that_is_managed_again_before_its_cloud_is_queried() -> None:
    # Law 6: n1 is uncordoned while aws has Reboot.
    holds(
        Scene(2, cloud="aws", settings=(*ACTING, "sources: {aws: {enabled: true, every: 1h}}")),
        (
            Step("ec2 event", on=1, value="instance-reboot in 60", then=240),
            Step("ignore", on=1, value="true", then=120),
            Step("ignore", on=1, then=30),
        ),
    )


def test_a_node_that_a_person_drains_and_uncordons_without_release() -> None:
    # Law calm: n0 still has its record, with the person's claim.
    holds(Scene(1, settings=ACTING), (Step("drain by hand", value="anna"), Step("uncordon")))


def test_a_request_for_now_that_is_joined_with_a_plan_of_its_kind_is_not_planned_for_later() -> None:
    # Law 6: n1 was uncordoned a minute after its last event, because the request had the date of the plan.
    holds(
        Scene(2, settings=(*ACTING, "sources: {arm: {enabled: true, every: 1h}}")),
        (
            Step("request", on=1, value="Reboot"),
            Step("vm event", value="Preempt in 5 by condition", then=5),
            Step("arm plan", value="in 600", then=60),
            Step("request", value="Redeploy", then=1),
        ),
        seed=100076,
    )


def test_an_event_that_goes_before_the_drain_is_done_with_hooks_after_the_drain() -> None:
    # Law calm: n0 was never uncordoned, because a hook that had not begun held the uncordon.
    hook = "{name: ready, webhook: {url: 'https://hooks.example.com'}}"
    holds(
        Scene(1, settings=(*ACTING, f"hooks: {{postDrain: [{hook}]}}")),
        (Step("request", value="Reboot"),),
        seed=210014,
    )


def test_a_profile_that_begins_while_the_node_is_drained_for_another_one() -> None:
    # Law 19: n0 was in maintenance for both.
    holds(
        Scene(1, settings=(*ACTING, PLAIN)),
        (Step("work", value="two"), Step("work", value="one", then=1)),
        seed=5116,
    )


def test_a_held_node_whose_request_is_joined_with_a_plan_that_gets_another_date() -> None:
    # Law 6: n0 was uncordoned while request has Redeploy.
    holds(
        Scene(1, settings=(*ACTING, "sources: {arm: {enabled: true, every: 1h}}")),
        (
            Step("request", value="Redeploy"),
            Step("hold"),
            Step("arm plan", value="in 60", then=60),
            Step("arm plan", value="in 60", then=120),
        ),
        seed=500057,
    )


def test_a_node_that_loses_its_profile_for_a_while_says_that_it_is_cordoned() -> None:
    # Law calm: n0 stayed cordoned, and no hold said why; the end of a history releases it now.
    holds(
        Scene(1, settings=(*ACTING, PLAIN)),
        (Step("work", value="two", then=5), Step("workflow label", value="first", then=5)),
    )


def test_a_reboot_does_not_wait_for_a_profile_that_is_gone() -> None:
    # Here the check of law 19 was wrong: a profile that the settings do not name any more goes on with
    # nothing, so nobody waits for it. Law 8: at the end the profile comes back, and then passes ordered its
    # drain again and again, because the profile of the platform did not want it any more.
    holds(
        Scene(1, settings=(*ACTING, PLAIN)),
        (
            Step("work", value="one"),
            Step("settings", value="profiles: {}"),
            Step("vm event", value="Reboot in 15 by both"),
        ),
        seed=830018,
    )


def test_a_profile_that_comes_back_waits_for_the_maintenance_of_the_platform() -> None:
    # Law 19: n0 was in maintenance for both, because the chain of the profile went on.
    holds(
        Scene(1, settings=(*ACTING, PLAIN)),
        (
            Step("work", value="two"),
            Step("workflow label", value="first"),
            Step("vm event", value="Reboot in 15 by both"),
        ),
        seed=830018,
    )


def test_a_profile_that_comes_back_does_not_end_the_drain_of_the_platform() -> None:
    # As above: the drain goes on when the profile comes back.
    holds(
        Scene(1, settings=(*ACTING, PLAIN)),
        (
            Step("work", value="two"),
            Step("workflow label", value="first"),
            Step("vm event", value="Reboot in 15 by both"),
            Step("workflow label", value="first--second", then=5),
        ),
    )


def test_a_drain_that_ends_after_its_profile_has_changed_leaves_a_hold() -> None:
    # Law calm: n0 stayed cordoned as its hold says; the end of a history releases it now.
    holds(
        Scene(1, settings=(*ACTING, PLAIN)),
        (Step("work", value="two"), Step("settings", value=CAREFUL)),
        seed=52006,
    )


def test_a_node_that_is_released_with_reset_is_drained_again() -> None:
    # Here the check was wrong, too: `--reset` undoes our cordon where the record can be read.
    holds(Scene(1, settings=ACTING), (Step("request", value="Reboot"), Step("reset")))


def test_a_cordon_of_a_workflow_whose_record_is_gone_is_adopted_and_taken_off_in_one_pass() -> None:
    # Law 4: n0 starts without an event that requires a drain. The check was wrong.
    holds(
        Scene(1, settings=(*ACTING, PLAIN, ASKING, "uncordon: {settle: 0s}")),
        (Step("work", value="one"), Step("record")),
        seed=900092,
    )


def test_a_pod_that_waits_while_the_clock_of_the_process_is_set_back() -> None:
    # Law 18: tenant/app-... could go, and is not evicted. The check was wrong: the pod waits by that clock.
    holds(
        Scene(1, pods=("budget", "tenant"), settings=(*ACTING, ASKING)),
        (Step("request", value="Reboot"), Step("clock", value="-86400", then=120)),
        seed=900031,
    )


def test_a_profile_goes_back_in_mode_finish_when_its_cause_is_gone() -> None:
    # Law calm: n0 stayed in maintenance-required, and cordoned if its profile cordons there.
    holds(
        Scene(1, settings=("mode: Enforce", "budget: {maxUnavailable: 1}", CAREFUL)),
        (Step("work", value="two"), Step("settings", value="mode: Finish")),
        seed=900154,
    )


def test_a_node_that_a_workflow_has_drained_and_a_person_has_uncordoned_before_a_reboot() -> None:
    # Law missed: n0 was met with pods on it, and nobody was told.
    holds(
        Scene(1, settings=(*ACTING, ASKING, CAREFUL)),
        (
            Step("work", value="one", then=1),
            Step("uncordon"),
            Step("vm event", value="Reboot in 15 by both"),
            Step("kernel deadlock", value="False", then=15),
        ),
        seed=31001,
    )


def test_an_event_of_a_cloud_that_starts_by_time_alone_on_a_node_that_is_not_drained_for_it() -> None:
    # Law 20: the node rested, and the plan still called the event scheduled.
    holds(
        Scene(2, cloud="aws", settings=(*ACTING, ASKING)),
        (
            Step("detector", then=5),
            Step("ec2 event", value="strange-code in 60", then=2),
            Step("watches", value="kept", then=15),
            Step("request", then=5),
            Step("request", value="Reboot", then=10),
            Step("withdraw", on=1, then=5),
            Step("hook", value="pre-drain.leader", then=20),
        ),
        seed=900643,
    )


def test_a_drain_while_the_clock_of_the_process_is_ahead_by_more_than_its_time() -> None:
    # Law 8: still writing after 30 passes. The drain timed out at once, and began again.
    holds(
        Scene(1, settings=(*ACTING, ASKING)),
        (Step("clock", value="86400"), Step("vm event", value="Reboot in 15 by both")),
        seed=76004,
    )


def test_a_deadline_that_has_come_by_the_faster_clock_alone() -> None:
    # Law 4: n0 starts outside of every window. The check was wrong: it went by the slower clock alone.
    holds(
        Scene(1, settings=(*ACTING, ASKING, 'windows: [{name: noon, start: "11:00", end: "14:00"}]')),
        (
            Step("work", value="one", then=120),
            Step("clock", value="-86400"),
            Step("vm event", value="Reboot in 15 by both"),
        ),
        seed=75002,
    )
