"""Reads the calendars that the settings name, from files, ConfigMaps and Secrets.

A content that can't be used is unread, with the reason: a file may be half written, and an API server may be
away. A pass knows what counts then.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from reconciler.http.retrying import patiently
from reconciler.kubernetes.connection import ApiPath, Connection, Request, core
from reconciler.kubernetes.wire.shapes import ObjectMeta, decode
from reconciler.model.content import CalendarPlace, CalendarText, Holder
from reconciler.model.errors import ClusterError, NotFound, Unreachable
from reconciler.model.limits import CALENDAR, quoted
from reconciler.model.problems import internal

_ONLY_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PATIENCE = 5.0
"""Seconds for which a request is repeated. A pass does not wait for a calendar as long as for its nodes."""


class _Entry(msgspec.Struct):
    time: str | None = None


class _Metadata(ObjectMeta):
    managedFields: list[_Entry] | None = None  # noqa: N815 - the API's spelling

    @property
    def version(self) -> str:
        """What no two contents of the object have, empty if that is not known.

        After a restore of etcd, a resourceVersion may come again with another content.
        """
        times = sorted(entry.time or "" for entry in self.managedFields or ())
        return " ".join((self.resourceVersion, self.uid, *times)) if self.resourceVersion else ""


class _ConfigObject(msgspec.Struct):
    """core/v1 ConfigMap or Secret, or the metadata of one."""

    metadata: _Metadata
    data: dict[str, str] | None = None
    binaryData: dict[str, str] | None = None  # noqa: N815 - the API's spelling


class _Good(Struct, frozen=True):
    """The content of an object that was read last, with its version."""

    place: CalendarPlace
    text: str
    version: str


class Calendars:
    """A CalendarReader. It reads an object again only if that has changed."""

    def __init__(self, connection: Connection | None = None) -> None:
        """Use this connection for ConfigMaps and Secrets; without one they can't be read."""
        self._connection = connection
        self._good: dict[str, _Good] = {}

    def read(self, places: Sequence[CalendarPlace]) -> Mapping[str, CalendarText]:
        """Return the content of each calendar, by its name, without what has no effect. Raises nothing.

        An object is read again only if its version has changed. Once the API server does not answer,
        no further object is asked for.
        """
        from reconciler.features.calendars.parsing import parse_calendar, without_the_rest

        found: dict[str, CalendarText] = {}
        away = ""
        for place in places:
            try:
                if away and place.holder is not Holder.FILE:
                    raise ValueError(away)
                text, version = self._content(place)
                parse_calendar(text, place)
                text = without_the_rest(text)
            except Exception as error:  # noqa: BLE001 - one calendar's content harms that calendar only
                if isinstance(error, Unreachable):
                    away = str(error)
                found[place.name] = CalendarText(unread=_words(error, place))
                continue
            self._good[place.name] = _Good(place, text, version)
            found[place.name] = CalendarText(text)
        return found

    def _content(self, place: CalendarPlace) -> tuple[str, str]:
        if place.problem:
            raise ValueError(place.problem)
        if place.holder is Holder.FILE:
            # A pipe would wait for its writer.
            if not stat.S_ISREG(os.stat(place.path).st_mode):
                raise ValueError(f"{place.path} is not a regular file")
            with open(place.path, "rb") as file:
                return _text(_limited(file.read(CALENDAR + 1))), ""
        if self._connection is None:
            raise ValueError(f"{place} is not read by this command")
        kind = "configmaps" if place.holder is Holder.CONFIG_MAP else "secrets"
        path = core(place.namespace) / kind / place.object
        version = self._get(path, _ONLY_METADATA).metadata.version
        good = self._good.get(place.name)
        if good is not None and good.place == place and version and good.version == version:
            return good.text, version
        held = self._get(path, "application/json")
        return _text(_value(held, place)), held.metadata.version

    def _get(self, path: ApiPath, accept: str) -> _ConfigObject:
        connection = self._connection
        assert connection is not None
        request = Request("GET", path, accept=accept, total=_PATIENCE)
        answer = patiently(lambda: connection.send(request), patience=_PATIENCE, sleep=connection.sleep)
        return decode(_ConfigObject, answer)


def _value(held: _ConfigObject, place: CalendarPlace) -> bytes:
    data, binary = held.data or {}, held.binaryData or {}
    known = sorted({*data, *binary})
    if not place.key and len(known) != 1:
        raise ValueError(f"{place} has {len(known)} keys; write the one with the calendar as `key`")
    key = place.key or known[0]
    if key not in known:
        named = ", ".join(map(quoted, known[:5]))
        raise ValueError(f"{place}: there is no such key; its keys are {named or 'none'}")
    if place.holder is Holder.CONFIG_MAP and key in data:
        return _limited(data[key].encode("utf-8", "surrogatepass"))
    try:
        return _limited(base64.b64decode(data[key] if key in data else binary[key], validate=True))
    except binascii.Error as error:
        raise ValueError(f"{place}: {quoted(key)} is not base64") from error


def _limited(content: bytes) -> bytes:
    if len(content) > CALENDAR:
        raise ValueError(f"is larger than {CALENDAR} bytes")
    return content


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start})") from error


def _words(error: Exception, place: CalendarPlace) -> str:
    if isinstance(error, NotFound):
        return f"there is no {place}"
    if isinstance(error, ClusterError):
        return f"{place}: {error.because}"
    if isinstance(error, OSError):
        return f"{place}: {error.strerror or error}"
    if not isinstance(error, ValueError):
        return internal(str(place), error)
    text = str(error)
    return text if str(place) in text else f"{place}: {text}"
