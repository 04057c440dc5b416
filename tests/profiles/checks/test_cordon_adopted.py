"""cordonAdopted, by the owner of the cordon."""

from __future__ import annotations

import pytest

from reconciler.model.node import MECHANIC_LABEL
from reconciler.model.plan import Verdict
from tests.support import builders
from tests.support.builders import ask, node, situation


@pytest.mark.parametrize(
    ("adopt", "label", "cordoned", "verdict"),
    [
        pytest.param("[mechanic]", "true", True, Verdict.PASSED, id="mechanic's"),
        pytest.param("[mechanic]", "True", True, Verdict.PASSED, id="in any letters"),
        pytest.param("[mechanic]", "false", True, Verdict.FAILED, id="not any more"),
        pytest.param("[mechanic]", "true", False, Verdict.FAILED, id="a label without a cordon"),
        pytest.param("[]", "true", True, Verdict.FAILED, id="not to be adopted"),
    ],
)
def test_only_a_cordon_that_bears_mechanics_label_is_adopted(
    adopt: str, label: str, cordoned: bool, verdict: Verdict
) -> None:
    on = node(labels={MECHANIC_LABEL: label}, unschedulable=cordoned)
    answer = ask("cordonAdopted", situation(on, chosen=builders.settings(f"adopt: {adopt}")))

    assert answer.verdict is verdict
    assert not answer.holds
