"""Access by the official `kubernetes` package, of which only the configuration and the transport are used.

Importing it runs its whole `__init__` (dynamic client, informers, websockets), so access.py comes
first. This file serves every other form of credentials: credential plugins, auth providers, passwords,
several kubeconfig files, proxies.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from reconciler.kubernetes.credentials import KEEP_ALIVE, POOL, ApiAccess
from reconciler.model.errors import Unauthorized


def service_account() -> ApiAccess:
    """Return the access that every pod has; Unauthorized if a part of it is missing."""
    configuration = _configuration()
    try:
        load_incluster_config(configuration)  # type: ignore[no-untyped-call]  # the package has no types there
    except (ConfigException, OSError) as error:
        raise Unauthorized(f"the pod's ServiceAccount can't be used: {error}") from error
    return _access(configuration)


def kubeconfig(paths: str, context: str | None) -> ApiAccess:
    """Return the access of a context (None: the current one) of one or several kubeconfig files.

    Raises Unauthorized with what is wrong with the files, their certificates or their credential plugin.
    """
    configuration = _configuration()
    with _logged_errors() as logged:
        try:
            load_kube_config(paths, context, configuration, persist_config=True)  # type: ignore[no-untyped-call]
        except (
            ConfigException,
            OSError,
            ValueError,
            TypeError,
            AttributeError,
            KeyError,
            yaml.YAMLError,
        ) as error:
            raise Unauthorized(f"the kubeconfig {paths} can't be used: {error}") from error
    if logged and "BearerToken" not in configuration.api_key:
        # If a credential plugin fails, the package only logs it and goes on without an identity.
        raise Unauthorized(f"the kubeconfig {paths} gives no credentials: {logged[-1]}")
    return _access(configuration)


def authorization(configuration: Configuration) -> str | None:
    """Return the Authorization header, refreshed by the package if it is due; Unauthorized if that fails."""
    with _logged_errors() as logged:
        header: str | None = configuration.get_api_key_with_prefix("BearerToken")
    if logged:
        # The package then keeps the old token, which may have expired, and only logs it.
        raise Unauthorized(f"the credentials can't be refreshed: {logged[-1]}")
    return header


def _access(configuration: Configuration) -> ApiAccess:
    """Return the access with the package's own pool: its rules for TLS, proxies and NO_PROXY."""
    try:
        pool = RESTClientObject(configuration).pool_manager
    except (OSError, ValueError) as error:
        raise Unauthorized(f"the kubeconfig's certificates can't be used: {error}") from error
    # Where the kubeconfig has the authority inside, this is a copy that never changes.
    authority = Path(configuration.ssl_ca_cert) if configuration.ssl_ca_cert else None
    return ApiAccess(configuration.host.rstrip("/"), pool, partial(authorization, configuration), authority)


def _configuration() -> Configuration:
    configuration = Configuration()
    configuration.retries = False
    configuration.connection_pool_maxsize = POOL
    configuration.socket_options = list(KEEP_ALIVE)
    return configuration


class _ErrorsOfThisThread(logging.Handler):
    """Keeps what this thread logs at ERROR on the root logger, as the package does."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == "root" and record.thread == self._thread:
            self.messages.append(record.getMessage())


@contextmanager
def _logged_errors() -> Iterator[list[str]]:
    handler = _ErrorsOfThisThread()
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield handler.messages
    finally:
        root.removeHandler(handler)
