"""Checks, one file for each family. A check answers passed, failed or unknown, and gives the reason.

To add one, add a function under `@check("name")`, and name it in a profile. A check of a feature, which no
profile names, is in its `steps.py`.
"""

from __future__ import annotations

from reconciler.plugins import load_installed, modules
from reconciler.profiles.vocabulary import PLATFORM, Check, import_plugins

import_plugins(__name__, __path__)
# Features hold steps by checks of their own.
for _ in modules("steps"):
    pass
load_installed()

CHECKS = {name: Check(name, kind) for name, kind in PLATFORM.checks.items()}
"""Every check of the platform's profile, by name."""
