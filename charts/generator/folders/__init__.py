"""What the chart has for folders of k8s that come and go with a plugin: a module for each, by its name.

`VALUES` there is the group of values of this name. `CONDITIONS` says when a file is rendered, by its name, or
by an empty one for all others of the folder. `EDITS` are what the values change, by the name of the file.

A folder of permissions needs no module: its kustomization begins with "# Permissions", and what follows
describes its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

_PERMISSIONS = "# Permissions "


def modules() -> Mapping[str, ModuleType]:
    """Return the module of each folder that has one, by its name."""
    return {found.name: import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)}


def permissions(k8s: Path) -> Mapping[str, str]:
    """Return what each folder of permissions is for, by its name."""
    firsts = {
        file.parent.name: file.read_text(encoding="utf-8").partition("\n")[0]
        for file in sorted(k8s.glob("*/kustomization.yaml"))
    }
    return {
        folder: first.removeprefix("# ") for folder, first in firsts.items() if first.startswith(_PERMISSIONS)
    }
