"""The kind NodeMaintenance, k8s/crd."""

from __future__ import annotations

from pydantic import Field

from charts.generator.edits import Edit
from charts.generator.part import Part


class Crd(Part):
    """The kind NodeMaintenance, for `publish: [nodemaintenances]`."""

    enabled: bool = Field(
        default=False,
        description="Whether the kind is installed. An uninstall deletes it with all its objects.",
    )


VALUES = Crd
CONDITIONS = {"": ".Values.crd.enabled"}
EDITS: dict[str, tuple[Edit, ...]] = {}
