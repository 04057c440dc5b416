"""kubernikusCount: it loads, and is never anything but unknown."""

from __future__ import annotations

from reconciler.model.plan import Verdict
from tests.workflows.checks.scene import ask, given


def test_it_is_unknown_and_names_the_check_to_use() -> None:
    answer = ask("kubernikusCount", given(), cluster="c")

    assert (answer.verdict, answer.reason) == (
        Verdict.UNKNOWN,
        "Kubernikus is not asked; use the check nodeCount instead",
    )
