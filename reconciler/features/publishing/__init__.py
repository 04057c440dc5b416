"""Publishers: each shows the state of a case to other tools. One file each, and a line in feature.py."""

from __future__ import annotations

from reconciler.plugins import EARLY

PLACE = EARLY
"""On the page about settings, its keys stand before those of others behind the same key."""
