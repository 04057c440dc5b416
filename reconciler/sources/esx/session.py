"""A login at a vCenter for one query. Its answers have a total time and a size, and each request is reported.

pyvmomi has a timeout only for each read, and none at all for its first request.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from reconciler.http.bounded import LARGEST, Bounds, answers_within
from reconciler.http.failures import report
from reconciler.http.secrets import SecretMissing, from_environment, from_file
from reconciler.model.errors import CloudError
from reconciler.model.secret import Secret
from reconciler.settings.sections.sources import VCenter

log = logging.getLogger(__name__)

TIMEOUT = 15.0
"""Seconds for a connection, and between two bytes of an answer."""

LOGOUT = 5.0
"""Seconds for the end of a session whose time is over."""

API = "vcenter"

_PATH = "/sdk"
_LONGEST_SECRET = 4096


class VCenterSession:
    """A login for one query. The server forgets it, and its views, at the end."""

    def __init__(self, server: VCenter, seconds: float) -> None:
        """Log in at this server, and take so many seconds for all answers."""
        self._server = server
        self._ends = time.monotonic() + seconds
        address = urlsplit(server.url)
        tls = address.scheme == "https"
        self._host, self._port = address.hostname or "", address.port or (443 if tls else 80)
        self._tls = _tls_of(server) if tls else None
        self._stub: Any = None
        self._content: Any = None

    def __enter__(self) -> Any:
        """Log in; return the content of the service.

        Raises CloudError, OSError, HTTPException, or what the server refuses as a MethodFault.
        """
        try:
            from pyVmomi import SoapStubAdapter, vim
        except ImportError as error:
            raise CloudError(
                "pyvmomi is not installed: install node-maintenance-reconciler[esx], see docs/esx.md"
            ) from error
        user, password = resolved(self._server.username), resolved(self._server.password)
        # A negative port is one without TLS.
        port = self._port if self._tls else -self._port
        self._stub = SoapStubAdapter(self._host, port, path=_PATH, version=self._version())
        self._stub.scheme, self._stub.schemeArgs = self._connection, {}
        try:
            self._content = vim.ServiceInstance("ServiceInstance", self._stub).RetrieveContent()
            self._content.sessionManager.Login(user, password, None)
        except BaseException:
            self._stub.DropConnections()
            raise
        return self._content

    def __exit__(self, *_: object) -> None:
        """Log out. The server does so itself later if it does not answer now."""
        self._ends = max(self._ends, time.monotonic() + LOGOUT)
        try:
            self._content.sessionManager.Logout()
        except Exception as error:  # noqa: BLE001 - the answer is complete, and the session ends by itself
            log.debug("vCenter did not end the session: %s", error)
        finally:
            self._stub.DropConnections()

    def _version(self) -> str:
        """Return the newest version of the API that pyvmomi and the server have."""
        from pyVmomi.VmomiSupport import GetServiceVersions, versionIdMap

        connection = self._connection(self._host, self._port)
        try:
            connection.request("GET", f"{_PATH}/vimServiceVersions.xml")
            answer = connection.getresponse()
            if answer.status != 200:
                raise CloudError(f"it answers HTTP {answer.status} to a request for its versions")
            served = {one.text for one in ElementTree.fromstring(answer.read()).iter("version") if one.text}
        except ElementTree.ParseError as error:
            raise CloudError("its answer is not that of a vCenter") from error
        finally:
            connection.close()
        known = GetServiceVersions("vim25")
        version = next((one for one in known if versionIdMap[one] in served), None)
        if version is None:
            raise CloudError("it has no version of the API that pyvmomi knows")
        return str(version)

    def _connection(self, host: str, port: int) -> _Connection:
        if self._tls is None:
            return _Connection(host, port, left=self._left)
        return _TlsConnection(host, port, left=self._left, context=self._tls)

    def _left(self) -> float:
        """Return the seconds that are left; TimeoutError if there are none."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError("its answers take too long")
        return left


class _Connection(HTTPConnection):
    """A connection whose answers take no longer than what is left of the time."""

    def __init__(self, host: str, port: int, *, left: Callable[[], float], **named: Any) -> None:
        super().__init__(host, port, **named)
        self._time_left = left
        self._asked = ("", "", 0.0)

    def connect(self) -> None:
        # pyvmomi connects before it has a request, and http.client does so with the first one.
        if self._asked[0]:
            super().connect()

    def request(self, method: str, url: str, *arguments: Any, **named: Any) -> None:
        self._asked = method, url, time.monotonic()
        try:
            self.timeout = min(TIMEOUT, self._time_left())
            if self.sock is not None:
                self.sock.settimeout(self.timeout)
            super().request(method, url, *arguments, **named)
        except BaseException:
            self._report(None)
            raise

    def getresponse(self) -> HTTPResponse:
        status = None
        try:
            self.response_class = answers_within(Bounds(self._time_left(), LARGEST))
            response = super().getresponse()
            status = response.status
            return response
        finally:
            self._report(status)

    def _report(self, status: int | None) -> None:
        method, path, began = self._asked
        report(API, method, status, time.monotonic() - began, path)


class _TlsConnection(_Connection, HTTPSConnection):
    """The same with TLS."""


def _tls_of(server: VCenter) -> ssl.SSLContext:
    """Return how to verify the certificate of this server."""
    context = ssl.create_default_context(cafile=server.ca_file)
    if server.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def resolved(secret: Secret) -> str:
    """Return the text with the values of its references; CloudError if one leads nowhere."""
    try:
        return secret.resolved(from_environment, _file)
    except SecretMissing as error:
        raise CloudError(str(error)) from None


def _file(path: str) -> str:
    try:
        return from_file(path, _LONGEST_SECRET).decode().strip()
    except UnicodeDecodeError:
        raise SecretMissing(f"{path} is not UTF-8") from None


def is_expected(error: Exception) -> bool:
    """Whether this is what a server, or a network, does at times."""
    if isinstance(error, CloudError | OSError | HTTPException):
        return True
    from pyVmomi import vmodl

    return isinstance(error, vmodl.MethodFault)
