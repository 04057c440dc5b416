"""The trigger types of workflows, one file each. Importing the package registers them."""

from __future__ import annotations

from reconciler.engine.plugins import import_plugins
from reconciler.workflows.trigger import trigger_types

import_plugins(__name__, __path__)

TRIGGER_TYPES = trigger_types()
