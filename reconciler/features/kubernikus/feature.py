"""Kubernikus: a label for kubelets of another version, and the deletion of servers in OpenStack."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.features.kubernikus.process import OPENSTACK
from reconciler.features.kubernikus.settings import CONTROLLER, UPDATE_LABEL
from reconciler.model.machine import MachineRef
from reconciler.model.node import TYPE_LABEL, Node
from reconciler.passes.plugin import Feature, Fleet, LabelsOf, Wants
from reconciler.settings.schema import Settings

DELETE_LABEL = "cloud.sap/delete-node"
"""The label of a node whose server is to be deleted."""

POOL_LABEL = "ccloud.sap.com/nodepool"
"""The label with which Kubernikus names the pool of a node."""

_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-+.][0-9A-Za-z.+~_-]*)?", re.ASCII)

Numbers = tuple[int, int, int]


def numbers_of(text: str) -> Numbers | None:
    """Return major, minor and patch version of a text like `v1.33.2-gke.1`; None if it can't be read."""
    found = _VERSION.fullmatch(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _reads(settings: Settings) -> Wants:
    """Return the labels, also while it is off; and the version of the API server while it is on."""
    return Wants(labels=frozenset({UPDATE_LABEL, DELETE_LABEL}), server=CONTROLLER.of(settings).enabled)


def _machine_of(node: Node, settings: Settings) -> MachineRef | None:
    """Return the server of a node, which has the node's name; None for a node of another cloud."""
    elsewhere = node.provider_id and not node.provider_id.startswith("openstack:")
    if elsewhere or not CONTROLLER.of(settings).enabled or node.labels.get(TYPE_LABEL) == "virtual-kubelet":
        return None
    pool = node.labels.get(POOL_LABEL, "")
    return MachineRef(node.name, node.uid, OPENSTACK, node.name, pool=pool, provider_id=node.provider_id)


def _labels(fleet: Fleet) -> LabelsOf | None:
    """Return what says whether a kubelet needs an update; None where the server's version is not known."""
    wanted = numbers_of(fleet.snapshot.for_settings.server.text)
    if not CONTROLLER.of(fleet.settings).enabled or wanted is None:
        return None

    def labels(node: Node) -> Mapping[str, str]:
        """Return the label. Where the version of the kubelet can't be read, it stays as it is."""
        have = numbers_of(node.kubelet_version)
        if have is None or node.labels.get(TYPE_LABEL) == "virtual-kubelet":
            return {}
        return {UPDATE_LABEL: "true" if have != wanted else "false"}

    return labels


FEATURE = Feature("kubernikus", reads=_reads, machine_of=_machine_of, labels=_labels)
