"""ESX hosts: their labels, and vCenter."""

from __future__ import annotations

from reconciler.plugins import LATE

PLACE = LATE
"""A VM goes off with its host only after all else is decided about its node."""
