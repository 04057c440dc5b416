"""The API version of requests to ARM, in a cloud that does not know ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.model.machine import Scope, Vm
from reconciler.model.values import replace
from reconciler.run import rehearse
from reconciler.sources.arm import client
from reconciler.sources.arm.client import OLDEST, Arm
from reconciler.sources.arm.source import PerformMaintenance
from tests.support import builders
from tests.support.builders import NOW
from tests.support.controlplane.fill import Pool
from tests.support.fakes import arm
from tests.support.fakes.arm import GROUP, SCALE_SET, SUBSCRIPTION, FakeArm, Refusal
from tests.support.worlds import world_of

OURS = client.API_VERSIONS["list_instances"]
SET = Scope(SUBSCRIPTION.casefold(), GROUP.casefold(), SCALE_SET)
SINGLES = Scope(SUBSCRIPTION.casefold())
SINGLE = Scope(SUBSCRIPTION.casefold(), GROUP.casefold(), vm="x")
NOTE = f"Azure refuses API version {OURS}, so 2024-03-01 is used"


@pytest.fixture
def azure() -> Iterator[FakeArm]:
    with FakeArm() as fake:
        fake.uniform(1, 2)
        fake.single("x")
        yield fake
        assert fake.violations == []


def asked(azure: FakeArm) -> Arm:
    return Arm(arm.compute(azure), guard=lambda: None)


@pytest.mark.parametrize("scope", [SET, SINGLES, SINGLE], ids=str)
def test_the_newest_older_version_is_used_and_remembered(azure: FakeArm, scope: Scope) -> None:
    azure.known = ("2023-09-01", "2024-03-01", "2024-05-01-preview", "2025-04-01")
    asking = asked(azure)

    first = asking.ask([scope])
    seen, azure.versions = azure.versions, set()
    second = asking.ask([scope])

    assert [(one.problem, one.note) for one in (*first, *second)] == [("", NOTE)] * 2
    assert (seen, azure.versions) == ({OURS, "2024-03-01"}, {"2024-03-01"})


def test_a_maintenance_is_started_with_the_older_version(azure: FakeArm) -> None:
    azure.known = ("2024-03-01",)
    azure.plan(2, arm.status(offered=True))
    azure.plan("x", arm.status(offered=True))
    asking = asked(azure)
    asking.perform(PerformMaintenance(Pool("np").node_name(2), Vm(SET, "2")))
    asking.perform(PerformMaintenance("x", Vm(SINGLES, f"{GROUP}/x".casefold())))

    assert len(azure.performed) == 2


def test_the_list_of_all_of_azure_may_lead_to_the_list_of_the_provider(azure: FakeArm) -> None:
    azure.refuse(arm.invalid_version(OURS, "2024-06-01", "2024-03-01"))
    azure.refuse(arm.no_provider("2024-06-01", "2024-03-01"))

    (listing,) = asked(azure).ask([SET])

    assert (listing.problem, listing.note) == ("", NOTE)


def test_a_cloud_that_refuses_every_version_is_not_asked_without_end(azure: FakeArm) -> None:
    for month in range(6, 0, -1):
        azure.refuse(arm.no_provider("any", f"2024-0{month}-01"))

    (listing,) = asked(azure).ask([SET])

    assert "NoRegisteredProviderFound" in listing.problem
    assert len(azure.refusals["/"]) == 3


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(arm.no_provider(OURS, "2025-04-01", "2024-03-01-preview"), id="newer ones and previews"),
        pytest.param(arm.no_provider(OURS, "2017-12-01"), id="one that is too old"),
        pytest.param(arm.no_provider(OURS, OURS, OLDEST), id="ours is known: it is about something else"),
        pytest.param(
            Refusal(400, "NoRegisteredProviderFound", "The subscription is not registered."), id="no list"
        ),
        pytest.param(Refusal(400, "BadRequest", arm.no_provider(OURS, OLDEST).message), id="another error"),
    ],
)
def test_where_no_older_version_fits_the_refusal_is_the_problem(azure: FakeArm, refusal: Refusal) -> None:
    azure.refuse(refusal)

    (listing,) = asked(azure).ask([SET])

    assert refusal.code in listing.problem
    assert azure.versions == {OURS}


def test_the_report_has_a_note(azure: FakeArm) -> None:
    azure.known = ("2024-03-01",)
    world = world_of([replace(builders.node("x"), provider_id=arm.provider_id("x"))])
    chosen = builders.settings("sources: {arm: {enabled: true}}")
    world.clients["arm"] = asked(azure)

    plan = rehearse(world.outside, chosen, NOW)

    assert [one for one in plan.notes if one.startswith("arm: ")] == [f"arm: {NOTE}"]
