"""Triggers, one file for each family. A trigger defines what changes on the node and in its record.

To add one, add a function under `@trigger("name")`, and name it in a profile.
"""

from __future__ import annotations

from reconciler.profiles.plugins import import_plugins, registered_triggers

import_plugins(__name__, __path__)

TRIGGERS = registered_triggers()
