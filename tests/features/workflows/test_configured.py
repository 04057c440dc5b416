"""The types that files can name, and which profiles the label of a node selects."""

from __future__ import annotations

from datetime import timedelta

from reconciler.features.workflows.check_types import CHECK_CONFIGS
from reconciler.features.workflows.checks import CHECK_TYPES
from reconciler.features.workflows.configured import workflows_of
from reconciler.features.workflows.reading import ReadForChecks
from reconciler.features.workflows.settings import PROFILES
from reconciler.features.workflows.situation import Fleet
from reconciler.features.workflows.trigger_types import TRIGGER_TYPES as SECTIONS
from reconciler.features.workflows.triggers import TRIGGER_TYPES
from reconciler.model.leases import LeaseRef, LeaseTake
from reconciler.settings.load import parse_settings
from tests.features.workflows.scene import member
from tests.support.builders import NOW


def test_every_type_of_check_loads_with_its_own_section() -> None:
    assert {name: one.config for name, one in CHECK_TYPES.items()} == CHECK_CONFIGS


def test_every_type_of_trigger_loads() -> None:
    assert set(TRIGGER_TYPES) == set(SECTIONS)


def test_a_label_selects_profiles_that_exist_each_once_and_in_its_order() -> None:
    found = workflows_of(PROFILES.of(parse_settings("profiles: [{name: a}, {name: b-c}]", "x.yaml")))

    assert found.selected("b-c--gone--a--b-c") == ("b-c", "a")
    assert found.selected("") == ("default",)
    assert found.selected("gone") == ()


def test_settings_without_profiles_have_no_workflows() -> None:
    assert not workflows_of(PROFILES.of(parse_settings("intervals: {requeue: 1m}", "x.yaml"))).on


class Counting:
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        return self.calls


def test_what_follows_from_all_nodes_is_computed_once_for_these_nodes() -> None:
    counting = Counting()
    fleet = Fleet([member("a"), member("b")])

    assert [fleet.once("x", counting), fleet.once("x", counting), fleet.once("y", counting)] == [1, 1, 2]
    assert Fleet(fleet).once("x", counting) == 3


def test_what_follows_from_all_pods_is_kept_when_a_lease_is_taken() -> None:
    counting = Counting()
    read = ReadForChecks()
    assert read.of_pods("x", counting) == 1

    taken = read.taken(LeaseTake(LeaseRef("ops", "turn-0"), "a", NOW, timedelta(minutes=1)))

    assert taken.of_pods("x", counting) == 1
    assert ReadForChecks().of_pods("x", counting) == 2
