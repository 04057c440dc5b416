"""Labels that features want on nodes: written last, only where they differ, and so many in a pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.model.node import Node
from reconciler.model.snapshot import ReadForSettings, ServerVersion
from reconciler.model.values import replace
from reconciler.model.writes import LabelsWrite, Publication
from reconciler.passes.assess import assess
from reconciler.passes.decide import LABELS_AT_MOST, decide
from reconciler.passes.parts import Parts, Sources
from reconciler.passes.plugin import Feature, Fleet, LabelsOf
from reconciler.settings.schema import Settings
from tests.support.builders import NOW, node, settings, snapshot

KEY = "example.com/server"


def _wanted(fleet: Fleet) -> LabelsOf:
    def labels(node: Node) -> Mapping[str, str]:
        if node.name == "broken":
            raise RuntimeError("its data is wrong")
        return {KEY: fleet.snapshot.for_settings.server.text}

    return labels


PARTS = Parts(Sources(), (Feature("toy", labels=_wanted),))


def _writes(nodes: Iterable[Node], chosen: Settings) -> tuple[Publication, ...]:
    seen = replace(snapshot(*nodes), for_settings=ReadForSettings(server=ServerVersion("v1")))
    return decide(seen, assess(seen, NOW), chosen, NOW, PARTS).publications


def test_they_are_written_where_they_differ() -> None:
    nodes = [node("right", labels={KEY: "v1"}), node("none"), node("wrong", labels={KEY: "v0"})]

    assert _writes(nodes, settings()) == (
        LabelsWrite("none", "uid-none", {KEY: "v1"}),
        LabelsWrite("wrong", "uid-wrong", {KEY: "v1"}),
    )


def test_only_managed_nodes_get_them() -> None:
    ignored = node("ignored", labels={"team": "a", "node-maintenance.dev/ignore": "true"})
    nodes = [node("ours", labels={"team": "a"}), node("theirs"), ignored]
    chosen = settings("nodeSelector: {matchLabels: {team: a}}")

    assert [write.node for write in _writes(nodes, chosen)] == ["ours"]


def test_a_node_whose_labels_are_not_known_keeps_no_other_one_from_its_own() -> None:
    assert [write.node for write in _writes([node("broken"), node("whole")], settings())] == ["whole"]


def test_a_pass_changes_so_many() -> None:
    nodes = [node(f"n{number}") for number in range(LABELS_AT_MOST + 1)]

    assert len(_writes(nodes, settings())) == LABELS_AT_MOST
