"""Machine providers: each decides from a node alone whether the node's machine is its own."""

from __future__ import annotations

from reconciler.plugins import EARLY

PLACE = EARLY
"""Whether a machine is replaced is known before others decide about its node."""
