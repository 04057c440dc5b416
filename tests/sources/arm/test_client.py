"""The real SDK against a fake ARM: pages, refusals, patience, and what is never done twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CredentialUnavailableError

from reconciler.http.bounded import LARGEST
from reconciler.model.errors import CloudError
from reconciler.model.machine import Scope, Vm
from reconciler.model.polling import Listing
from reconciler.model.values import replace
from reconciler.sources.arm import client, source
from reconciler.sources.arm.client import Arm, connect
from reconciler.sources.arm.source import PerformMaintenance, Planned
from tests.support import builders
from tests.support.builders import NOW
from tests.support.controlplane.fill import Pool
from tests.support.fakes import arm
from tests.support.fakes.arm import (
    BROKEN,
    FORBIDDEN,
    GROUP,
    NO_TOKEN,
    SCALE_SET,
    SUBSCRIPTION,
    THROTTLED,
    FakeArm,
    Refusal,
)
from tests.support.worlds import look, world_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
WINDOW = (NOON, NOON + timedelta(days=7))
OFFER = (NOON - timedelta(days=30), NOON)
SET = Scope(SUBSCRIPTION.casefold(), GROUP.casefold(), SCALE_SET)
OTHER = Scope(SUBSCRIPTION.casefold(), GROUP.casefold(), "aks-other-vmss")
SINGLES = Scope(SUBSCRIPTION.casefold())


@pytest.fixture
def azure() -> Iterator[FakeArm]:
    with FakeArm() as fake:
        yield fake
        assert fake.violations == []


def asked(azure: FakeArm) -> Arm:
    return Arm(arm.compute(azure), guard=lambda: None)


def test_a_scale_set_of_many_pages_is_one_list(azure: FakeArm) -> None:
    azure.uniform(*range(250))
    azure.plan(249, arm.status(offered=True, offer=OFFER, window=WINDOW))

    (listing,) = asked(azure).ask([SET])

    assert len(azure.lists) == 1
    assert azure.pages == 3
    assert len(listing.seen) == 250
    assert listing.found == (("249", Planned(True, *OFFER, *WINDOW)),)


def test_single_vms_of_every_kind_are_one_list_of_the_subscription(azure: FakeArm) -> None:
    for name in ("flexprofile-mp-0_df53ee36", "aks-hostedpool-16652789-vms1", "aks-default-pb9ls"):
        azure.single(name)
    azure.plan("aks-default-pb9ls", arm.status(window=WINDOW))

    (listing,) = asked(azure).ask([SINGLES])

    assert azure.lists == ["single VMs"]
    assert len(listing.seen | listing.silent) == 3
    assert [name for name, _ in listing.found] == [f"{GROUP}/aks-default-pb9ls".casefold()]


def single(name: str, group: str = GROUP) -> Scope:
    return Scope(SUBSCRIPTION.casefold(), group.casefold(), vm=name)


@pytest.mark.parametrize(
    ("maintenance", "found"),
    [
        pytest.param(arm.status(offered=True, offer=OFFER, window=WINDOW), 1, id="planned"),
        pytest.param(None, 0, id="none"),
        pytest.param({}, 0, id="an empty one"),
    ],
)
def test_the_view_of_one_vm_says_whether_it_has_maintenance(
    azure: FakeArm, maintenance: dict[str, Any] | None, found: int
) -> None:
    azure.single("x")
    azure.plan("x", maintenance)

    (listing,) = asked(azure).ask([single("x")])

    assert azure.views == ["x"]
    assert listing.seen == {f"{GROUP}/x".casefold()}
    assert len(listing.found) == found


@pytest.mark.parametrize(
    "refusal", [FORBIDDEN, BROKEN, Refusal(404, "ResourceNotFound", "gone")], ids=lambda one: str(one.status)
)
def test_one_vm_that_fails_leaves_the_others_alone(azure: FakeArm, refusal: arm.Refusal) -> None:
    for name in ("x", "y"):
        azure.single(name)
    azure.refuse(refusal, "/x/instanceview")

    first, second = asked(azure).ask([single("x"), single("y")])

    assert str(refusal.status) in first.problem
    assert second.problem == ""


def test_a_pass_queries_a_limited_number_of_single_vms(
    azure: FakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ALONE", 2)
    azure.uniform(1)
    for name in "abcd":
        azure.single(name)

    *views, ours = asked(azure).ask([*map(single, "abcd"), SET])

    assert azure.views == ["a", "b"]
    assert [(one.asked, one.problem) for one in views] == [(True, ""), (True, ""), (False, ""), (False, "")]
    assert ours.seen == {"1"}


def test_single_vms_have_a_limited_time(azure: FakeArm) -> None:
    for name in "ab":
        azure.single(name)
    times = iter([0.0, 0.0, 0.0, *[client.ALONE_PATIENCE] * 20])

    first, second = Arm(arm.compute(azure), clock=lambda: next(times)).ask([*map(single, "ab")])

    assert (first.asked, second.asked) == (True, False)


def test_every_request_names_the_version_that_we_know(azure: FakeArm) -> None:
    azure.uniform(*range(150))
    azure.single("x")
    azure.plan(2, arm.status(offered=True))
    azure.plan("x", arm.status(offered=True))

    asking = asked(azure)
    asking.ask([SET, SINGLES, single("x")])
    asking.perform(PerformMaintenance(Pool("np").node_name(2), Vm(SET, "2")))
    asking.perform(PerformMaintenance("x", Vm(SINGLES, f"{GROUP}/x".casefold())))

    assert azure.versions == set(client.API_VERSIONS.values())


def test_a_throttled_list_is_neither_slept_on_nor_tried_again_and_the_rest_is_left(azure: FakeArm) -> None:
    azure.uniform(1)
    azure.uniform(1, scale_set=OTHER.scale_set)
    # A sleep of this length would exceed the time limit of a test.
    azure.refuse(Refusal(429, headers={"Retry-After": "3600"}))

    first, second = asked(azure).ask([SET, OTHER])

    assert "429" in first.problem
    assert first.wait == 3600
    assert not second.asked
    assert second.problem == first.problem
    assert azure.lists == []


def test_a_throttled_region_stops_no_other_region(azure: FakeArm) -> None:
    # A limit applies to a subscription in a region, and a group of nodes is in one region.
    azure.uniform(1)
    azure.refuse(Refusal(429, headers={"Retry-After": "3600"}))

    listings = asked(azure).ask([SET, OTHER, SINGLES])

    assert [(one.wait, one.asked) for one in listings] == [(3600, True), (None, False), (None, True)]
    assert listings[-1].problem == ""


def test_a_throttled_list_of_a_subscription_stops_all_of_it(azure: FakeArm) -> None:
    azure.refuse(Refusal(429, headers={"Retry-After": "60"}))

    listings = asked(azure).ask([SINGLES, SET])

    assert [(one.wait, one.asked) for one in listings] == [(60, True), (None, False)]


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "240"}, 240),
        ({"Retry-After": "Sat, 21 Nov 2026 12:02:00 GMT"}, 120),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({}, 60),
        ({"Retry-After": "soon"}, 60),
    ],
)
def test_every_spelling_of_retry_after_is_heeded(
    azure: FakeArm, headers: dict[str, str], wait: float
) -> None:
    azure.refuse(arm.Refusal(429, headers=headers))

    (listing,) = Arm(arm.compute(azure), wall=NOON.timestamp).ask([SET])

    assert listing.wait == wait


@pytest.mark.parametrize("refusal", [FORBIDDEN, BROKEN], ids=lambda one: str(one.status))
def test_one_scale_set_that_fails_leaves_the_others_alone(azure: FakeArm, refusal: arm.Refusal) -> None:
    azure.uniform(1)
    azure.uniform(1, scale_set=OTHER.scale_set)
    azure.refuse(refusal, SCALE_SET)

    first, second = asked(azure).ask([SET, OTHER])

    assert str(refusal.status) in first.problem
    assert refusal.code in first.problem
    assert second.problem == ""
    assert second.seen == {"1"}


def test_a_failure_in_the_second_page_is_no_half_answer(azure: FakeArm) -> None:
    azure.uniform(*range(150))

    pages = azure.list_page

    def cut(target: str, *rest: object) -> object:
        if "skip=" in target:
            return 500, {"error": {"code": "InternalServerError", "message": "flap"}}, {}
        return pages(target, *rest)  # type: ignore[arg-type]  # passed through

    azure.list_page = cut  # type: ignore[method-assign,assignment]  # the fake's mood
    (listing,) = asked(azure).ask([SET])

    assert "500" in listing.problem
    assert listing.seen == frozenset()


def test_after_a_401_no_other_scope_is_queried(azure: FakeArm) -> None:
    azure.refuse(NO_TOKEN, times=9)

    first, second = asked(azure).ask([SET, OTHER])

    assert "401" in first.problem
    assert not second.asked
    assert len(azure.refusals["/"]) == 8


def test_a_subscription_of_another_tenant_stops_no_other(azure: FakeArm) -> None:
    azure.uniform(1)
    foreign = [Scope("00000000-0000-0000-0000-000000000000", "g", f"s{number}") for number in range(3)]
    azure.refuse(NO_TOKEN, "00000000-0000", times=9)

    *refused, ours = asked(azure).ask([*foreign, SET])

    assert ["401" in one.problem for one in refused] == [True] * 3
    assert [one.asked for one in refused] == [True, False, False]
    assert ours.seen == {"1"}
    assert ours.problem == ""


def test_an_answer_that_is_too_large_harms_its_scope_only(azure: FakeArm) -> None:
    azure.uniform(1)
    pages = azure.list_page

    def vast(target: str, *rest: object) -> object:
        if OTHER.scale_set in target:
            return 200, {"value": [], "nextLink": None, "pad": "x" * LARGEST}, {}
        return pages(target, *rest)  # type: ignore[arg-type]  # passed through

    azure.list_page = vast  # type: ignore[method-assign,assignment]  # the fake's mood
    first, second = asked(azure).ask([OTHER, SET])

    assert first.problem
    assert second.seen == {"1"}
    assert second.problem == ""


@pytest.mark.parametrize("error", [RecursionError("too deep"), OverflowError("too far")])
def test_an_answer_that_breaks_the_program_harms_its_scope_only(
    azure: FakeArm, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    azure.uniform(1)
    azure.uniform(1, scale_set=OTHER.scale_set)
    read = source.listing

    def broken(scope: Scope, documents: Iterable[Mapping[str, object]]) -> Listing[Scope, Planned]:
        if scope == OTHER:
            raise error
        return read(scope, documents)

    monkeypatch.setattr(source, "listing", broken)
    first, second = asked(azure).ask([OTHER, SET])

    assert type(error).__name__ in first.problem
    assert second.seen == {"1"}


@pytest.mark.parametrize(
    ("error", "others"),
    [(ClientAuthenticationError("no"), True), (CredentialUnavailableError("none"), False)],
)
def test_a_login_that_fails_for_one_subscription_stops_no_other(
    azure: FakeArm, error: Exception, others: bool
) -> None:
    azure.uniform(1)
    foreign = Scope("00000000-0000-0000-0000-000000000000", "g", "s")
    real = arm.compute(azure)

    def compute(subscription: str) -> Any:
        if subscription == foreign.subscription:
            raise error
        return real(subscription)

    first, second = Arm(compute).ask([foreign, SET])

    assert first.problem
    assert bool(second.seen) == others


def test_without_an_answer_one_try_is_enough() -> None:
    with FakeArm() as gone:
        nobody = arm.compute(gone)

    first, second = Arm(nobody).ask([SET, OTHER])

    assert first.problem
    assert second.problem == first.problem
    assert not second.asked


def test_a_list_that_takes_too_long_is_left(azure: FakeArm) -> None:
    azure.uniform(*range(300))
    times = iter([0.0, 0.0, *[client.PATIENCE + 1] * 20])

    first, second = Arm(arm.compute(azure), clock=lambda: next(times)).ask([SET, OTHER])

    assert "not over within" in first.problem
    assert not second.asked


def test_with_few_calls_left_the_rest_is_left_for_later(azure: FakeArm) -> None:
    azure.uniform(1)
    azure.headers = {
        "x-ms-ratelimit-remaining-resource": "Microsoft.Compute/HighCostGet3Min;9,Microsoft.Compute/X;700"
    }

    first, second = asked(azure).ask([SET, OTHER])

    assert first.seen == {"1"}
    assert (second.asked, second.problem) == (False, "")


def test_maintenance_is_started_for_one_instance_and_its_end_not_waited_for(azure: FakeArm) -> None:
    azure.uniform(1, 2)
    azure.single("flex_1")
    azure.plan(2, arm.status(offered=True))
    azure.plan("flex_1", arm.status(offered=True))

    asked(azure).perform(PerformMaintenance(Pool("np").node_name(2), Vm(SET, "2")))
    asked(azure).perform(PerformMaintenance("flex_1", Vm(SINGLES, f"{GROUP}/flex_1".casefold())))

    assert azure.performed == [f"{SCALE_SET}_2", f"{GROUP}/flex_1"]


@pytest.mark.parametrize("vm", [Vm(SET, "2"), Vm(SINGLES, f"{GROUP}/flex_1".casefold())])
def test_the_maintenance_of_a_vm_that_is_not_the_node_s_own_is_not_started(azure: FakeArm, vm: Vm) -> None:
    azure.uniform(2)
    azure.single("flex_1")
    azure.plan(2, arm.status(offered=True))
    azure.plan("flex_1", arm.status(offered=True))

    with pytest.raises(CloudError, match="not node liar"):
        asked(azure).perform(PerformMaintenance("liar", vm))

    assert azure.performed == []


def test_a_refused_start_says_why_and_is_not_tried_again(azure: FakeArm) -> None:
    azure.uniform(2)
    azure.plan(2, arm.status(offered=True))
    azure.refuse(THROTTLED)

    with pytest.raises(CloudError, match="429") as raised:
        asked(azure).perform(PerformMaintenance(Pool("np").node_name(2), Vm(SET, "2")))

    assert raised.value.retry_after == 240
    assert azure.performed == []


def test_without_the_lock_nothing_is_started(azure: FakeArm) -> None:
    with pytest.raises(RuntimeError, match="made for reading"):
        Arm(arm.compute(azure)).perform(PerformMaintenance(Pool("np").node_name(2), Vm(SET, "2")))


@pytest.mark.parametrize("cloud", ["Public", "China", "USGovernment"])
def test_each_cloud_has_its_own_address(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = {
        "Public": "https://management.azure.com",
        "China": "https://management.chinacloudapi.cn",
        "USGovernment": "https://management.usgovcloudapi.net",
    }

    nowhere = arm.NoAzure()
    monkeypatch.setattr(client, "credential", lambda _: nowhere)
    monkeypatch.setattr(client, "transport", lambda: nowhere)

    Arm(connect(cloud)).ask([SET])

    assert {address.partition("/subscriptions/")[0] for address in nowhere.addresses} == {addresses[cloud]}
    (scope,) = set(nowhere.scopes)
    assert scope.endswith(addresses[cloud].partition("://management")[2] + "/.default")


def test_an_incomplete_workload_identity_is_reported_and_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AZURE_FEDERATED_TOKEN_FILE", "/nowhere")
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID"):
        monkeypatch.delenv(name, raising=False)

    (listing,) = Arm(connect()).ask([SET])

    assert "tenant_id" in listing.problem


# Whole passes, with the list of a subscription that does not say which VM has maintenance.


def test_passes_find_a_plan_that_only_the_vm_itself_shows(
    azure: FakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ALONE", 2)
    azure.complete = False
    names = [f"aks-default-{number}" for number in range(5)]
    for name in names:
        azure.single(name)
    azure.plan(names[-1], arm.status(window=(NOW + timedelta(hours=6), NOW + timedelta(days=7))))
    world = world_of([replace(builders.node(name), provider_id=arm.provider_id(name)) for name in names])
    world.clients["arm"] = asked(azure)
    unknown = []
    for _ in range(4):
        plan, _ = look(world, builders.settings("sources: {arm: {enabled: true}}"))
        unknown.append(sum(1 for node in plan.nodes if any("arm" in each for each in node.unknowns)))
        world.clock.advance(world.now + timedelta(minutes=1))

    assert unknown == [3, 1, 0, 0]
    assert azure.lists == ["single VMs"]
    assert sorted(azure.views) == names
    assert [node.node for node in plan.nodes if node.events] == [names[-1]]
