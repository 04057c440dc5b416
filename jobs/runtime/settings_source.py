"""Where a command finds its settings: in a file, in a ConfigMap, or in the one that is installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from textwrap import wrap

from msgspec import Struct

from jobs.runtime.environment import Target, VariablesAsWritten
from jobs.runtime.forms import for_programs
from jobs.runtime.terminal import echo, width
from reconciler.model.config_map import ConfigMapName
from reconciler.report.values import Document
from reconciler.settings.load import load_settings, parse_content, parse_settings
from reconciler.settings.schema import Settings

SettingsSource = Path | ConfigMapName


class SettingsInUse(Struct, frozen=True):
    """The settings that a command asks, and where they are from.

    `defaults` is the first line of the output where they are the default settings, empty where they are not.
    """

    settings: Settings
    source: str
    defaults: str = ""

    def named_in(self, document: Mapping[str, object]) -> Document:
        """Return the document with the key that says why the settings are the default ones, or null."""
        return {**document, "defaultSettings": self.defaults or None}

    def first_line(self, output: str = "text") -> tuple[str, ...]:
        """Return what to print above a text for people: one line, folded on a narrow terminal, or none.

        What programs read stays as it is. The line goes to stderr then.
        """
        if self.defaults and for_programs(output):
            echo(self.defaults, err=True)
        if not self.defaults or for_programs(output):
            return ()
        columns = width(output)
        return tuple(wrap(self.defaults, columns)) if columns else (self.defaults,)


def settings_in_use(source: SettingsSource | None, target: Target, now: datetime) -> SettingsInUse:
    """Return the settings of a source, or without one those that are installed in the cluster.

    Where none are installed, or they may not be read, the default settings apply, and the policy says so.
    Settings that can't be used raise SettingsError with every mistake; ClusterError if the API server does
    not answer or refuses us. `now` is aware.
    """
    if source is not None:
        return SettingsInUse(settings_from(source, target, now), str(source))
    from reconciler.kubernetes.config_maps import read_installed
    from reconciler.kubernetes.connection import Connection

    connection = Connection(target.kubeconfig, target.context)
    try:
        found = read_installed(connection, target.namespace)
    finally:
        connection.close()
    if isinstance(found, str):
        defaults = f"default settings: {found}; pass --config"
        return SettingsInUse(parse_settings("", ""), "default settings", defaults)
    name, content = found
    return SettingsInUse(parse_content(content, name, now, VariablesAsWritten(os.environ)), name)


def settings_from(source: SettingsSource, target: Target, now: datetime) -> Settings:
    """Return the settings of a file or a ConfigMap, loaded `now` (aware).

    The API server is asked for a ConfigMap only. Raises SettingsError with every mistake, and ClusterError if
    the API server does not answer or refuses us.
    """
    if isinstance(source, Path):
        return load_settings(source, now, os.environ)
    from reconciler.kubernetes.config_maps import read_settings
    from reconciler.kubernetes.connection import Connection

    connection = Connection(target.kubeconfig, target.context)
    try:
        name, content = read_settings(connection, source)
    finally:
        connection.close()
    return parse_content(content, name, now, os.environ)
