"""Chooses the credentials, and what reads them."""

from __future__ import annotations

import os
from pathlib import Path

from reconciler.kubernetes import plain_access
from reconciler.kubernetes.credentials import ApiAccess
from reconciler.model.errors import Unauthorized

_DEFAULT = "~/.kube/config"


def load_access(kubeconfig: str | None, context: str | None) -> ApiAccess:
    """Return the access by the first of these that exists.

    The explicit path, the files in the environment's KUBECONFIG, the pod's ServiceAccount, ~/.kube/config. A
    named context excludes the ServiceAccount. Raises Unauthorized with what to change.
    """
    path = kubeconfig or os.environ.get("KUBECONFIG") or None
    if kubeconfig and not Path(kubeconfig).expanduser().is_file():
        raise Unauthorized(f"there is no kubeconfig file {kubeconfig}; name one that exists")
    in_cluster = path is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ
    if in_cluster and (plain_access.SERVICE_ACCOUNT / "token").is_file():
        return plain_access.service_account() or _official_service_account()
    if path is None and not Path(_DEFAULT).expanduser().is_file():
        raise Unauthorized(
            "no credentials for a cluster: there is no KUBECONFIG, no ServiceAccount token (is"
            f" automountServiceAccountToken off?) and no {_DEFAULT}; name a kubeconfig file"
        )
    path = path or _DEFAULT
    return plain_access.kubeconfig(path, context) or _official_kubeconfig(path, context)


def _official_service_account() -> ApiAccess:
    from reconciler.kubernetes import official

    return official.service_account()


def _official_kubeconfig(paths: str, context: str | None) -> ApiAccess:
    from reconciler.kubernetes import official

    return official.kubeconfig(paths, context)
