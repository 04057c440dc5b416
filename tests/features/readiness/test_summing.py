"""The findings of a cluster: by workload, the worst first, of the nodes that were asked for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.features.readiness.findings import WebhookAnswers, WebhookRefusal
from reconciler.features.readiness.judging import ClusterState, judge_nodes, read, summed_up
from reconciler.model.errors import Forbidden, Unauthorized
from reconciler.model.pod import PodSpec, Volume
from reconciler.model.selector import parse_selector_text
from reconciler.model.values import replace
from reconciler.simulation.api import Call
from tests.features.readiness.scene import budget, codes, judged, node, only, pod
from tests.support import builders
from tests.support.builders import NOW
from tests.support.worlds import world_of

NEVER = budget(desired=2, healthy=2, expected=2)


def test_the_worst_comes_first_and_a_workload_stands_in_one_place() -> None:
    storage = [pod(f"s-{number}", app="storage", spec=PodSpec(empty_dir=True)) for number in range(2)]
    more = [pod(f"m-{number}", app="more", spec=PodSpec(empty_dir=True)) for number in range(3)]
    found = judged([*storage, *more, pod(), pod("alone", app="alone")], NEVER)

    assert [one.workload.name for one in found.workloads] == ["web", "more", "storage", "alone"]
    assert [one.severity for one in found.workloads] == ["blocks", "outage", "outage", "notice"]
    assert [one.severity for one in found.workloads[0].findings] == ["blocks", "notice"]


def test_only_nodes_that_are_managed_and_selected_are_judged() -> None:
    nodes = (
        node("a", pool="x"),
        node("b", pool="x", **{"node-maintenance.dev/ignore": "true"}),
        node("c", pool="y"),
    )
    pods = [pod(f"web-{on}", on, spec=PodSpec(empty_dir=True)) for on in "abc"]
    chosen = builders.settings()
    seen = ClusterState(nodes, tuple(pods))
    found = summed_up(seen, judge_nodes(seen, chosen, NOW, parse_selector_text("pool=x")), chosen, NOW)

    assert only(found).nodes == ("a",)
    assert (found.nodes, found.pods) == (1, 1)
    assert found.notes == ("nodes that the settings do not manage are left out: 1",)


def test_a_replica_on_a_node_that_is_not_selected_counts_as_a_replica() -> None:
    seen = ClusterState((node("a", pool="x"), node("b")), (pod(), pod("web-2", "b")))
    chosen = builders.settings()

    assert judge_nodes(seen, chosen, NOW, parse_selector_text("pool=x")).found == ()


def test_an_error_about_one_node_harms_that_node_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(dict[str, str]):
        def get(self, *_: object) -> str:
            raise RuntimeError("odd")

    odd = replace(pod("odd", "b"), labels=Odd())
    found = judged([pod(), replace(odd, owner=None)], NEVER)

    assert found.workloads[0].findings[0].nodes == ("a",)
    assert "node b can't be judged" in found.notes[0]
    assert found.unsure


@pytest.mark.parametrize(
    ("reached", "words"), [(True, "webhook guard refuses its eviction: no"), (False, "can't be called")]
)
def test_a_webhook_that_refuses_blocks(reached: bool, words: str) -> None:
    refusal = WebhookRefusal("shop", "web-1", "webhook guard", "no", reached)
    found = judged([pod(), pod("web-2", "b")], answers=WebhookAnswers(2, refusals=(refusal,)))

    assert codes(found) == [("webhook", "blocks")]
    assert words in only(found).because
    assert (found.blocked, found.unsure) == (("a",), False)


@pytest.mark.parametrize(
    ("answers", "unsure"),
    [
        pytest.param(WebhookAnswers(2), False, id="all answered"),
        pytest.param(WebhookAnswers(2, left=7), False, id="the limit was reached"),
        pytest.param(WebhookAnswers(2, silent=1), True, id="no answer"),
        pytest.param(WebhookAnswers(2, needs="create pods/eviction"), True, id="no permission"),
    ],
)
def test_what_webhooks_did_not_answer_is_said(answers: WebhookAnswers, unsure: bool) -> None:
    found = judged([pod(), pod("web-2", "b")], answers=answers)

    assert found.unsure is unsure
    assert found.notes[0].startswith("webhooks were asked about evictions of pods: 2")
    assert ("and not about 7 more" in found.notes[0]) is bool(answers.left)
    assert [note[:9] for note in found.notes[1:]] == ["no answer"] * answers.silent
    assert [one.needs for one in found.unseen] == [answers.needs] * bool(answers.needs)


class Volumes:
    """A reader of volumes that answers, or refuses."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def volumes(self) -> tuple[Volume, ...]:
        if self._error is not None:
            raise self._error
        return (Volume("pv", "shop", "data"),)


def refuse(what: str) -> Callable[[Call], None]:
    def before(call: Call) -> None:
        if call.what == what:
            raise Unauthorized(f"403 {what}", status=403, needs=f"list {what}")

    return before


@pytest.mark.parametrize(
    ("what", "unsure"), [("pods", True), ("budgets", True), ("namespaces", False), ("volumes", False)]
)
def test_what_may_not_be_read_is_listed_and_the_rest_is_judged(what: str, unsure: bool) -> None:
    world = world_of([builders.node("a")], [builders.pod(on="a")])
    world.api.before_read = refuse(what)
    error = Forbidden("403 volumes", status=403, needs="list volumes") if what == "volumes" else None
    chosen = builders.settings()
    seen = read(world.outside.reader, Volumes(error), chosen)
    found = summed_up(seen, judge_nodes(seen, chosen, NOW), chosen, NOW)

    assert [one.needs for one in found.unseen] == [f"list {what}"]
    assert found.unsure is unsure
    assert found.nodes == 1


def test_credentials_that_are_refused_are_an_error() -> None:
    world = world_of([builders.node("a")], [])
    with pytest.raises(Unauthorized):
        read(world.outside.reader, Volumes(Unauthorized("401", status=401)), builders.settings())
