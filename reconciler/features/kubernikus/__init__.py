"""Kubernikus: nodes whose kubelet is behind, and nodes that are deleted, with their servers in OpenStack."""

from __future__ import annotations

from reconciler.plugins import LATE

PLACE = LATE
"""Its machines are those that no provider in `machines` knows."""
