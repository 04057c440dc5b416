"""Where the settings and calendars are, what was read of them, and the texts in them that name secrets.

The settings keep such a text as it was written: `${NAME}` of the environment, `${file:/path}` of a file. Only
what sends something replaces the names by their values.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum

from msgspec import Struct

from reconciler.model.limits import is_object_name

_HASH_LENGTH = 12


class SettingsVersion(Struct, frozen=True):
    """The settings in force. `loaded` is when this process loaded them (UTC), None if it is not known.

    `hash` is the start of the SHA-256 of the file's content, as `sha256sum FILE` prints it.
    """

    hash: str
    loaded: datetime | None = None

    def age(self, now: datetime) -> timedelta | None:
        """Return how long ago the settings were loaded, None if it is not known."""
        return None if self.loaded is None else max(now - self.loaded, timedelta())


def short_hash(content: bytes) -> str:
    """Return the hash of a settings file's content."""
    return hashlib.sha256(content).hexdigest()[:_HASH_LENGTH]


PREFIX = "configmap/"

INSTALLED = "maintenance-policy"
"""The ConfigMap with the settings that k8s/base and the chart install."""

INSTALLED_LABEL = "app.kubernetes.io/part-of=node-maintenance-reconciler"
"""The label of everything that they install, also under another name."""

KEY = "maintenance.yaml"
"""The key with the settings in that ConfigMap."""


class ConfigMapName(Struct, frozen=True):
    """A ConfigMap. `str` of it is the form in which it was written."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return `configmap/NAMESPACE/NAME`."""
        return f"{PREFIX}{self.namespace}/{self.name}"


def parse_config_map(text: str) -> ConfigMapName | None:
    """Return the ConfigMap of `configmap/NAMESPACE/NAME`, None for a text without that prefix.

    Raises ValueError if the rest is not two names.
    """
    if not text.startswith(PREFIX):
        return None
    parts = text.removeprefix(PREFIX).split("/")
    if len(parts) != 2 or not all(map(is_object_name, parts)):
        raise ValueError(f"{text!r} is not configmap/NAMESPACE/NAME; for a file, write ./{text}")
    return ConfigMapName(*parts)


class Holder(StrEnum):
    """What holds the content of a calendar."""

    FILE = "file"
    CONFIG_MAP = "ConfigMap"
    SECRET = "Secret"


class CalendarPlace(Struct, frozen=True):
    """Where the content of a calendar is, and how it is read.

    `key_path` is the key of the settings that names it, and `path` that of a file. An object has a
    `namespace` and an `object`; without a `key` its only key counts. `problem` says why the place is not
    known. `zone` is for times without a zone; with `zone_given` it also wins over the zone that the content
    names. With `aks`, the content is a maintenance configuration of AKS.
    """

    name: str
    holder: Holder = Holder.FILE
    key_path: tuple[str | int, ...] = ()
    path: str = ""
    namespace: str = ""
    object: str = ""
    key: str = ""
    problem: str = ""
    zone: tzinfo = UTC
    zone_given: bool = False
    aks: bool = False

    def __str__(self) -> str:
        """Return it for people: the path, or the object with its key."""
        if self.holder is Holder.FILE:
            return self.path
        key = f"/{self.key}" if self.key else ""
        return f"{self.holder} {self.namespace}/{self.object}{key}"


class CalendarText(Struct, frozen=True):
    """The content of a calendar: the last one that could be used. `unread` says why there is none.

    `note` says what is wrong with the newest content while an older one still counts, and `unread_since` is
    when that began (UTC).
    """

    text: str = ""
    unread: str = ""
    note: str = ""
    unread_since: datetime | None = None


MASKED = "***"
"""What every report, log and message shows instead of a secret."""

REFERENCE = re.compile(r"\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|file:(?P<file>/[^{}\s]+))\}")


class Secret(Struct, frozen=True):
    """A text with references to secrets. Its `repr` and `str` never show it."""

    text: str

    def __repr__(self) -> str:
        """Return a mask."""
        return MASKED

    def __str__(self) -> str:
        """Return a mask."""
        return MASKED

    @property
    def is_written_out(self) -> bool:
        """Whether the settings contain the text itself, and no reference."""
        return REFERENCE.search(self.text) is None

    def names(self) -> tuple[str, ...]:
        """Return the names in the environment that it refers to."""
        return tuple(found["name"] for found in REFERENCE.finditer(self.text) if found["name"])

    def resolved(self, variable: Callable[[str], str], file: Callable[[str], str]) -> str:
        """Return the text with the value of each reference; raises what the two functions raise."""
        return REFERENCE.sub(
            lambda found: variable(found["name"]) if found["name"] else file(found["file"]), self.text
        )
