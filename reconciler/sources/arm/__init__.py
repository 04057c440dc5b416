"""Maintenance that the ARM API announces."""

from __future__ import annotations

from reconciler.plugins import LATE

PLACE = LATE
"""Readings of a service come behind those of the node itself."""
