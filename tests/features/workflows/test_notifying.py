"""When a notification of a profile's state is due, and which message it makes."""

from __future__ import annotations

from datetime import datetime, timedelta

from reconciler.features.workflows.configured import workflows_of
from reconciler.features.workflows.data import ProfileData, WorkflowData
from reconciler.features.workflows.notifying import Notification, after_sent, notified
from reconciler.features.workflows.settings import PROFILES
from reconciler.features.workflows.situation import WorkflowSituation
from reconciler.model.moments import to_text
from reconciler.model.record import State
from reconciler.model.values import replace
from reconciler.settings.load import parse_settings
from tests.features.workflows.scene import PROFILE, given
from tests.support.builders import NOW, minutes, node

HOUR = timedelta(hours=1)
CHANGED = NOW - minutes(2)


def instance(
    schedule: str = "", message: str = "{{ .Node.Name }} {{ .State }}", kind: str = "mail"
) -> Notification:
    """One instance, `tell`."""
    times = f", schedule: {schedule}" if schedule else ""
    keys = {
        "mail": "address: x, from: a@b.c, to: d@e.f",
        "slack": "hook: 'http://x', channel: c",
        "slackThread": "token: t, channel: c, title: 'on {{ .Node.Name }}', leaseName: l, leaseNamespace: n, "
        "period: 1h",
    }[kind]
    config = f"config: {{{keys}, message: '{message}'}}"
    text = f"instances: {{notify: [{{name: tell, type: {kind}, {config}{times}}}]}}"
    settings = parse_settings(f"{text}\nprofiles: [{{name: {PROFILE}}}]", "x.yaml")
    return workflows_of(PROFILES.of(settings)).notifications["tell"]


def scene(
    state: State = State.REQUIRED,
    previous: State | None = None,
    *,
    since: datetime = CHANGED,
    last: datetime | None = None,
    now: datetime = NOW,
    more: dict[str, ProfileData] | None = None,
) -> WorkflowSituation:
    kept = ProfileData(since, state, previous or state)
    sent = {"tell": last} if last is not None else {}
    return replace(given(node=node("a"), now=now), data=WorkflowData({PROFILE: kept, **(more or {})}, sent))


def texts(seen: WorkflowSituation, one: Notification, *profiles: str) -> list[str]:
    told = notified([(name, (one,)) for name in profiles or (PROFILE,)], seen)
    return [message.text for message in told.messages]


def test_a_periodic_notification_follows_each_change_and_then_its_interval() -> None:
    one = instance("{type: periodic, config: {interval: 1h}}")

    assert texts(scene(previous=State.OPERATIONAL), one) == ["a maintenance-required"]
    assert texts(scene(last=CHANGED - HOUR), one) == ["a maintenance-required"]
    assert texts(scene(last=NOW - minutes(1)), one) == []
    assert texts(scene(since=NOW - 5 * HOUR, last=NOW - HOUR), one) == ["a maintenance-required"]
    # The reconciler was away for some intervals.
    assert texts(scene(since=NOW - 9 * HOUR, last=NOW - 4 * HOUR), one) == ["a maintenance-required"]


def test_an_operational_node_is_told_of_its_return_and_never_again() -> None:
    one = instance("{type: periodic, config: {interval: 1h}}")

    back = scene(State.OPERATIONAL, State.IN_MAINTENANCE, last=CHANGED - HOUR)
    assert texts(back, one) == ["a operational"]
    assert texts(scene(State.OPERATIONAL, since=NOW - 9 * HOUR, last=NOW - 8 * HOUR), one) == []
    # A profile that is new on its node has not changed.
    assert texts(scene(State.OPERATIONAL), one) == []


def test_a_scheduled_notification_comes_once_on_its_day_from_its_time_on() -> None:
    one = instance("{type: scheduled, config: {instant: '12:00', weekdays: [saturday]}}")

    assert datetime.fromisoformat("2026-11-21T12:00:00+00:00") == NOW
    assert texts(scene(now=NOW - minutes(1)), one) == []
    assert texts(scene(), one) == ["a maintenance-required"]
    assert texts(scene(last=NOW - minutes(1)), one) == []
    assert texts(scene(now=NOW + timedelta(days=1)), one) == []
    # The same day of another month.
    assert texts(scene(last=NOW - timedelta(days=31)), one) == ["a maintenance-required"]


def test_a_oneshot_notification_comes_once_after_its_delay() -> None:
    one = instance("{type: oneshot, config: {delay: 2m}}")

    assert texts(scene(now=NOW - timedelta(seconds=1)), one) == []
    assert texts(scene(), one) == ["a maintenance-required"]
    assert texts(scene(last=NOW - minutes(1)), one) == []
    assert texts(scene(now=NOW + HOUR, last=NOW), one) == []


def test_the_time_is_kept_and_instances_that_are_gone_do_not_add_up() -> None:
    old = {f"gone-{number:03}": NOW - timedelta(days=number + 1) for number in range(100)}
    seen = scene(previous=State.OPERATIONAL, now=NOW + timedelta(microseconds=5))
    known = replace(seen, data=replace(seen.data, notifications=old))
    data = notified([(PROFILE, (instance(),))], known).data

    assert data.notifications["tell"] == NOW
    assert len(data.notifications) == 100
    assert "gone-099" not in data.notifications


def test_the_moment_of_the_next_message_is_known() -> None:
    def following(schedule: str, seen: WorkflowSituation) -> datetime | None:
        return notified([(PROFILE, (instance(f"{{type: {schedule}}}"),))], seen).next

    hourly = "periodic, config: {interval: 1h}"
    assert following(hourly, scene()) == NOW + HOUR
    assert following(hourly, scene(last=NOW - minutes(1))) == NOW + minutes(59)
    assert following(hourly, scene(State.OPERATIONAL, last=NOW)) is None
    assert following("oneshot, config: {delay: 1h}", scene()) == CHANGED + HOUR
    assert following("scheduled, config: {instant: '12:00', weekdays: [sat]}", scene()) == NOW + timedelta(
        days=7
    )


def test_profiles_that_change_together_are_both_named_and_a_reminder_comes_once() -> None:
    one = instance("{type: periodic, config: {interval: 1h}}", "{{ .Profile.Current }} {{ .Profile.Last }}")
    both = scene(more={"net": ProfileData(CHANGED - minutes(1), State.REQUIRED, State.REQUIRED)})

    assert texts(both, one, "net", PROFILE) == [f"net {PROFILE}", f"{PROFILE} {PROFILE}"]
    reminded = replace(both, data=replace(both.data, notifications={"tell": NOW}), now=NOW + HOUR)
    assert texts(reminded, one, "net", PROFILE) == [f"net {PROFILE}"]


def test_a_message_has_the_same_id_until_its_time_is_written() -> None:
    def found(seen: WorkflowSituation) -> str:
        (message,) = notified([(PROFILE, (instance(),))], seen).messages
        return message.id

    first = found(scene())
    assert found(scene(now=NOW + HOUR)) == first
    assert found(scene(last=CHANGED - HOUR)) != first
    assert found(scene(since=CHANGED + minutes(1))) != first


def test_a_template_that_fails_sends_the_facts_and_says_so() -> None:
    (text,) = texts(scene(), instance(message="{{ index .State 1 }}"))

    assert text == (
        f"Node a is in the state maintenance-required of profile {PROFILE} since {to_text(CHANGED)}.\n"
        "The template of tell can't be rendered: index needs a mapping, such as .Node.Labels, and a key\n"
        "Its lines:\n{{ index .State 1 }}"
    )


def test_the_command_of_a_template_with_a_loop_is_still_sent() -> None:
    approve = "kubectl annotate node {{ .Node.Name }} cloud.sap/maintenance-approved=true"
    lines = ["{{ range .Node.Spec.Taints }}", "{{ .Key }}", "{{ end }}", f"Approve: {approve}"]
    (text,) = texts(scene(), replace(instance(), text="\n".join(lines)))

    assert "kubectl annotate node a cloud.sap/maintenance-approved=true" in text
    assert "loops, variables and other templates do not exist here" in text


def test_a_template_that_makes_nothing_sends_the_facts() -> None:
    (text,) = texts(scene(), instance(message="{{ if .LogDetails }}x{{ end }} "))

    assert text.startswith("Node a is in the state maintenance-required")


def test_a_thread_has_a_title() -> None:
    (message,) = notified([(PROFILE, (instance(kind="slackThread"),))], scene()).messages

    assert (message.title, message.text) == ("on a", "a maintenance-required")


def test_a_change_in_the_second_of_a_notification_counts_as_later() -> None:
    """The data have whole seconds: else the notification of the new state would count as sent."""
    data = WorkflowData({}, {"tell": NOW})

    assert after_sent(data, NOW) == NOW + timedelta(seconds=1)
    assert after_sent(data, NOW + minutes(1)) == NOW + minutes(1)


def test_the_labels_and_annotations_of_templates_are_read() -> None:
    one = instance(message='{{ index .Node.ObjectMeta.Labels "a/b" }} {{ index .Node.Annotations "c/d" }}')

    assert (set(one.reads("Labels")), set(one.reads("Annotations"))) == ({"a/b"}, {"c/d"})


def test_what_a_template_inserts_has_no_markup_of_slack() -> None:
    one = instance(message="<!here> {{ .Node.Annotations.x }}", kind="slack")
    hostile = node("a", annotations={"x": "<!channel>"})

    assert texts(replace(scene(), node=hostile), one) == ["<!here> &lt;!channel&gt;"]
