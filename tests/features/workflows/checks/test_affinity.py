"""affinity: nodes without pods that prefer operational nodes go first."""

from __future__ import annotations

import pytest

from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.features.workflows.input import Member
from reconciler.model.check_reads import ReadForChecks
from reconciler.model.plan import Verdict
from reconciler.model.pod import Placement, Pod
from reconciler.model.record import State
from reconciler.model.selector import Requirement
from reconciler.model.structs import replace
from tests.features.workflows.checks.scene import ask, config, given, member
from tests.support.builders import pod

KEY = "node-maintenance.dev/maintenance-state"
OPERATIONAL = Requirement(KEY, "In", ("operational",))


def choosy(on: str, prefers: Requirement = OPERATIONAL) -> Pod:
    """A pod that prefers some nodes."""
    return replace(pod(f"choosy-{on}", on), placement=Placement(prefers=(prefers,)))


def plain(on: str) -> Pod:
    """A pod that prefers none."""
    return replace(pod(f"plain-{on}", on), placement=Placement())


def pods(*some: Pod) -> ReadForChecks:
    """All pods of the cluster."""
    names = {one.node for one in some}
    by_node = {name: tuple(one for one in some if one.node == name) for name in names}
    return ReadForChecks(pods=by_node, unread_pods="")


REQUIRED, MAINTAINED, FREE = (
    member("b", State.REQUIRED),
    member("b", State.IN_MAINTENANCE),
    member("b", State.OPERATIONAL),
)


@pytest.mark.parametrize(
    ("other", "running", "verdict"),
    [
        pytest.param(REQUIRED, (plain("a"), choosy("b")), Verdict.PASSED, id="this node has none"),
        pytest.param(REQUIRED, (choosy("a"), choosy("b")), Verdict.PASSED, id="both have one"),
        pytest.param(REQUIRED, (choosy("a"), plain("b")), Verdict.FAILED, id="the other one goes first"),
        pytest.param(REQUIRED, (choosy("a"),), Verdict.FAILED, id="the other one is empty"),
        pytest.param(MAINTAINED, (choosy("a"),), Verdict.PASSED, id="the other one is in maintenance"),
        pytest.param(FREE, (choosy("a"),), Verdict.PASSED, id="the other one needs no maintenance"),
        pytest.param(
            member("b", State.REQUIRED, profile="other"), (choosy("a"),), Verdict.PASSED, id="another profile"
        ),
        pytest.param(
            REQUIRED, (replace(choosy("a"), phase="Succeeded"),), Verdict.PASSED, id="its pod has finished"
        ),
    ],
)
def test_a_node_waits_for_nodes_without_such_pods(
    other: Member, running: tuple[Pod, ...], verdict: Verdict
) -> None:
    scene = given(other, read=pods(*running))

    assert ask("affinity", scene).verdict is verdict


@pytest.mark.parametrize(
    "prefers",
    [
        Requirement("cloud.sap/maintenance-state", "In", ("operational",)),
        Requirement(KEY, "NotIn", ("operational",)),
        Requirement(KEY, "In", ("operational", "maintenance-required")),
    ],
)
def test_only_exactly_that_preference_counts(prefers: Requirement) -> None:
    scene = given(REQUIRED, read=pods(choosy("a", prefers)))

    assert ask("affinity", scene).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("least", "verdict"), [(0, Verdict.FAILED), (1, Verdict.PASSED), (2, Verdict.FAILED)]
)
def test_enough_operational_nodes_end_the_wait(least: int, verdict: Verdict) -> None:
    third = member("c", State.OPERATIONAL)
    scene = given(REQUIRED, third, read=pods(choosy("a")))

    assert ask("affinity", scene, minOperational=least).verdict is verdict


def test_it_is_for_one_state_only() -> None:
    assert ask("affinity", given(state=State.OPERATIONAL, read=pods())).verdict is Verdict.UNKNOWN


def test_pods_that_cannot_be_read_are_unknown() -> None:
    answer = ask("affinity", given(REQUIRED, read=ReadForChecks(unread_pods="needs list pods")))

    assert answer.verdict is Verdict.UNKNOWN
    assert "needs list pods" in answer.reason


def test_it_needs_all_pods() -> None:
    assert CHECK_TYPES["affinity"].needs(config("affinity")).all_pods
