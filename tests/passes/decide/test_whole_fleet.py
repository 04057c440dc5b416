"""A plan has every node for views of the whole fleet, also those without anything to decide."""

from __future__ import annotations

import pytest

from reconciler.model.content import CalendarText
from reconciler.model.node import Node
from reconciler.model.snapshot import FleetNode, ReadForSettings
from reconciler.model.values import replace
from reconciler.passes.decide.reporting import fleet_nodes
from tests.support import builders
from tests.support.builders import node


def test_every_node_is_in_the_fleet_with_why_it_is_closed() -> None:
    seen = builders.snapshot(
        node("a", zone="1", pool="web"), node("b", unschedulable=True), node("c", labels={"team": "x"})
    )
    plan = builders.planned(seen, builders.settings("nodeSelector: {matchLabels: {agentpool: web}}"))

    assert plan.nodes == ()
    assert plan.fleet == (
        FleetNode("a", "1", "web"),
        FleetNode("b", managed=False, closed="cordoned by others"),
        FleetNode("c", managed=False),
    )


def test_a_node_that_breaks_the_program_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = builders.snapshot(node("a"), node("b"))

    def broken(one: Node) -> str:
        if one.name == "a":
            raise RuntimeError("broken")
        return "1"

    monkeypatch.setattr(Node, "zone", property(broken))

    found = fleet_nodes(seen, builders.settings())
    assert [(one.node, one.zone, one.managed) for one in found] == [("a", "", False), ("b", "1", True)]


def test_the_plan_has_the_calendars_that_it_follows() -> None:
    text = CalendarText(unread="there is no such file")
    seen = replace(builders.snapshot(node("a")), for_settings=ReadForSettings(calendars={"holidays": text}))

    assert builders.planned(seen).settings.calendars == {"holidays": text}
