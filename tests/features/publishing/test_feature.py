"""Publishers as the stages see them: all of them at once, and none by its name."""

from __future__ import annotations

import pytest

from reconciler.features.publishing import feature
from reconciler.features.publishing.drainsafe import DRAINSAFE_KEYS, DRAINSAFE_OWNER, DRAINSAFE_STATE
from reconciler.features.publishing.feature import (
    ON_NODES,
    NodePublisher,
    bears_signs,
    node_signs,
    removed_signs,
)
from reconciler.features.publishing.node_maintenances import SIGN, keeps, object_changes, read_objects
from reconciler.features.publishing.objects import MaintenanceWrite
from reconciler.features.publishing.settings import EnabledSigns, Sign
from reconciler.features.publishing.simulation import KIND
from reconciler.model.errors import Forbidden, NotFound
from reconciler.model.values import replace
from reconciler.passes.decision import NodeSigns
from reconciler.passes.plugin import Fleet, ObjectChanges
from reconciler.run import run_pass
from reconciler.simulation.api import Call
from reconciler.simulation.world import World
from tests.features.publishing.test_signs import standing
from tests.support import builders
from tests.support.builders import NOW, PREFIX, REQUEST
from tests.support.of_features import annotations_of_signs
from tests.support.worlds import look, world_of

SHOWING = EnabledSigns(tuple(Sign), PREFIX, NOW)


PUBLISHED = builders.settings("publish: [nodemaintenances]")


def test_every_sign_of_the_settings_has_one_publisher() -> None:
    assert sorted(one.sign for one in ON_NODES if one.sign is not None) == sorted({*Sign} - {SIGN})


def test_the_signs_of_all_publishers_come_together() -> None:
    found = node_signs(builders.node(), standing(), SHOWING)

    assert found.annotations[DRAINSAFE_OWNER] == PREFIX
    assert [(write.node, write.action.name) for write in found.writes] == [("a", "conditions")]


def test_what_any_publisher_has_on_a_node_is_borne_and_removed() -> None:
    node = builders.node(annotations={DRAINSAFE_OWNER: PREFIX, DRAINSAFE_STATE: "NodeRunning"})
    another = builders.node(annotations={DRAINSAFE_OWNER: "another.example", DRAINSAFE_STATE: "NodeRunning"})

    assert bears_signs(node, PREFIX)
    assert removed_signs(node, PREFIX).annotations == {DRAINSAFE_OWNER: None, DRAINSAFE_STATE: None}
    assert not bears_signs(another, PREFIX)
    assert removed_signs(another, PREFIX) == NodeSigns()


def test_tests_of_all_know_each_annotation_that_is_written() -> None:
    assert annotations_of_signs() >= DRAINSAFE_KEYS


def test_objects_are_read_only_where_they_are_published() -> None:
    there = World(NOW)
    api = there.api

    assert read_objects(there.outside, PUBLISHED) == ({"nodemaintenances": ()}, ())
    assert api.reads == 1
    assert read_objects(there.outside, builders.settings("publish: [drainsafe]")) == ({}, ())
    assert api.reads == 1


def test_objects_that_can_not_be_read_are_a_problem_and_are_left_as_they_are() -> None:
    there = World(NOW)

    def refuse(call: Call) -> None:
        raise Forbidden(f"no right to {call.what}")

    there.api.before_read = refuse
    found, problems = read_objects(there.outside, PUBLISHED)

    assert found == {}
    (problem,) = problems
    assert problem.startswith("NodeMaintenance objects can't be read, and are left as they are: no right")
    assert object_changes(found, Fleet((), {}, PUBLISHED, NOW)) == ObjectChanges()


def test_a_cluster_without_the_kind_has_nothing_to_change() -> None:
    there = World(NOW)
    del there.cluster.others[KIND]

    assert read_objects(there.outside, PUBLISHED) == ({}, ())
    with pytest.raises(NotFound):
        MaintenanceWrite("a-1", "a", PREFIX, None, exists=True).send(there.outside.client)


def test_a_process_without_a_client_reads_no_objects_and_knows_of_none() -> None:
    alone = replace(World(NOW).outside, clients={})

    assert read_objects(alone, PUBLISHED, ["nodemaintenances"]) == ({}, ())
    assert keeps(("nodemaintenances",), Fleet((), {}, PUBLISHED, NOW)) == ("nodemaintenances",)


TOY = NodePublisher(
    Sign.DRAINSAFE,
    bears=lambda node, prefix: "toy.example/state" in node.annotations,
    signs=lambda node, decision, showing: NodeSigns({"toy.example/state": decision.state.value}),
    removed=lambda node, prefix: NodeSigns({"toy.example/state": None}),
    annotations=frozenset({"toy.example/state"}),
)


def test_a_publisher_is_added_by_a_line_of_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    there = World(NOW)
    there.cluster.add_node(builders.node(annotations={REQUEST: builders.DRAIN_NOW}))
    monkeypatch.setattr(feature, "ON_NODES", (TOY,))
    run_pass(there.outside, builders.settings(), NOW)

    assert there.cluster.nodes["a"].annotations["toy.example/state"] == "in-maintenance"


def test_notices_are_sent_after_publications() -> None:
    world = world_of([builders.node(annotations={REQUEST: builders.DRAIN_NOW})])

    look(world, builders.settings("publish: [node-conditions]"))

    assert [write.what for write in world.api.done] == ["patch_node", "patch_conditions", "notify"]
