"""cloudprovider.conf: the access of a user to OpenStack, from a file or from a Secret."""

from __future__ import annotations

import base64
import binascii
import configparser
import os
import re
import stat
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from reconciler.http.retrying import patiently
from reconciler.kubernetes.connection import Connection, Request, core
from reconciler.kubernetes.wire.shapes import decode
from reconciler.model.errors import ClusterError, NotFound

KEY = "cloudprovider.conf"
"""The key of the Secret."""

ANSWER = 2.0
"""Seconds for the answer of the API server."""

_LARGEST = 64 * 1024
_REGION = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_LOCAL = ("127.0.0.1", "::1", "localhost")


class _Secret(msgspec.Struct):
    data: dict[str, str] | None = None


class Place(Struct, frozen=True):
    """Where a cloudprovider.conf is: in the Secret, or without its name in the file."""

    file: str
    namespace: str = ""
    secret: str = ""


class Access(Struct, frozen=True):
    """The section `Global` of a cloudprovider.conf. Nothing shows it, because it has a password."""

    auth_url: str
    user: str
    password: str
    domain: str
    project: str
    region: str

    def __repr__(self) -> str:
        return f"the access of {self.user}"

    @property
    def identity(self) -> str:
        """The address of version 3 of Keystone, which the file may name without the version."""
        base = self.auth_url.rstrip("/")
        return base if base.endswith("/v3") else f"{base}/v3"


def access_at(place: Place, connection: Connection) -> Access:
    """Return the access that is there now; ValueError with the reason if it can't be used."""
    try:
        return parse_access(_text(place, connection))
    except NotFound:
        raise ValueError(f"there is no Secret {place.namespace}/{place.secret}") from None
    except ClusterError as error:
        raise ValueError(error.because) from error
    except OSError as error:
        raise ValueError(f"{place.file}: {error.strerror or type(error).__name__}") from error


def _text(place: Place, connection: Connection) -> str:
    """Return the content of the cloudprovider.conf; ValueError if it can't be used."""
    if not place.secret:
        # A pipe would wait for its writer.
        if not stat.S_ISREG(os.stat(place.file).st_mode):
            raise ValueError(f"{place.file} is not a regular file")
        with open(place.file, "rb") as file:
            content = file.read(_LARGEST + 1)
    else:
        path = core(place.namespace) / "secrets" / place.secret
        request = Request("GET", path, total=ANSWER)
        answer = patiently(lambda: connection.send(request), patience=ANSWER, sleep=connection.sleep)
        held = (decode(_Secret, answer).data or {}).get(KEY)
        if held is None:
            raise ValueError(f"the Secret {place.namespace}/{place.secret} has no key {KEY}")
        try:
            content = base64.b64decode(held, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{KEY} is not base64") from error
    if len(content) > _LARGEST:
        raise ValueError(f"{KEY} is larger than {_LARGEST} bytes")
    return content.decode("utf-8", "replace")


def parse_access(text: str) -> Access:
    """Return what a cloudprovider.conf says. No message of its parser is shown: it repeats the line."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
        section = parser["Global"]
    except (configparser.Error, KeyError):
        raise ValueError(f"{KEY} has no section [Global] that can be read") from None
    keys = ("auth-url", "username", "password", "domain-name", "tenant-id", "region")
    values = [(section.get(key) or "").strip().strip('"') for key in keys]
    missing = [key for key, value in zip(keys, values, strict=True) if not value]
    if missing:
        raise ValueError(f"{KEY} has no {', '.join(missing)}")
    if not _REGION.fullmatch(values[5]):
        raise ValueError(f"the region in {KEY} is no name of a region")
    return Access(checked_url(values[0], "auth-url"), *values[1:])


def checked_url(url: str, what: str) -> str:
    """Return the URL; ValueError unless a password may be sent to it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise ValueError(f"{what} is not a URL") from None
    if not host or parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"{what} is not a URL of a server")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOCAL):
        raise ValueError(f"{what} does not begin with https://")
    return url
