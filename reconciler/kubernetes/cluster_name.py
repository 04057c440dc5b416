"""What the cluster is called: by the settings, else by the kubeconfig, else by its nodes."""

from __future__ import annotations

import logging
import re
import time

from reconciler.kubernetes.connection import NODES, Connection, Request
from reconciler.kubernetes.objects import OnlyMetadata
from reconciler.kubernetes.wire.lists import ONLY_METADATA
from reconciler.kubernetes.wire.shapes import ObjectMeta, Page, decode
from reconciler.model import limits
from reconciler.model.errors import ClusterError

log = logging.getLogger(__name__)

AGAIN = 60.0
"""Seconds until nodes are asked again that did not answer or did not say it."""

PATIENCE = 1.0
"""Seconds for the request: a pass waits for it."""

_NODES = "20"
"""Nodes that are asked: virtual ones have no labels of their cloud."""

_AKS_LABEL = "kubernetes.azure.com/cluster"
_EKS_LABEL = "alpha.eksctl.io/cluster-name"
_CLUSTER_API_ANNOTATION = "cluster.x-k8s.io/cluster-name"

_AKS_GROUP = re.compile(r"mc_[^_]+_([^_]+)_[^_]+", re.IGNORECASE)
"""The resource group that AKS makes for nodes, of group, cluster and region, if none of them has a `_`."""


def name_cluster(connection: Connection, configured: str) -> None:
    """Let the connection know the name of its cluster; `configured` is that of the settings, empty for none.

    Only a cluster that neither the settings nor the kubeconfig name is asked, as in a Pod, and at most once a
    minute until its nodes say it. It raises nothing.
    """
    connection.name.configured = configured
    name = connection.name
    if configured or connection.origin.cluster or name.of_nodes or time.monotonic() < name.asks_again:
        return
    name.asks_again = time.monotonic() + AGAIN
    request = Request(
        "GET",
        NODES,
        {"limit": _NODES},
        accept=ONLY_METADATA,
        connect_timeout=PATIENCE,
        read_timeout=PATIENCE,
        total=PATIENCE,
    )
    try:
        nodes = decode(Page[OnlyMetadata], connection.send(request)).items or ()
    except ClusterError as error:
        log.info("the name of the cluster is not known: error=%s", error)
        return
    name.of_nodes = next(filter(None, (_name(node.metadata) for node in nodes)), "")


def _name(node: ObjectMeta) -> str:
    labels, annotations = node.labels or {}, node.annotations or {}
    group = labels.get(_AKS_LABEL, "")
    aks = _AKS_GROUP.fullmatch(group)
    name = aks[1] if aks is not None else group
    return limits.text(
        name or labels.get(_EKS_LABEL, "") or annotations.get(_CLUSTER_API_ANNOTATION, ""), limits.NAME
    )
