"""performMaintenance: written down first, with the boot before it and the number of the attempt."""

from __future__ import annotations

from reconciler.model.azure import PerformMaintenance, vm_of
from reconciler.model.record import SelfService
from reconciler.model.structs import replace
from reconciler.profiles.situation import Effects
from reconciler.profiles.triggers.platform import perform_maintenance
from tests.support.builders import NOW, minutes, situation
from tests.support.planning import PROVIDER_ID, azure_node, drained


def test_the_intent_is_in_the_record_and_the_action_in_the_plan() -> None:
    effects = perform_maintenance(situation(azure_node("boot-1")), Effects(drained()))

    vm = vm_of(PROVIDER_ID)
    assert vm is not None
    assert effects.record.self_service == SelfService(NOW, 1, "boot-1")
    assert effects.perform == PerformMaintenance("a", vm)
    assert effects.unschedulable is None


def test_a_second_attempt_keeps_the_boot_of_the_first() -> None:
    held = drained(SelfService(NOW - minutes(10), 1, "boot-1"))
    effects = perform_maintenance(situation(azure_node(""), held=held), Effects(held))

    assert effects.record.self_service == SelfService(NOW, 2, "boot-1")
    assert "attempt 2" in effects.notices[0].message


def test_an_unknown_vm_is_left() -> None:
    node = replace(azure_node(), provider_id="")
    before = Effects(drained())

    assert perform_maintenance(situation(node), before) == before
