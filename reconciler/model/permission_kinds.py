"""The kinds of permissions: each feature brings its own, and the core knows none by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from reconciler import plugins


class PermissionKind(Struct, frozen=True, kw_only=True):
    """An instruction by which a person permits the drain of a node for what is announced.

    A feature brings it in the list PERMISSIONS of its `permissions.py`. `name` is that of the annotation
    below the prefix. `reconciler COMMAND NODE` writes it, and withdraws it with `--cancel`. `noun` says in
    messages what it is, and `done` what a person has done with the drain. `for_profiles` is the key in the
    annotation that says that it is also for the profiles of the node; empty if it never is.
    """

    name: str
    command: str
    noun: str
    done: str
    for_profiles: str = ""


@cache
def permission_kinds() -> Mapping[str, PermissionKind]:
    """Return every kind by its name, in the order of the features.

    If two have one name, raises PluginError for a plugin that is installed, else ValueError with both files.
    """
    given = ((plugins.file_of(module), module.PERMISSIONS) for module in plugins.modules("permissions"))
    return plugins.by_name("permission", given, lambda kind: kind.name)
