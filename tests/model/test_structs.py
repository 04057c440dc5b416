"""A changed copy can be made of every value, also of those that the agent imports."""

from __future__ import annotations

import pytest

from reconciler.model.event import Answer, Reading
from reconciler.model.node import Taint
from reconciler.model.structs import replace


@pytest.mark.parametrize(
    ("value", "change", "changed"),
    [
        (Taint("a"), {"value": "b"}, Taint("a", "b")),
        (Reading("imds", Answer.UNKNOWN), {"because": "old"}, Reading("imds", Answer.UNKNOWN, because="old")),
    ],
)
def test_a_copy_has_the_change_and_the_value_stays(
    value: object, change: dict[str, str], changed: object
) -> None:
    before = repr(value)

    assert replace(value, **change) == changed  # type: ignore[type-var]
    assert repr(value) == before
