"""The settings in a ConfigMap."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

import msgspec

from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import Connection, core
from reconciler.kubernetes.wire.shapes import ObjectMeta
from reconciler.model.content import INSTALLED, INSTALLED_LABEL, KEY, ConfigMapName
from reconciler.model.errors import Forbidden, NotFound, Rejected, SettingsError, Unauthorized
from reconciler.model.limits import quoted

_NAMED_AT_MOST = 5


class _ConfigMap(msgspec.Struct):
    """core/v1 ConfigMap. kubectl puts a file that is not UTF-8 into `binaryData`."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None
    binaryData: dict[str, str] | None = None  # noqa: N815 - the API's spelling


def read_settings(connection: Connection, name: ConfigMapName) -> tuple[str, bytes]:
    """Return the settings in a ConfigMap: where they are, for messages, and their content.

    The settings are the key `maintenance.yaml`, or the only key. Raises SettingsError if there is no such
    ConfigMap or no such key, Unauthorized if we may not read it, and the other errors of ClusterError.
    """
    try:
        found = objects.get(connection, core(name.namespace) / "configmaps" / name.name, _ConfigMap)
    except NotFound as error:
        raise SettingsError((f"{name}: there is no such ConfigMap",)) from error
    except Forbidden as error:
        message = f"{name}: we may not read it; it needs {error.needs}"
        raise Unauthorized(message, status=error.status, reason=error.reason, needs=error.needs) from error
    except Rejected as error:
        raise SettingsError((f"{name}: {error}",)) from error
    return _settings_in(name, found)


def read_installed(connection: Connection, namespace: str) -> tuple[str, bytes] | str:
    """Return the settings that the manifests install in a namespace, as `read_settings` does.

    If there are none, or they may not be read, return in words why. A ConfigMap with another name is known by
    the label of the manifests and the key of the settings. Raises SettingsError for a ConfigMap without
    settings, and the errors of ClusterError for a server that does not answer.
    """
    name, place = ConfigMapName(namespace, INSTALLED), core(namespace) / "configmaps"
    try:
        found = objects.get(connection, place / name.name, _ConfigMap)
    except NotFound:
        try:
            listed, _ = objects.get_list(connection, place, _ConfigMap, labels=INSTALLED_LABEL)
        except (Forbidden, NotFound):
            listed = []
        named = [
            ConfigMapName(namespace, each.metadata.name)
            for each in listed
            if KEY in {*(each.data or {}), *(each.binaryData or {})}
        ]
        if len(named) == 1:
            return read_settings(connection, named[0])
        if not named:
            return f"no ConfigMap {namespace}/{INSTALLED} in the cluster"
        return f"several ConfigMaps may have the settings: {', '.join(map(str, named[:_NAMED_AT_MOST]))}"
    except Forbidden as error:
        needs = error.needs or error
        denied = f"the ConfigMap {namespace}/{INSTALLED} may not be read (needs {needs})"
        return f"{denied}, so the reconciler may use others"
    except Rejected as error:
        raise SettingsError((f"{name}: {error}",)) from error
    return _settings_in(name, found)


def _settings_in(name: ConfigMapName, found: _ConfigMap) -> tuple[str, bytes]:
    data, binary = found.data or {}, found.binaryData or {}
    key = _key(name, {*data, *binary})
    if key in data:
        return f"{name}/{key}", data[key].encode("utf-8", "surrogatepass")
    try:
        return f"{name}/{key}", base64.b64decode(binary[key], validate=True)
    except binascii.Error as error:
        raise SettingsError((f"{name}/{key}: its binaryData can't be read: {error}",)) from error


def _key(name: ConfigMapName, keys: Iterable[str]) -> str:
    known = sorted(keys)
    if KEY in known:
        return KEY
    if len(known) == 1:
        return known[0]
    if not known:
        raise SettingsError((f"{name}: it has no keys; put the settings into the key {KEY}",))
    named = ", ".join(map(quoted, known[:_NAMED_AT_MOST]))
    more = f" and {len(known) - _NAMED_AT_MOST} more" if len(known) > _NAMED_AT_MOST else ""
    raise SettingsError((f"{name}: it has several keys, and none is {KEY}: {named}{more}",))
