"""clusterSemver: a newer version on another node."""

from __future__ import annotations

from itertools import pairwise

import pytest

from reconciler.features.workflows.checks.cluster import version
from reconciler.model.plan import Verdict
from tests.features.workflows.checks.scene import ask, given, member
from tests.support.builders import node

KEY = "os/version"
OTHERS = (
    member("b", labels={KEY: "2.3.1"}, profile="other"),
    member("c", labels={KEY: "1.34.7"}),
    member("d", labels={KEY: "thiswillnotparse"}),
    member("e"),
)


@pytest.mark.parametrize(
    ("own", "scoped", "verdict"),
    [
        ("1.34.7", False, Verdict.PASSED),
        ("1.34.7", True, Verdict.FAILED),
        ("1.34.6", True, Verdict.PASSED),
        ("2.3.1", False, Verdict.FAILED),
        ("2.4.0", False, Verdict.FAILED),
        ("thiswillnotparse", False, Verdict.UNKNOWN),
        ("v1.34.7", False, Verdict.UNKNOWN),
        (None, False, Verdict.UNKNOWN),
    ],
)
def test_the_own_version_is_below_the_newest(own: str | None, scoped: bool, verdict: Verdict) -> None:
    scene = given(*OTHERS, node=node("a", labels={KEY: own} if own else {}))

    assert ask("clusterSemver", scene, key=KEY, profileScoped=scoped).verdict is verdict


def test_versions_have_the_order_of_semver() -> None:
    written = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
    ]
    rising = [version(text) for text in (*written, "1.0.0", "1.0.1", "1.2.0", "1.10.0")]

    for lower, higher in pairwise(rising):
        assert lower is not None
        assert higher is not None
        assert lower < higher
    assert version("1.0.0+build.5") == version("1.0.0")


@pytest.mark.parametrize("text", ["1.2", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3.4", "", "9" * 80 + ".0.0"])
def test_anything_else_is_no_version(text: str) -> None:
    assert version(text) is None
