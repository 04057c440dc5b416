"""The official `kubernetes` package, of which only the configuration and the transport are used.

Its `__init__` imports everything that it has (dynamic client, informers, leader election, websockets), a
third of its start-up time and memory. A pass is a short process, so the two packages on the way are put in
place unexecuted and only the modules that do the work are imported: measured on 37.0.1, 107 ms instead of
160 ms with a kubeconfig, 60 ms inside a cluster.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import urllib3

from reconciler.errors import Unauthorized

POOL = 64
"""Connections that are kept: parallel evictions, and one more for every drain's watch."""

_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_DEFAULT = "~/.kube/config"


def load_configuration(kubeconfig: str | None, context: str | None) -> Any:
    """Return the package's Configuration for the first that exists.

    The explicit path, the files in the environment's KUBECONFIG, the pod's ServiceAccount, ~/.kube/config;
    a context by name rules the ServiceAccount out. Raises Unauthorized with what to change.
    """
    path = kubeconfig or os.environ.get("KUBECONFIG") or None
    if kubeconfig and not Path(kubeconfig).expanduser().is_file():
        raise Unauthorized(f"there is no kubeconfig file {kubeconfig}; name one that exists")
    in_cluster = path is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ
    if in_cluster and _TOKEN.is_file():
        return _in_cluster()
    if path is None and not Path(_DEFAULT).expanduser().is_file():
        raise Unauthorized(
            "no credentials for a cluster: there is no KUBECONFIG, no ServiceAccount token (is"
            f" automountServiceAccountToken off?) and no {_DEFAULT}; name a kubeconfig file"
        )
    return _from_file(path or _DEFAULT, context)


def transport(configuration: Any) -> urllib3.PoolManager:
    """Return the package's connection pool: its TLS, proxy and NO_PROXY rules, and no retries."""
    rest = _module("kubernetes.client.rest")
    pool: urllib3.PoolManager = rest.RESTClientObject(configuration).pool_manager
    return pool


def authorization(configuration: Any) -> str | None:
    """Return the header's value, refreshed by the package's own hook where it is due."""
    with _complaints() as complaints:
        header: str | None = configuration.get_api_key_with_prefix("BearerToken")
    if complaints:
        # The package keeps the old token then and says so in a log only; it may have run out.
        raise Unauthorized(f"the credentials can't be refreshed: {complaints[-1]}")
    return header


def _in_cluster() -> Any:
    configuration = _configuration()
    _bare("kubernetes.config")
    try:
        _module("kubernetes.config.incluster_config").load_incluster_config(configuration)
    except Exception as error:
        if not _is_config_error(error) and not isinstance(error, OSError):
            raise
        raise Unauthorized(f"the pod's ServiceAccount can't be used: {error}") from error
    return configuration


def _from_file(path: str, context: str | None) -> Any:
    configuration = _configuration()
    _bare("kubernetes.config")
    yaml = importlib.import_module("yaml")
    with _complaints() as complaints:
        try:
            with _oauth_left_out() if not _has_auth_provider(path) else nullcontext():
                kube_config = _module("kubernetes.config.kube_config")
            kube_config.load_kube_config(path, context, configuration, persist_config=True)
        except Exception as error:
            if not _is_config_error(error) and not isinstance(
                error, (OSError, ValueError, TypeError, AttributeError, KeyError, yaml.YAMLError)
            ):
                raise
            raise Unauthorized(f"the kubeconfig {path} can't be used: {error}") from error
    if complaints and "BearerToken" not in configuration.api_key:
        # A credential plugin that fails is only logged by the package, which then goes on as nobody.
        raise Unauthorized(f"the kubeconfig {path} gives no credentials: {complaints[-1]}")
    return configuration


def _configuration() -> Any:
    _bare("kubernetes")
    configuration = _module("kubernetes.client.configuration").Configuration()
    configuration.retries = False
    configuration.connection_pool_maxsize = POOL
    # A watch whose server has vanished without a word would otherwise be noticed by its timeout alone.
    configuration.keep_alive = True
    return configuration


def _is_config_error(error: Exception) -> bool:
    return isinstance(error, _module("kubernetes.config.config_exception").ConfigException)


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _bare(package: str) -> None:
    """Put a package in place without running its `__init__`, unless it is there already."""
    if package in sys.modules:
        return
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"{package} is not installed", name=package)
    sys.modules[package] = importlib.util.module_from_spec(spec)


def _has_auth_provider(paths: str) -> bool:
    """Whether a user of these files signs in by `auth-provider`, which needs an OAuth client."""
    for path in paths.split(os.pathsep):
        with suppress(OSError):
            if b"auth-provider" in Path(path).expanduser().read_bytes():
                return True
    return False


@contextmanager
def _oauth_left_out() -> Iterator[None]:
    """While kube_config is imported, spare it the OAuth client that only `auth-provider` uses: 60 ms."""
    stand_ins = {name: ModuleType(name) for name in ("oauthlib", "oauthlib.oauth2", "requests_oauthlib")}
    missing = {name: module for name, module in stand_ins.items() if name not in sys.modules}
    stand_ins["oauthlib"].__dict__["oauth2"] = stand_ins["oauthlib.oauth2"]
    stand_ins["requests_oauthlib"].__dict__["OAuth2Session"] = None
    sys.modules.update(missing)
    try:
        yield
    finally:
        for name in missing:
            del sys.modules[name]


class _Complaints(logging.Handler):
    """Keeps what this thread logs at ERROR on the root logger, as the package does."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == "root" and record.thread == self._thread:
            self.said.append(record.getMessage())


@contextmanager
def _complaints() -> Iterator[list[str]]:
    handler = _Complaints()
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield handler.said
    finally:
        root.removeHandler(handler)
