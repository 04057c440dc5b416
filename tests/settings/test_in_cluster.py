"""What the settings mean for the nodes that a cluster has now, for `check-config`."""

from __future__ import annotations

import pytest

from reconciler.settings.in_cluster import nodes_in_words, nodes_to_question
from tests.support.builders import condition, node, settings

NODES = [
    node("a", labels={"pool": "web"}, conditions=(condition("KernelReady", "True"),)),
    node("b", labels={"pool": "web"}, conditions=(condition("KernelReady", "True"),)),
    node("c", labels={"pool": "gpu"}, conditions=(condition("KernelReady", "False"),)),
    node("d", labels={"pool": "gpu", "node-maintenance.dev/ignore": "true"}),
]


def test_it_is_said_how_many_nodes_are_meant() -> None:
    text = "conditions: {KernelReady: {}}\noverrides: [{nodeSelector: {pool: web}}]"

    assert list(nodes_in_words(settings(text), NODES)) == [
        "  3 of 4 nodes are managed.",
        "  Condition KernelReady: False on 1, True on 2, absent on 0 of 3 nodes that it may drain.",
        "  overrides[0].nodeSelector selects 2 of 4 nodes.",
    ]
    absent = settings("conditions: {Other: {}}")
    assert "  Condition Other: absent of 3 nodes that it may drain." not in nodes_in_words(absent, NODES)
    assert "  Condition Other: absent on all of 3 nodes that it may drain." in nodes_in_words(absent, NODES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("conditions: {KernelReady: {}}", ["conditions.KernelReady: is True on 2 of 3 nodes now"]),
        ("conditions: {KernelReady: {status: 'False'}}", []),
        (
            "overrides: [{nodeSelector: {pool: wbe}}]",
            ["overrides[0].nodeSelector: selects none of the 4 nodes; correct"],
        ),
        ("overrides: [{nodeSelector: {}}]", []),
        ("overrides: [{nodeSelector: {pool: gpu}}]", []),
    ],
)
def test_what_is_about_none_or_nearly_all_nodes_is_questioned(text: str, said: list[str]) -> None:
    found = [str(one) for one in nodes_to_question(settings(text), NODES)]

    assert len(found) == len(said), found
    assert all(one.startswith(words) for one, words in zip(found, said, strict=True)), found


def test_a_cluster_without_nodes_questions_nothing() -> None:
    assert list(nodes_to_question(settings("nodeSelector: {pool: web}"), [])) == []
