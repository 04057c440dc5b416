"""What every report says of a drain that left pods on the node, until the case ends."""

from __future__ import annotations

from reconciler.model.errors import Forbidden
from reconciler.report.document import as_json, to_report
from reconciler.report.text import as_markdown, as_text
from reconciler.simulation.api import Call
from tests.laws.histories import History
from tests.support import builders
from tests.support.builders import DRAIN_NOW, REQUEST, minutes, node, plan_of
from tests.support.worlds import world_of

SAID = "drained; 1 pod stays: shop/cache"


def history(*kept: str) -> History:
    pods = [builders.pod("web", "a"), *(builders.pod(name, "a", empty_dir=True) for name in kept)]
    nodes = [node(annotations={REQUEST: DRAIN_NOW}), node("b")]
    return History(world_of(nodes, pods), builders.settings("uncordon: {settle: 30m}"))


def says(going: History, sentence: str = SAID) -> set[bool]:
    """Whether each form of the report of the next pass has the sentence."""
    plan, outcomes = going.look()
    report = to_report(plan, outcomes, rehearsed=False)
    return {sentence in text for text in (as_text(report), as_json(report.document), as_markdown(report))}


def drained(*kept: str) -> History:
    going = history(*kept)
    going.look()
    going.wait(minutes(1))
    return going


def test_every_report_says_which_pod_stays_until_the_case_ends() -> None:
    going = drained("cache")
    for _ in range(5):
        assert says(going) == {True}
        going.wait(minutes(10))
    going.cluster.annotate("a", REQUEST, None)
    assert says(going) == {True}
    going.wait(minutes(31))
    going.look()
    assert says(going) == {False}


def test_the_reason_stays_too_and_names_the_setting() -> None:
    going = drained("cache")
    going.look()
    plan, _ = going.look()
    (blocker,) = plan_of(plan).draining.kept
    assert (blocker.pod, blocker.because) == (
        "shop/cache",
        "has local storage (to evict it, set events.Reboot.emptyDir: Evict)",
    )


def test_a_pod_that_went_later_is_no_longer_named() -> None:
    going = drained("cache")
    assert says(going) == {True}
    pod = going.cluster.find_pod("shop/cache")
    assert pod is not None
    going.cluster.drop_pod(pod.uid)
    assert says(going) == {False}


def test_what_the_record_knows_is_said_while_the_pods_cannot_be_read() -> None:
    going = drained("cache")
    assert says(going) == {True}

    def refuse(call: Call) -> None:
        if call.what == "pods":
            raise Forbidden("no pods")

    going.api.before_read = refuse
    assert says(going) == {True}


def test_many_pods_are_counted_after_the_fifth() -> None:
    going = drained(*(f"cache-{number}" for number in range(7)))
    names = ", ".join(f"shop/cache-{number}" for number in range(5))
    assert says(going, f"drained; 7 pods stay: {names} and 2 more") == {True}


def test_a_drain_that_left_none_says_nothing_of_it() -> None:
    going = drained()
    going.look()
    plan, _ = going.look()
    assert plan_of(plan).draining.stays == ""
