"""Access by the official `kubernetes` package, of which only the configuration and the transport are used.

Importing it runs its whole `__init__` (dynamic client, informers, websockets), so access.py comes
first. This file serves every other form of credentials: credential plugins, auth providers, passwords,
several kubeconfig files, proxies.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from reconciler.kubernetes.credentials import KEEP_ALIVE, POOL, ApiAccess, Origin
from reconciler.model.errors import Unauthorized
from reconciler.model.values import replace


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
            contents = _contents(paths)
            origin = _origin(paths, contents.values(), context)
            files = os.pathsep.join(contents)
            load_kube_config(files, origin.context, configuration, persist_config=True)  # type: ignore[no-untyped-call]
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
        because = logged[-1]
        if missing := re.search(r"No such file or directory: '([^']+)'", because):
            install = _INSTALLS.get(Path(missing[1]).name, "")
            because = f"its credential plugin {missing[1]} is not installed"
            because += f"; install it: {install}" if install else ""
        raise Unauthorized(f"{origin} gives no credentials: {because}")
    return replace(_access(configuration), origin=origin)


def _origin(paths: str, contents: Iterable[Mapping[str, Any]], context: str | None) -> Origin:
    """Return which context of the files is used; Unauthorized with what to change if there is none.

    Of two entries of one name the first counts, and so does the first current context, as in kubectl. The
    package merges the files too, but takes the current context of the last one: so its name is given to it.
    """
    named = context or ""
    contexts: dict[str, Mapping[str, Any]] = {}
    clusters: dict[str, Mapping[str, Any]] = {}
    for content in contents:
        named = named or str(content.get("current-context") or "")
        for entries, kind in ((contexts, "context"), (clusters, "cluster")):
            for entry in content.get(f"{kind}s") or ():
                entries.setdefault(str(entry["name"]), entry[kind])
    if not contexts:
        raise Unauthorized(f"{paths} names no cluster: it has no contexts; --kubeconfig names another")
    known = f"it has {', '.join(sorted(contexts))}"
    if not named:
        raise Unauthorized(f"{paths} names no current context; give --context: {known}")
    if named not in contexts:
        raise Unauthorized(f"{paths} has no context {named}; {known}")
    cluster = str(contexts[named]["cluster"])
    insecure = bool(clusters.get(cluster, {}).get("insecure-skip-tls-verify", False))
    return Origin(paths, named, cluster, insecure=insecure)


def _contents(paths: str) -> dict[str, Mapping[str, Any]]:
    """Return what the files have; Unauthorized with the first mistake.

    An empty file is left out, as by kubectl. The package refuses it, and ends at other mistakes with an error
    that does not say what to correct.
    """
    contents: dict[str, Mapping[str, Any]] = {}
    for path in filter(None, paths.split(os.pathsep)):
        file = Path(path).expanduser()
        if not file.is_file():
            continue
        try:
            content = yaml.safe_load(file.read_bytes())
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise Unauthorized(f"{path} is no kubeconfig: {error}") from error
        if content is None:
            continue
        if not isinstance(content, dict):
            raise Unauthorized(
                f"{path} is no kubeconfig: it is not a mapping with clusters, contexts and users"
            )
        for key in ("contexts", "clusters", "users"):
            for entry in content.get(key) or ():
                # A user without credentials may have no content.
                needs = {"name"} if key == "users" else {key[:-1], "name"}
                had = {part for part, value in entry.items() if value} if isinstance(entry, dict) else set()
                if needs - had:
                    raise Unauthorized(
                        f"{path} is no kubeconfig: an entry of {key} has no {min(needs - had)}"
                    )
                if key != "users" and not isinstance(entry[key[:-1]], dict):
                    raise Unauthorized(f"{path} is no kubeconfig: {key[:-1]} in {key} is not a mapping")
        contents[path] = content
    return contents


_INSTALLS = {
    "kubelogin": "az aks install-cli",
    "aws": "the AWS CLI",
    "gke-gcloud-auth-plugin": "gcloud components install gke-gcloud-auth-plugin",
}
"""What brings the credential plugins of large clouds."""


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
