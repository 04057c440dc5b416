"""EC2's scheduled events, from the answer to what they require of a node."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Any

import pytest

from reconciler.model.event import Signal
from reconciler.model.node import Node, Taint
from reconciler.model.plan import JudgedEvent
from reconciler.model.polling import Memory
from reconciler.model.values import replace
from reconciler.passes.assess import join
from reconciler.passes.plugin import SourceContext
from reconciler.settings.schema import Settings
from reconciler.sources.aws import source as aws
from tests.support import builders
from tests.support.builders import NOW, judged, minutes, settings

INSTANCE = "i-0123456789abcdef0"
NODE = replace(builders.node(), provider_id=f"aws:///eu-west-1a/{INSTANCE}")
KARPENTERS = replace(
    builders.node(labels={"karpenter.sh/nodepool": "np"}), provider_id=f"aws:///eu-west-1a/{INSTANCE}"
)
ON = "sources: {aws: {enabled: true}}"
A_DAY = "sources: {aws: {enabled: true, ahead: 1d}}"
EARLY = "events: {Redeploy: {start: Early}, Terminate: {start: Early}}"
DAY = timedelta(days=1)
START = NOW + 13 * DAY
EC2 = aws.Ec2Events()


def signal(
    chosen: Settings, *, code: str = "system-reboot", start: Any = START, now: datetime = NOW
) -> Signal:
    """What EC2 says about the node, as the source reports it."""
    event = {"InstanceEventId": "instance-event-1", "Code": code, "NotBefore": start}
    found = aws.listing("eu-west-1", [{"InstanceId": INSTANCE, "Events": [event]}])
    memory = EC2.remembered(Memory(), [found], [NODE], timedelta(minutes=5), now)
    (reading,) = EC2.read(NODE, SourceContext(chosen, now, memories={"aws": memory}))
    return reading.signals[0]


def judged_event(
    text: str = ON, *, code: str = "system-reboot", start: Any = START, now: datetime = NOW, on: Node = NODE
) -> JudgedEvent:
    chosen = settings(text)
    (event,) = join("a", [signal(chosen, code=code, start=start, now=now)])
    return judged(event, chosen, now=now, on=on)


WITH_HOST = ("instance-stop", "instance-retirement")
"""The codes of a host that fails."""


@pytest.mark.parametrize("code", sorted({*aws.CODES} - {*WITH_HOST}))
def test_an_event_two_weeks_off_is_a_plan_that_requires_nothing_yet(code: str) -> None:
    one = judged_event(A_DAY, code=code)

    assert not one.asks
    assert one.until == START - DAY
    assert "sources.aws.ahead" in one.because


@pytest.mark.parametrize("code", WITH_HOST)
@pytest.mark.parametrize(("more", "at_once"), [("", False), (EARLY, True)])
def test_a_drain_from_a_host_that_fails_starts_at_once_where_the_settings_say_so(
    code: str, more: str, at_once: bool
) -> None:
    event = judged_event(f"{A_DAY}\n{more}", code=code)

    assert event.may_start is at_once
    assert event.because.endswith("requires a drain: the hardware under the VM fails") is at_once


@pytest.mark.parametrize("code", WITH_HOST)
def test_a_drain_from_a_host_that_fails_waits_for_its_window(code: str) -> None:
    event = judged_event(
        f'{ON}\n{EARLY}\nwindows: [{{name: night, start: "22:00", end: "23:00"}}]', code=code
    )

    assert event.asks
    assert not event.may_start


@pytest.mark.parametrize(("code", "kind"), [*zip(WITH_HOST, ("Redeploy", "Terminate"), strict=True)])
def test_a_drain_from_a_host_that_fails_starts_late_if_the_settings_say_so(code: str, kind: str) -> None:
    late = judged_event(f"{ON}\nevents: {{{kind}: {{start: Late}}}}", code=code)

    assert not late.asks
    assert late.until == START - minutes(15) - minutes(60)


def test_without_a_setting_of_its_own_it_requires_a_drain_as_other_events_do() -> None:
    one = judged_event()

    assert one.until == START - minutes(15) - minutes(60)
    assert "events.Reboot.ahead" in one.because


@pytest.mark.parametrize(
    ("text", "now", "asks"),
    [
        pytest.param(A_DAY, START - DAY - minutes(1), False, id="a minute before ahead"),
        pytest.param(A_DAY, START - DAY, True, id="from ahead on"),
        pytest.param(ON, START, True, id="it has started"),
        pytest.param("sources: {aws: {enabled: true, ahead: 14d}}", NOW, True, id="a longer ahead"),
        pytest.param("sources: {aws: {enabled: true, ahead: 0s}}", START - minutes(16), False, id="none"),
        pytest.param("sources: {aws: {enabled: true, ahead: 0s}}", START - minutes(15), True, id="lead time"),
    ],
)
def test_an_event_requires_a_drain_from_ahead_on(text: str, now: datetime, asks: bool) -> None:
    assert judged_event(text, now=now).asks is asks


@pytest.mark.parametrize("start", ["soon", None, ""])
def test_an_event_without_a_readable_date_is_no_plan_for_later(start: Any) -> None:
    assert judged_event(start=start).asks


@pytest.mark.parametrize(("leave", "asks"), [("[]", True), ("[Preempt]", True), ("[Reboot]", False)])
def test_a_list_of_kinds_leaves_karpenter_these_kinds_only(leave: str, asks: bool) -> None:
    text = f"{ON}\ncoexist: {{karpenter: {{leave: {leave}}}}}"

    assert judged_event(text, now=START - minutes(20), on=KARPENTERS).asks is asks


def test_a_request_for_the_same_event_is_not_left_to_karpenter() -> None:
    chosen, now = settings(ON), START - minutes(20)
    ec2 = signal(chosen, now=now)
    (event,) = join("a", [ec2, dataclasses.replace(ec2, source="request", id="", plan=None)])

    disrupted = replace(KARPENTERS, taints=(Taint("karpenter.sh/disrupted"),))
    assert judged(event, chosen, now=now, on=disrupted).asks
