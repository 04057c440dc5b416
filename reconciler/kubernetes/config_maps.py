"""The settings in a ConfigMap."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from reconciler.kubernetes import objects
from reconciler.kubernetes.connection import Connection, core
from reconciler.kubernetes.wire.shapes import ObjectMeta
from reconciler.model import limits
from reconciler.model.content import INSTALLED, INSTALLED_LABEL, KEY, ConfigMapName
from reconciler.model.errors import Forbidden, NotFound, Rejected, SettingsError, Unauthorized
from reconciler.model.limits import quoted

_NAMED_AT_MOST = 5


# The attributes have the names of the API, so that no table of names is needed.
# ruff: noqa: N815


class _ManagedFields(msgspec.Struct):
    """metav1.ManagedFieldsEntry."""

    manager: str = ""
    time: str = ""
    fieldsV1: dict[str, object] | None = None


class _Metadata(ObjectMeta):
    managedFields: list[_ManagedFields] | None = None


class _ConfigMap(msgspec.Struct):
    """core/v1 ConfigMap. kubectl puts a file that is not UTF-8 into `binaryData`."""

    metadata: _Metadata
    data: dict[str, str] | None = None
    binaryData: dict[str, str] | None = None


def unreadable(namespace: str, name: str, why: object, then: str) -> str:
    """Return in words that what we keep in a ConfigMap of ours can't be read, and how to end that.

    `then` says what follows once it is deleted.
    """
    return (
        f"configmap/{namespace}/{name} can't be read: {why}; delete it, and {then}: "
        f"kubectl delete -n {namespace} configmap {name}"
    )


class HeldSettings(Struct, frozen=True):
    """Settings in the `key` of a ConfigMap; `str` of it is where they are, for messages.

    `uid` and `version` are those of the ConfigMap, and `manager` is the field manager that wrote the key
    last, empty if the API server does not say it. `binary`: the key is one of its `binaryData`.
    """

    name: ConfigMapName
    key: str
    content: bytes
    uid: str = ""
    version: str = ""
    manager: str = ""
    binary: bool = False

    def __str__(self) -> str:
        """Return `configmap/NAMESPACE/NAME/KEY`."""
        return f"{self.name}/{self.key}"


def read_settings(connection: Connection, name: ConfigMapName) -> HeldSettings:
    """Return the settings in a ConfigMap.

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


def read_installed(connection: Connection, namespace: str) -> HeldSettings | str:
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


def _settings_in(name: ConfigMapName, found: _ConfigMap) -> HeldSettings:
    data, binary, metadata = found.data or {}, found.binaryData or {}, found.metadata
    key = _key(name, {*data, *binary})
    if key in data:
        content = data[key].encode("utf-8", "surrogatepass")
    else:
        try:
            content = base64.b64decode(binary[key], validate=True)
        except binascii.Error as error:
            raise SettingsError((f"{name}/{key}: its binaryData can't be read: {error}",)) from error
    manager = _manager(metadata.managedFields or (), key)
    return HeldSettings(
        name, key, content, metadata.uid, metadata.resourceVersion, manager, binary=key not in data
    )


def _manager(entries: Iterable[_ManagedFields], key: str) -> str:
    """Return the field manager that wrote this key last, empty if none has."""

    def has_written(entry: _ManagedFields) -> bool:
        parts = ((entry.fieldsV1 or {}).get(f"f:{part}") for part in ("data", "binaryData"))
        return any(isinstance(part, dict) and f"f:{key}" in part for part in parts)

    last = max(filter(has_written, entries), key=lambda entry: entry.time, default=_ManagedFields())
    return limits.text(last.manager, limits.NAME)


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
