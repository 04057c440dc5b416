"""The check types of workflows, one file for each family. Importing the package registers all of them."""

from __future__ import annotations

from reconciler.features.workflows.situation import WORKFLOWS
from reconciler.profiles.vocabulary import import_plugins

import_plugins(__name__, __path__)

CHECK_TYPES = WORKFLOWS.checks
