"""The node conditions of KEP-5683. We publish them, so they can't be a reason to drain."""

from __future__ import annotations

PLANNED = "MaintenancePlanned"
IN_PROGRESS = "MaintenanceInProgress"
DRAINING = "DrainInProgress"
DRAINED = "Drained"
MISSED = "MaintenanceMissed"
LATE = "MaintenanceLate"
"""Only NodeMaintenance objects have these two, and only when they are True."""

LIFECYCLE = (PLANNED, IN_PROGRESS, DRAINING, DRAINED)
