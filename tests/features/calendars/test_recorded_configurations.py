"""Maintenance configurations of AKS in the shapes of its published API examples, with values of our own."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from reconciler.features.calendars.aks_maintenance import is_aks, parse_aks

AKS = (
    "/subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourcegroups/shop"
    "/providers/Microsoft.ContainerService/managedClusters/shop"
)
CONFIGURATIONS = [
    {
        "id": f"{AKS}/maintenanceConfigurations/aksManagedNodeOSUpgradeSchedule",
        "name": "aksManagedNodeOSUpgradeSchedule",
        "properties": {
            "maintenanceWindow": {
                "schedule": {"daily": {"intervalDays": 5}},
                "durationHours": 10,
                "utcOffset": "-07:00",
                "startDate": "2026-01-01",
                "startTime": "13:30",
            }
        },
    },
    {
        "id": f"{AKS}/maintenanceConfigurations/default",
        "name": "default",
        "properties": {
            "notAllowedTime": [{"start": "2026-11-26T03:00:00Z", "end": "2026-11-30T12:00:00Z"}],
            "timeInWeek": [{"day": "Monday", "hourSlots": [1, 2]}],
        },
    },
]


@pytest.mark.parametrize(
    ("document", "first"),
    [
        pytest.param(CONFIGURATIONS[0], "2026-11-22T20:30", id="a schedule"),
        pytest.param({"value": CONFIGURATIONS[1:]}, "2026-11-23T01:00", id="the older form, in a list"),
    ],
)
def test_a_maintenance_configuration(document: dict[str, Any], first: str) -> None:
    assert is_aks(document)
    (run,) = islice(parse_aks(document).runs(datetime(2026, 11, 22, 12, tzinfo=UTC)), 1)
    assert f"{run.start:%Y-%m-%dT%H:%M}" == first


def test_a_list_of_several_configurations_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match="has 2 configurations; use a file for each"):
        parse_aks({"value": CONFIGURATIONS})
