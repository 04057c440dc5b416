"""The trigger types of workflows, one file for each family. Importing the package registers them."""

from __future__ import annotations

from reconciler.features.workflows.trigger import trigger_types
from reconciler.profiles.plugins import import_plugins

import_plugins(__name__, __path__)

TRIGGER_TYPES = trigger_types()
