"""Names from the cluster and from the kubeconfig, for the completion of arguments.

A person waits with a finger on the key, so nothing here takes longer than a second, and nothing is an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from jobs.runtime.environment import Target
from reconciler.kubernetes.connection import CORE, NODES, ApiPath, Connection, Request, core
from reconciler.model.errors import NoThread
from reconciler.model.node import POOL_LABELS
from reconciler.threads import start

LIMIT = 1.0
"""Seconds in which names are read. Those that are read by then are offered."""

LARGEST_KUBECONFIG = 4 << 20
"""Bytes of a kubeconfig that are read."""

_PAGE = "500"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

# A shell would expand or split anything else.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")


class _Position(msgspec.Struct):
    next: str = msgspec.field(default="", name="continue")


class _Row(msgspec.Struct):
    cells: list[Any]


class _Table(msgspec.Struct):
    """A list as `kubectl get` shows it: the name is the first cell, and the objects are left out."""

    metadata: _Position
    rows: list[_Row] = []


class _Labels(msgspec.Struct):
    labels: dict[str, str] = {}


class _Item(msgspec.Struct):
    metadata: _Labels


class _Metadata(msgspec.Struct):
    metadata: _Position
    items: list[_Item] = []


def node_names(target: Target) -> list[str]:
    """Return the names of the nodes."""
    return _read(target, lambda connection: _names(connection, NODES))


def pod_names(target: Target, namespace: str) -> list[str]:
    """Return the names of the pods in a namespace."""
    return _read(target, lambda connection: _names(connection, core(namespace) / "pods"))


def namespace_names(target: Target) -> list[str]:
    """Return the names of the namespaces."""
    return _read(target, lambda connection: _names(connection, CORE / "namespaces"))


def pool_names(target: Target) -> list[str]:
    """Return the names of the node pools, by the labels of their nodes."""
    return _read(target, _pools)


def context_names(target: Target) -> list[str]:
    """Return the names of the contexts in the kubeconfig of the target, or in those that kubectl uses."""
    import yaml

    paths = target.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    found: list[str] = []
    for path in filter(None, paths.split(os.pathsep)):
        try:
            with Path(path).expanduser().open("rb") as file:
                loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
                document = yaml.load(file.read(LARGEST_KUBECONFIG), loader)
            found += [str(one["name"]) for one in document["contexts"]]
        except (OSError, ValueError, TypeError, KeyError, RecursionError, yaml.YAMLError):
            continue
    return list(filter(_PLAIN.fullmatch, found))


def _read(target: Target, names: Callable[[Connection], Iterator[str]]) -> list[str]:
    """Return the names that are read in time; none if the cluster does not answer, or refuses."""
    found: list[str] = []

    def work() -> None:
        try:
            connection = Connection(target.kubeconfig, target.context)
            found.extend(filter(_PLAIN.fullmatch, names(connection)))
        except Exception:  # noqa: BLE001 - an error would stand in the line that the person types
            return

    with suppress(NoThread):
        start("names", work).join(LIMIT)
    return list(found)


def _names(connection: Connection, path: ApiPath) -> Iterator[str]:
    position = ""
    while True:
        content = _page(connection, path, _TABLE, {"includeObject": "None"}, position)
        table = msgspec.json.decode(content, type=_Table)
        yield from (str(row.cells[0]) for row in table.rows)
        if not (position := table.metadata.next):
            return


def _pools(connection: Connection) -> Iterator[str]:
    position = ""
    while True:
        found = msgspec.json.decode(_page(connection, NODES, _METADATA, {}, position), type=_Metadata)
        for item in found.items:
            labels = item.metadata.labels
            yield from [labels[label] for label in POOL_LABELS if labels.get(label)][:1]
        if not (position := found.metadata.next):
            return


def _page(connection: Connection, path: ApiPath, accept: str, query: dict[str, str], position: str) -> bytes:
    query = {**query, "limit": _PAGE, **({"continue": position} if position else {})}
    return connection.send(
        Request("GET", path, query, accept=accept, connect_timeout=LIMIT, read_timeout=LIMIT, total=LIMIT)
    )
