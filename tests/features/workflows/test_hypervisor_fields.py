"""The fields of Hypervisors: the sections of the settings name the same ones."""

from __future__ import annotations

from reconciler.features.workflows.check_types import HypervisorCheck
from reconciler.features.workflows.services import SPEC, STATUS
from reconciler.features.workflows.trigger_types import AlterHypervisor


def test_the_settings_have_each_field_that_is_read_and_no_other() -> None:
    assert {one.alias for one in HypervisorCheck.model_fields.values()} == set(STATUS)
    assert {one.alias for one in AlterHypervisor.model_fields.values()} == set(SPEC)
