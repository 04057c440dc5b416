"""`kubernikus` and `sources.kubernikus`: the controller of Kubernikus, and kubelets of another version."""

from __future__ import annotations

from pydantic import Field

from reconciler.features.kubernikus.original import KUBERNIKUS_YAML
from reconciler.model.grants import Grants
from reconciler.settings.fields import Flag, ObjectName, Section, Text
from reconciler.settings.schema import FeatureSection, Settings, SourceSection

UPDATE_LABEL = "cloud.sap/kubelet-needs-update"
"""The label that says whether the kubelet has another version than the control plane."""


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
        default=None, description="The Secret with the credentials. Default: none; the file has them."
    )


class KubernikusSource(Section):
    """Nodes of Kubernikus whose kubelet has another version than the control plane."""

    enabled: Flag = Field(
        default=False, description="Whether such a node gets an event of the kind `Redeploy`."
    )


class _Controller(FeatureSection[Kubernikus], frozen=True, kw_only=True):
    def grants(self, settings: Settings) -> Grants:
        return Grants(keys={"Labels": (UPDATE_LABEL,)}) if self.of(settings).enabled else Grants()

    def sees(self, settings: Settings) -> bool:
        return self.of(settings).enabled


CONTROLLER = _Controller(
    key="kubernikus",
    type=Kubernikus,
    default=Kubernikus(),
    description="What the Kubernikus controller of maintenance-controller does (docs/esx.md).",
)

SECTION: SourceSection[KubernikusSource] = SourceSection(
    key="kubernikus",
    type=KubernikusSource,
    default=KubernikusSource(),
    description="Kubelets with another version than the control plane. See docs/esx.md#kubernikus.",
)

SECTIONS = (CONTROLLER, SECTION)

ORIGINALS = (KUBERNIKUS_YAML,)
