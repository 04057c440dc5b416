"""checkHypervisor and hypervisorCondition: the status of the Hypervisor that has the name of the node."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from reconciler.features.workflows.input import CheckInput
from reconciler.model.check_reads import ReadForChecks
from reconciler.model.hypervisor import STATUS, Hypervisor, Value
from reconciler.model.plan import Verdict
from reconciler.model.structs import replace
from tests.features.workflows.checks.scene import ask, config, given


def hypervisor(**status: Value | None) -> Hypervisor:
    return Hypervisor("a", "u", status={**STATUS, **status}, conditions={"Ready": "True"})


def scene(*hypervisors: Hypervisor, unread: str = "") -> CheckInput:
    found = {one.name: one for one in hypervisors}
    return given(read=ReadForChecks(hypervisors=found, unread_hypervisors=unread))


@pytest.mark.parametrize(
    ("keys", "seen", "verdict"),
    [
        ({"evicted": True}, {"evicted": True}, Verdict.PASSED),
        ({"evicted": True}, {}, Verdict.FAILED),
        ({"evicted": False}, {}, Verdict.PASSED),
        ({"numInstances": 0}, {"numInstances": 3}, Verdict.FAILED),
        ({"hypervisorId": "x"}, {"hypervisorId": "x"}, Verdict.PASSED),
        ({"traits": ["A", "B"]}, {"traits": ("A", "B")}, Verdict.PASSED),
        ({"traits": ["A", "B"]}, {"traits": ("B", "A")}, Verdict.FAILED),
        ({"evicted": True, "numInstances": 0}, {"evicted": True, "numInstances": 1}, Verdict.FAILED),
        ({"evicted": True}, {"evicted": None}, Verdict.UNKNOWN),
        # Only the fields that it names matter.
        ({"evicted": True}, {"evicted": True, "traits": None}, Verdict.PASSED),
    ],
)
def test_all_fields_have_their_values(
    keys: dict[str, object], seen: dict[str, Value | None], verdict: Verdict
) -> None:
    assert ask("checkHypervisor", scene(hypervisor(**seen)), **keys).verdict is verdict


def test_the_reason_has_each_field_that_differs() -> None:
    seen = scene(hypervisor(evicted=False, traits=("A",), numInstances=2))
    answer = ask("checkHypervisor", seen, evicted=True, traits=["A"], numInstances=0)

    assert answer.reason == "of the Hypervisor, evicted is false, not true, numInstances is 2, not 0"


@pytest.mark.parametrize(
    ("kind", "status", "verdict"),
    [("Ready", "True", Verdict.PASSED), ("Ready", "False", Verdict.FAILED), ("Gone", "True", Verdict.FAILED)],
)
def test_the_condition_has_the_status(kind: str, status: str, verdict: Verdict) -> None:
    answer = ask("hypervisorCondition", scene(hypervisor()), type=kind, status=status)

    assert answer.verdict is verdict


def test_conditions_that_cannot_be_read_are_unknown() -> None:
    broken = replace(hypervisor(), conditions=None)

    assert ask("hypervisorCondition", scene(broken), type="Ready", status="True").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (scene(replace(hypervisor(), name="b")), "there is no Hypervisor a"),
        (scene(unread="needs list hypervisors"), "the Hypervisors can't be read: needs list hypervisors"),
    ],
)
@pytest.mark.parametrize(
    ("check", "keys"),
    [("checkHypervisor", {"evicted": False}), ("hypervisorCondition", {"type": "Ready", "status": "True"})],
)
def test_without_the_hypervisor_of_the_node_the_answer_is_unknown(
    check: str, keys: dict[str, object], seen: CheckInput, reason: str
) -> None:
    answer = ask(check, seen, **keys)

    assert (answer.verdict, answer.reason) == (Verdict.UNKNOWN, reason)


@pytest.mark.parametrize("keys", [{}, {"evcited": True}, {"evicted": "perhaps"}, {"numInstances": -1}])
def test_a_configuration_that_would_check_nothing_is_a_mistake(keys: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        config("checkHypervisor", **keys)
