"""An error in the source of one node or in its client makes readings unknown, and ends no pass."""

from __future__ import annotations

from typing import Any

from reconciler.model.values import replace
from reconciler.run import run_pass
from reconciler.sources.aws.source import Ec2Events
from tests.laws.breaking import Break
from tests.support import builders
from tests.support.builders import DRAIN_NOW, REQUEST, plan_of
from tests.support.worlds import world_of

Z = "z"
PROVIDER = "aws:///eu-west-1a/i-0123456789abcdef0"
SETTINGS = "budget: {maxUnavailable: 100%}\npublish: [nodemaintenances]\nsources: {aws: {enabled: true}}"


def test_an_error_in_the_scope_of_one_node_leaves_the_source_to_the_others() -> None:
    fine, other = (replace(builders.node(name), provider_id=PROVIDER) for name in ("a", Z))

    assert Ec2Events().scopes([fine, Break(1).broken(other)]) == {"eu-west-1": {"i-0123456789abcdef0"}}


class _Client:
    def ask(self, scopes: object, /) -> Any:
        raise OverflowError("out of range")


def test_an_error_in_the_client_of_a_source_makes_its_readings_unknown_and_is_tried_again_later() -> None:
    asking = replace(builders.node("a", annotations={REQUEST: DRAIN_NOW}), provider_id=PROVIDER)
    world = world_of([asking])
    outside = replace(world.outside, clients={"aws": _Client()})
    plan, _ = run_pass(outside, builders.settings(SETTINGS), world.now)

    found = plan_of(plan, "a")
    assert found.starts
    assert any("an error in this program" in text for text in found.unknowns)
    assert plan.ledger is not None
    (answer,) = Ec2Events().kept.of(plan.ledger).answers
    assert answer.again > world.now
