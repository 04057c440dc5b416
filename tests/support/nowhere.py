"""A connection to no API server, for code that is given one and must not use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.kubernetes.connection import Connection

_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: nobody, user: {}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
"""


@contextmanager
def connection_to_nowhere(folder: Path) -> Iterator[Connection]:
    """Make the connection; its kubeconfig is written to the folder."""
    config = folder / "kubeconfig"
    config.write_text(_KUBECONFIG, encoding="utf-8")
    made = Connection(str(config))
    try:
        yield made
    finally:
        made.close()
