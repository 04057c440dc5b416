"""Kubernikus: a label for kubelets of another version, and the deletion of servers in OpenStack."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from jobs.runtime.process import Ports, Process
from reconciler.features.kubernikus.original import KUBERNIKUS_YAML
from reconciler.model.machine import MachineRef
from reconciler.model.node import TYPE_LABEL, Node
from reconciler.passes.plugin import Feature, Fleet, Wants
from reconciler.settings.fields import Flag, ObjectName, Section, Text
from reconciler.settings.schema import FeatureSection, Settings, SourceSection

if TYPE_CHECKING:
    from jobs.runtime.machines import MachineClient, Makers

OPENSTACK = "OpenStack"
"""The name of the machine provider."""

UPDATE_LABEL = "cloud.sap/kubelet-needs-update"
"""The label that says whether the kubelet has another version than the control plane."""

DELETE_LABEL = "cloud.sap/delete-node"
"""The label of a node whose server is to be deleted."""

POOL_LABEL = "ccloud.sap.com/nodepool"
"""The label with which Kubernikus names the pool of a node."""

_VERSION = re.compile(r"v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-+.][0-9A-Za-z.+~_-]*)?", re.ASCII)

Numbers = tuple[int, int, int]


class CloudProviderSecret(Section):
    """A Secret whose key `cloudprovider.conf` has the credentials."""

    name: ObjectName = Field(description="Its name.")
    namespace: ObjectName = Field(description="Its namespace.")


class Kubernikus(Section):
    """The Kubernikus controller of maintenance-controller."""

    enabled: Flag = Field(
        default=False,
        description="Whether nodes get the label `cloud.sap/kubelet-needs-update`, and a node with "
        '`cloud.sap/delete-node: "true"` is drained and its server deleted. Needs the extra `openstack`.',
    )
    credentials_file: Text = Field(
        default="provider/cloudprovider.conf",
        description="The file with the credentials, relative to the working directory.",
    )
    cloud_provider_secret: CloudProviderSecret | None = Field(
        default=None,
        description="The Secret with the credentials. Default: none; the file has them.",
    )


class KubernikusSource(Section):
    """Nodes of Kubernikus whose kubelet has another version than the control plane."""

    enabled: Flag = Field(
        default=False,
        description="Whether such a node gets an event of the kind `Redeploy`.",
    )


def _written(settings: Settings) -> Iterable[str]:
    return (UPDATE_LABEL,) if CONTROLLER.of(settings).enabled else ()


CONTROLLER: FeatureSection[Kubernikus] = FeatureSection(
    key="kubernikus",
    type=Kubernikus,
    default=Kubernikus(),
    description="What the Kubernikus controller of maintenance-controller does (docs/esx.md).",
    labels=_written,
    sees=lambda settings: CONTROLLER.of(settings).enabled,
)

SECTION: SourceSection[KubernikusSource] = SourceSection(
    key="kubernikus",
    type=KubernikusSource,
    default=KubernikusSource(),
    description="Kubelets with another version than the control plane. See docs/esx.md#kubernikus.",
)

SECTIONS = (CONTROLLER, SECTION)

ORIGINALS = (KUBERNIKUS_YAML,)


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


def _labels(node: Node, fleet: Fleet) -> Mapping[str, str]:
    """Return whether the kubelet needs an update. Where a version can't be read, the label stays as it is."""
    version = fleet.snapshot.for_settings.server.text
    wanted, have = numbers_of(version), numbers_of(node.kubelet_version)
    if not CONTROLLER.of(fleet.settings).enabled or wanted is None or have is None:
        return {}
    if node.labels.get(TYPE_LABEL) == "virtual-kubelet":
        return {}
    return {UPDATE_LABEL: "true" if have != wanted else "false"}


FEATURE = Feature("kubernikus", reads=_reads, machine_of=_machine_of, labels=_labels)


def _machines(given: Ports) -> Callable[[Settings], Makers]:
    return lambda settings: {OPENSTACK: partial(_client, given, CONTROLLER.of(settings))}


def _client(given: Ports, section: Kubernikus) -> MachineClient:
    from reconciler.features.kubernikus.client import at_place
    from reconciler.kubernetes.cloud_provider import Place

    secret = section.cloud_provider_secret
    named = (secret.namespace, secret.name) if secret is not None else ()
    return at_place(Place(section.credentials_file, *named), given.connection, given.guard)


PROCESS = Process(machines=_machines)
