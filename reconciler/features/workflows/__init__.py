"""Workflows: profiles of users, in maintenance-controller's form, beside the profile of platform events.

Importing the package registers every check and trigger type.
"""

from __future__ import annotations

from reconciler.plugins import EARLY

PLACE = EARLY
"""What holds a node for a workflow is known before others decide about it."""
