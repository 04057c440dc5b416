"""The prefix of the keys on nodes, for a command that needs nothing else of the settings."""

from __future__ import annotations

import os

from jobs.runtime.environment import VariablesAsWritten
from jobs.runtime.terminal import echo
from reconciler.kubernetes.config_maps import read_installed
from reconciler.kubernetes.connection import Connection
from reconciler.model.errors import SettingsError
from reconciler.model.keys import DEFAULT_PREFIX


def prefix_in_use(given: str | None, connection: Connection, namespace: str) -> str:
    """Return the prefix that a person has given, or that of the settings that are installed in the cluster.

    If there are none, or they may not be read, it is the default one, and a first line on stderr says so.
    Raises SettingsError for settings that can't be used, and the errors of ClusterError.
    """
    if given is not None:
        return given
    found = read_installed(connection, namespace)
    if isinstance(found, str):
        echo(f"default prefix {DEFAULT_PREFIX}: {found}; pass --prefix", err=True)
        return DEFAULT_PREFIX
    name, content = found
    if b"prefix" not in content:
        return DEFAULT_PREFIX
    # To load settings takes half a second.
    from reconciler.settings.load import parse_content

    try:
        return parse_content(content, name, None, VariablesAsWritten(os.environ)).keys.prefix
    except SettingsError as error:
        raise SettingsError((*error.mistakes, "or name the prefix of the keys with --prefix")) from error
