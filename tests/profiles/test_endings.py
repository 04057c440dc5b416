"""Whether we can end the maintenance of a node by what the platform offers."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from reconciler.model.event import Kind, PlatformPlan
from reconciler.profiles.endings import Means, after_drain
from tests.support import builders
from tests.support.builders import NOW, event, node

PLAIN = builders.settings().policies({}).of_kind(Kind.REDEPLOY)
SOON = event(Kind.REDEPLOY, not_before=NOW + timedelta(days=3))


@pytest.mark.parametrize(
    ("twin", "because"), [("b", "the cloud is not asked: node b has the same providerID"), ("", "")]
)
def test_an_offer_that_can_t_be_taken_is_none(twin: str, because: str) -> None:
    offered = dataclasses.replace(SOON, plan=PlatformPlan(offered=True, asks="the cloud", accept=True))
    after = after_drain(offered, PLAIN, node(), Means(twin=twin), NOW)

    assert after.offered == "the cloud"
    assert after.by_us is not bool(because)
    assert because in after.refused
