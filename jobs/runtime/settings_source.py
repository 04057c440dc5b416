"""Where a command finds its settings: in a file or in a ConfigMap."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from jobs.runtime.environment import Target
from reconciler.model.config_map import ConfigMapName
from reconciler.settings.load import load_settings, parse_content
from reconciler.settings.schema import Settings

SettingsSource = Path | ConfigMapName


def settings_from(source: SettingsSource, target: Target, now: datetime) -> Settings:
    """Return the settings of a file or a ConfigMap, loaded `now` (aware).

    The API server is asked for a ConfigMap only. Raises SettingsError with every mistake, and ClusterError if
    the API server does not answer or refuses us.
    """
    if isinstance(source, Path):
        return load_settings(source, now, os.environ)
    from reconciler.clients.kubernetes.config_maps import read_settings
    from reconciler.clients.kubernetes.connection import Connection

    connection = Connection(target.kubeconfig, target.context)
    try:
        name, content = read_settings(connection, source)
    finally:
        connection.close()
    return parse_content(content, name, now, os.environ)
