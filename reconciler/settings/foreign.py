"""Files that were written for maintenance-controller, as settings of ours."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from reconciler.settings.mistakes import Path
from reconciler.settings.sections.sources import Sources

PREFIX = "cloud.sap"
"""The prefix of maintenance-controller's labels and annotations."""

WITHOUT_EFFECT: Mapping[Path, tuple[str, str]] = MappingProxyType(
    {
        ("dashboard",): ("has no effect: there is no dashboard here", "remove it if you do not go back"),
        ("intervals", "notify"): ("has no effect, as in maintenance-controller itself", "remove it"),
        ("deletionTimeout",): ("has no effect, as in maintenance-controller itself", "remove it"),
    }
)
"""Keys of such files that mean nothing here, by their path or their name: what to say, and what to change."""

_OURS = ("apiVersion", "kind", "mode")


def is_of_maintenance_controller(value: Mapping[str, object]) -> bool:
    """Whether a file has the top-level keys of maintenance-controller's configuration."""
    if any(key in value for key in _OURS):
        return False
    return "intervals" in value or "instances" in value or isinstance(value.get("profiles"), list)


def around(value: Mapping[str, object]) -> dict[str, object]:
    """Return settings of ours with this file as their workflows, and nothing else.

    It acts and keeps its labels, as maintenance-controller does, and reads no maintenance of the platform.
    """
    off = {str(field.alias): {"enabled": False} for field in Sources.model_fields.values()}
    return {"mode": "Enforce", "keys": {"prefix": PREFIX}, "sources": off, "profiles": dict(value)}
