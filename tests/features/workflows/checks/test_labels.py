"""hasLabel, hasAnnotation and anyLabel."""

from __future__ import annotations

import pytest

from reconciler.model.plan import Verdict
from tests.features.workflows.checks.scene import ask, config, given, member
from tests.support.builders import node

HERE = given(
    member("b", labels={"pool": "gpu", "empty": ""}),
    node=node("a", labels={"role": "web"}, annotations={"owner": "shop"}),
)


@pytest.mark.parametrize(
    ("kind", "keys", "verdict"),
    [
        ("hasLabel", {"key": "role"}, Verdict.PASSED),
        ("hasLabel", {"key": "role", "value": "web"}, Verdict.PASSED),
        ("hasLabel", {"key": "role", "value": "db"}, Verdict.FAILED),
        ("hasLabel", {"key": "pool"}, Verdict.FAILED),
        ("hasAnnotation", {"key": "owner", "value": "shop"}, Verdict.PASSED),
        ("hasAnnotation", {"key": "owner", "value": "bank"}, Verdict.FAILED),
        ("hasAnnotation", {"key": "role"}, Verdict.FAILED),
        ("anyLabel", {"key": "pool", "value": "gpu"}, Verdict.PASSED),
        ("anyLabel", {"key": "role"}, Verdict.PASSED),
        ("anyLabel", {"key": "empty"}, Verdict.PASSED),
        ("anyLabel", {"key": "pool", "value": "cpu"}, Verdict.FAILED),
        ("anyLabel", {"key": "zone"}, Verdict.FAILED),
    ],
)
def test_a_key_is_there_with_its_value(kind: str, keys: dict[str, object], verdict: Verdict) -> None:
    answer = ask(kind, HERE, **keys)

    assert answer.verdict is verdict
    assert str(keys["key"]) in answer.reason


def test_a_value_without_quotes_is_text_as_maintenance_controller_reads_it() -> None:
    approved = given(node=node("a", annotations={"approved": "true", "count": "1"}))

    assert ask("hasAnnotation", approved, key="approved", value=True).verdict is Verdict.PASSED
    assert ask("hasAnnotation", approved, key="count", value=1).verdict is Verdict.PASSED


def test_a_key_that_the_type_does_not_have_is_kept_for_a_warning() -> None:
    assert config("hasLabel", key="a", vlaue="b").ignored == ("vlaue",)


def test_a_key_without_a_value_has_its_default_and_may_be_missing() -> None:
    assert ask("hasLabel", HERE, key="role", value=None).verdict is Verdict.PASSED
    assert config("affinity", minOperational=None).min_operational == 0
    with pytest.raises(ValueError, match="key"):
        config("hasLabel", key=None)
