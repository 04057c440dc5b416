"""The settings in a ConfigMap."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

import msgspec

from reconciler.clients.kubernetes import objects
from reconciler.clients.kubernetes.connection import Connection
from reconciler.clients.kubernetes.paths import core
from reconciler.clients.kubernetes.wire.shapes import ObjectMeta
from reconciler.errors import Forbidden, NotFound, Rejected, SettingsError, Unauthorized
from reconciler.model.config_map import KEY, ConfigMapName
from reconciler.model.names import quoted

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
