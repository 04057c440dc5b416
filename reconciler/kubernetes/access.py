"""Chooses the credentials, and reads those that need no plugin, no refresh and no proxy:

a token, a client certificate, a ServiceAccount. The import of the official package takes longer than
everything else that a short process does before its first request. For all other cases, and for mistakes, the
official package loads the same files, or reports what is wrong with them.
"""

from __future__ import annotations

import base64
import os
import ssl
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3
from msgspec import Struct
from urllib3.util.ssl_ import create_urllib3_context

from reconciler.kubernetes.credentials import KEEP_ALIVE, POOL, ApiAccess, Origin
from reconciler.model.errors import Unauthorized
from reconciler.model.values import replace

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_CERTIFICATE, _KEY, _AUTHORITY = "client-certificate", "client-key", "certificate-authority"
_NO_TEXT = {"insecure-skip-tls-verify", "extensions"}
_CLUSTER_KEYS = {"server", _AUTHORITY, f"{_AUTHORITY}-data", "tls-server-name"} | _NO_TEXT
_FILES, _DATA = {_CERTIFICATE, _KEY}, {f"{_CERTIFICATE}-data", f"{_KEY}-data"}
_PROXIES = {"http_proxy", "https_proxy", "all_proxy"}


class _NotPlain(Exception):
    """The official package has to load this."""


class _Token(Struct, frozen=True):
    """A token of the kubeconfig, or a file that holds one and is rotated."""

    text: str | None = None
    file: Path | None = None

    def header(self) -> str | None:
        """Return the Authorization header; Unauthorized if the file cannot be read or is empty."""
        if self.file is None:
            return f"Bearer {self.text}" if self.text else None
        try:
            text = self.file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Unauthorized(f"the pod's ServiceAccount can't be used: {error}") from error
        if not text:
            raise Unauthorized(f"the pod's ServiceAccount can't be used: {self.file} is empty")
        return f"Bearer {text}"


def plain_service_account() -> ApiAccess | None:
    """Return the access that every pod has, None if it is not plain or not complete."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or _may_need_proxy():
        return None
    token, authority = _Token(file=SERVICE_ACCOUNT / "token"), SERVICE_ACCOUNT / "ca.crt"
    try:
        token.header()
        if not authority.stat().st_size:
            return None
    except (OSError, Unauthorized):
        return None
    host = f"[{host}]" if ":" in host or "%" in host else host
    pool = _pool(cert_reqs=ssl.CERT_REQUIRED, ca_certs=str(authority))
    return ApiAccess(f"https://{host}:{port}", pool, token.header, authority)


def plain_kubeconfig(path: str, context: str | None) -> ApiAccess | None:
    """Return the access of a kubeconfig's context (None: the current one), None if it is not plain."""
    if os.pathsep in path or _may_need_proxy():
        return None
    import yaml

    file = Path(path).expanduser()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(file.read_bytes(), loader)
        named = document["current-context"] if context is None else context
        chosen = _named(document, "context", named)
        cluster, user = _chosen(document, chosen)
        insecure = cluster.get("insecure-skip-tls-verify", False)
        origin = Origin(str(path), str(named), str(chosen["cluster"]), insecure=insecure)
        return replace(_access(cluster, user, file.parent), origin=origin)
    except (_NotPlain, OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError):
        return None


def is_plain(path: str) -> bool:
    """Whether the current context of a kubeconfig can be used without a program that signs in."""
    return plain_kubeconfig(path, None) is not None


def _chosen(document: Any, context: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    cluster = _named(document, "cluster", context["cluster"])
    user = _named(document, "user", context["user"])
    texts = [value for key, value in (*cluster.items(), *user.items()) if key not in _NO_TEXT]
    insecure = cluster.get("insecure-skip-tls-verify", False)
    if (
        set(cluster) <= _CLUSTER_KEYS
        and set(user) - {"token"} in (set(), _FILES, _DATA)
        and all(isinstance(text, str) and text for text in texts)
        and isinstance(insecure, bool)
    ):
        return cluster, user
    raise _NotPlain


def _named(document: Any, kind: str, name: object) -> Mapping[str, Any]:
    found = [entry[kind] for entry in document[f"{kind}s"] if entry["name"] == name]
    if len(found) != 1 or not isinstance(found[0], Mapping):
        raise _NotPlain
    return found[0]


def _access(cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> ApiAccess:
    host = cluster["server"].rstrip("/")
    if host.startswith("https://"):
        tls = _tls(cluster, user, folder)
        authority = tls.get("ca_certs")
        pool = _pool(**tls)
    elif host.startswith("http://"):
        authority = None
        pool = _pool()
    else:
        raise _NotPlain
    file = Path(authority) if authority else None
    return ApiAccess(host, pool, _Token(user.get("token")).header, file)


def _tls(cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the pool's arguments for TLS.

    Files are named, not read: they may be renewed, and a new connection reads those that have changed.
    """
    insecure = cluster.get("insecure-skip-tls-verify", False)
    tls: dict[str, Any] = {"cert_reqs": ssl.CERT_NONE if insecure else ssl.CERT_REQUIRED}
    if f"{_AUTHORITY}-data" in cluster:
        tls["ca_cert_data"] = _pem(cluster, _AUTHORITY).decode("ascii")
    elif _AUTHORITY in cluster:
        tls["ca_certs"] = _file(cluster, _AUTHORITY, folder)
    if "tls-server-name" in cluster:
        tls["server_hostname"] = cluster["tls-server-name"]
    if _CERTIFICATE in user:
        tls |= {"cert_file": _file(user, _CERTIFICATE, folder), "key_file": _file(user, _KEY, folder)}
    elif f"{_CERTIFICATE}-data" in user:
        tls["ssl_context"] = context = create_urllib3_context(cert_reqs=tls["cert_reqs"])
        if not tls.keys() & {"ca_cert_data", "ca_certs"}:
            context.load_default_certs()
        certificate, key = _pem(user, _CERTIFICATE), _pem(user, _KEY)
        # OpenSSL reads them from a file only. It is readable by us alone, and removed at once.
        with tempfile.NamedTemporaryFile() as both:
            both.write(certificate + b"\n" + key)
            both.flush()
            context.load_cert_chain(both.name, password=_no_password)
    return tls


def _no_password() -> str:
    # Without this function OpenSSL would ask for the key's password on the terminal.
    raise _NotPlain


def _pem(found: Mapping[str, Any], key: str) -> bytes:
    content = base64.b64decode(found[f"{key}-data"])
    if b"-----BEGIN " not in content:
        # Without an authority, every authority of the system would be trusted.
        raise _NotPlain
    return content


def _file(found: Mapping[str, Any], key: str, folder: Path) -> str:
    path = folder / found[key]
    if not path.is_file():
        raise _NotPlain
    return str(path)


def _pool(**tls: Any) -> urllib3.PoolManager:
    return urllib3.PoolManager(maxsize=POOL, retries=False, socket_options=KEEP_ALIVE, **tls)


def _may_need_proxy() -> bool:
    """Whether the environment names a proxy, or the platform may (macOS and Windows have settings for it)."""
    named = any(name.lower() in _PROXIES and value for name, value in os.environ.items())
    return named or not sys.platform.startswith("linux")


_DEFAULT = "~/.kube/config"


def load_access(kubeconfig: str | None, context: str | None) -> ApiAccess:
    """Return the access by the first of these that exists.

    The explicit path, the files in the environment's KUBECONFIG, the pod's ServiceAccount, ~/.kube/config. A
    named context excludes the ServiceAccount. Raises Unauthorized with what to change.
    """
    path = kubeconfig or os.environ.get("KUBECONFIG") or None
    if kubeconfig and not Path(kubeconfig).expanduser().is_file():
        raise Unauthorized(f"there is no kubeconfig file {kubeconfig}; name one that exists")
    files = (path or "").split(os.pathsep)
    if path and not any(Path(file).expanduser().is_file() for file in files if file):
        raise Unauthorized(f"KUBECONFIG names no file that exists: {path}; name one that exists, or unset it")
    in_cluster = path is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ
    if in_cluster and (SERVICE_ACCOUNT / "token").is_file():
        if (access := plain_service_account()) is not None:
            return access
        from reconciler.kubernetes import official

        return official.service_account()
    if path is None and not Path(_DEFAULT).expanduser().is_file():
        raise Unauthorized(
            "no credentials for a cluster: there is no KUBECONFIG, no ServiceAccount token (is"
            f" automountServiceAccountToken off?) and no {_DEFAULT}; name a kubeconfig file"
        )
    path = path or _DEFAULT
    if (access := plain_kubeconfig(path, context)) is not None:
        return access
    # It takes long to load.
    from reconciler.kubernetes import official

    return official.kubeconfig(path, context)
