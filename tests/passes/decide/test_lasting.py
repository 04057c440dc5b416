"""How long cases take whose end we decide."""

from __future__ import annotations

import pytest

from reconciler.kubernetes.ledger import from_data, to_data
from reconciler.model.event import Kind
from reconciler.model.plan import NodePlan
from reconciler.model.record import Asked, CaseFacts, CaseRecord, State
from reconciler.model.snapshot import Ledger
from reconciler.model.values import replace
from reconciler.passes.decide.reporting import lasted
from tests.support import builders
from tests.support.builders import NOW, known, minutes


def ended(took: float, *, by_us: bool = True) -> NodePlan:
    """The plan of a node whose case ends now."""
    case = replace(
        builders.record(events=(known(Kind.REBOOT, ids=("A1",)),)),
        facts=CaseFacts(drain_began=NOW - minutes(took)),
        asked=(Asked("toy", NOW),) if by_us else (),
    )
    return NodePlan("a", "", "", State.IN_MAINTENANCE, State.OPERATIONAL, ended=case)


def test_the_first_case_is_what_the_next_is_expected_to_take_and_later_ones_count_a_third() -> None:
    first = lasted({}, [ended(12)], NOW)

    assert first == {Kind.REBOOT: minutes(12)}
    assert lasted(first, [ended(30)], NOW) == {Kind.REBOOT: minutes(18)}


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(ended(12, by_us=False), id="the platform ended it"),
        pytest.param(ended(60 * 25), id="longer than a day"),
        pytest.param(ended(-5), id="a clock went back"),
        pytest.param(replace(ended(12), ended=CaseRecord()), id="it was not drained"),
        pytest.param(replace(ended(12), ended=None), id="it goes on"),
    ],
)
def test_a_case_that_says_nothing_about_the_next_changes_nothing(plan: NodePlan) -> None:
    assert lasted({}, [plan], NOW) == {}


def test_the_config_map_keeps_it_and_what_can_not_be_read_is_left_out() -> None:
    data = to_data(Ledger(lasted={Kind.REBOOT: minutes(12), Kind.REDEPLOY: minutes(30)}), {})

    assert data == {"lasted": "Reboot=720,Redeploy=1800"}
    assert from_data(data).lasted == {Kind.REBOOT: minutes(12), Kind.REDEPLOY: minutes(30)}
    assert from_data({"lasted": "Reboot=-5,Sleep=9,Freeze,Redeploy=60,Preempt=99999999"}).lasted == {
        Kind.REDEPLOY: minutes(1)
    }
