"""The values of the chart: their names, types, defaults and descriptions."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, create_model

from charts.generator.folders import modules, permissions
from charts.generator.part import MONITORING_NAMESPACES, Objects, Part
from release.version import ROOT

_NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
_OF_THE_CHART: dict[str, Any] = {
    "patternProperties": {r"^(app\.kubernetes\.io/.*|helm\.sh/chart|pod-template-hash)$": {"not": {}}}
}
"""Labels by which the chart's own objects find each other can't be given by a value."""


class Image(Part):
    """The image, which you build and push yourself, see docs/install.md."""

    repository: str = Field(
        default="node-maintenance-reconciler", min_length=1, description="The image, without tag and digest."
    )
    tag: str = Field(default="", description="The tag. Default: the version of the program (`appVersion`).")
    digest: str = Field(
        default="",
        pattern=r"^(sha256:[0-9a-f]{64})?$",
        description="The digest, which is used instead of the tag.",
    )
    pull_policy: Literal["", "Always", "IfNotPresent", "Never"] = Field(
        default="", description="When nodes pull the image. Default: as Kubernetes decides by the tag."
    )


class ServiceAccount(Part):
    """The ServiceAccount of the reconciler. Its permissions and the admission policies follow its name."""

    create: bool = Field(default=True, description="Whether the chart makes the ServiceAccount.")
    name: str = Field(
        default="reconciler",
        pattern=_NAME,
        # The accounts of the report and of `helm test`, which may only read.
        json_schema_extra={"not": {"enum": ["report", "test"]}},
        description="The name of the ServiceAccount.",
    )
    annotations: dict[str, str] = Field(
        default={}, description="Annotations of the ServiceAccount, for example `eks.amazonaws.com/role-arn`."
    )


class Azure(Part):
    """The identity of the reconciler in Azure, see docs/azure.md."""

    workload_identity: bool = Field(
        default=False, description="Whether the webhook of AKS gives the Pods a token (workload identity)."
    )
    client_id: str = Field(default="", description="The client ID of the managed identity.")


PRIORITY_CLASS = "node-maintenance-reconciler"
RESOURCES: dict[str, Any] = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}}


class Service(Part):
    """A Service for the page and the metrics of the Deployment, see docs/page.md."""

    enabled: bool = Field(default=False, description="Whether the Service is installed.")
    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        default="ClusterIP",
        description="The type. The page has no login: with another type, whoever reaches it may read it.",
    )
    port: int = Field(default=8080, ge=1, le=65535, description="The port of the Service.")
    annotations: dict[str, str] = Field(default={}, description="Annotations of the Service.")


class _OfReport(Part):
    report: bool = Field(
        default=False,
        description="A ClusterRole for people who run `reconciler report`. Bind it to a group yourself.",
    )


_PERMISSIONS: dict[str, Any] = {
    folder: (bool, Field(default=False, description=text))
    for folder, text in permissions(ROOT / "k8s").items()
}
Permissions = create_model(
    "Permissions",
    __base__=_OfReport,
    __doc__="Permissions that only some settings need, see docs/install.md.",
    **_PERMISSIONS,
)
"""The values of the folders of permissions, and that of the report's."""


class ReportWebhook(Part):
    """An address to which the report is also sent, by POST. It is in a Secret, because it may be one."""

    secret_name: str = Field(
        default="", description="The Secret with the URL, in the namespace of the release. Empty: none."
    )
    secret_key: str = Field(default="url", min_length=1, description="The key of the URL in the Secret.")


class Report(Part):
    """The report as a CronJob, beside the reconciler: what a pass would do. It acts on no node."""

    enabled: bool = Field(default=False, description="Whether the CronJob is installed.")
    schedule: str = Field(
        default="0 6 * * *",
        min_length=9,
        description="When it runs, as a cron expression in the time zone of the controller manager.",
    )
    args: list[str] = Field(
        default=[], description="More options of `reconciler report`, for example `--output=markdown`."
    )
    config_map: bool = Field(
        default=False,
        description="Whether the last report is also in the ConfigMap `node-maintenance-report`.",
    )
    webhook: ReportWebhook = Field(default=ReportWebhook(), description=str(ReportWebhook.__doc__))


class AdmissionPolicies(Part):
    """The ValidatingAdmissionPolicies of the reconciler. The agent is never installed without its own."""

    enabled: bool = Field(default=True, description="Whether the policies are installed.")
    trigger_labels: list[str] = Field(
        default=[], description="Keys of labels that the triggers of your profiles change on nodes."
    )
    trigger_annotations: list[str] = Field(
        default=[], description="Keys of annotations that the triggers change on nodes."
    )
    trigger_taints: list[str] = Field(
        default=[], description="Keys of taints that the triggers change on nodes."
    )
    trigger_finalizers: list[str] = Field(
        default=[], description="Keys of finalizers that the triggers change on nodes."
    )


class NetworkPolicies(Part):
    """The NetworkPolicies of all Pods."""

    enabled: bool = Field(default=True, description="Whether the NetworkPolicies are installed.")
    egress_ports: list[int] = Field(
        default=[],
        description="More TCP ports to which the reconciler may connect, for example 587 for mail.",
    )
    monitoring_namespaces: list[str] = Field(
        default=MONITORING_NAMESPACES,
        min_length=1,
        description="The namespaces whose Pods may read the metrics of the Deployment and of the agent.",
    )
    monitoring_by_label: bool = Field(
        default=False,
        description='Whether namespaces with the label `node-maintenance.dev/metrics: "true"` may, too. '
        "Whoever may label namespaces can then read the metrics.",
    )


class FlowControl(Part):
    """FlowSchemas: the priority of the reconciler where the API server is busy."""

    enabled: bool = Field(
        default=False,
        description="Whether its lock, evictions and patches of nodes go before other workloads.",
    )


class CoreValues(Part):
    """The values of the chart that are there with and without plugins."""

    run_as: Literal["Deployment", "CronJob"] = Field(
        default="Deployment",
        description="How the reconciler runs. A Deployment acts within seconds. A CronJob starts one pass "
        "per minute, which does not protect spot nodes, see docs/cronjob.md.",
    )
    replicas: int = Field(
        default=2, ge=1, description="Pods of the Deployment. One acts, the others stand by."
    )
    settings: dict[str, Any] = Field(
        default={},
        description="The settings of the reconciler, see docs/settings.md. They report only, by default.",
    )
    settings_file: str = Field(
        default="",
        description="The settings as text, instead of `settings`: `--set-file "
        "settingsFile=maintenance.yaml`. Helm does not check them, `reconciler check-config` does.",
    )
    image: Image = Field(default=Image(), description=str(Image.__doc__))
    image_pull_secrets: Objects = Field(
        default=[], description="Secrets for the registry: `[{name: NAME}]`, in the namespaces of the Pods."
    )
    log_level: Literal["info", "warning", "error"] = Field(
        default="info",
        description="The lowest level of the lines in the logs of the Deployment and of the agent.",
    )
    common_labels: dict[str, str] = Field(
        default={}, json_schema_extra=_OF_THE_CHART, description="More labels of all objects and of all Pods."
    )
    pod_labels: dict[str, str] = Field(
        default={}, json_schema_extra=_OF_THE_CHART, description="More labels of the reconciler's Pods."
    )
    pod_annotations: dict[str, str] = Field(default={}, description="Annotations of the reconciler's Pods.")
    resources: dict[str, Any] = Field(
        default=RESOURCES, description="Requests and limits of each container, but for those of the agent."
    )
    node_selector: dict[str, str] = Field(
        default={},
        description="Labels that the nodes of all Pods but the agent's must have, in addition to "
        "`kubernetes.io/os: linux`.",
    )
    tolerations: Objects = Field(
        default=[],
        description="Tolerations of all Pods but the agent's, in addition to the one for system pools of "
        "AKS.",
    )
    affinity: dict[str, Any] = Field(
        default={},
        description="The affinity of all Pods but the agent's. Default: the Pods of the Deployment prefer "
        "different nodes.",
    )
    topology_spread_constraints: Objects = Field(
        default=[],
        description="How the Pods of the Deployment are spread. Default: over the zones, if possible.",
    )
    priority_class_name: str = Field(
        default=PRIORITY_CLASS,
        description="The PriorityClass of the reconciler's Pods. The chart makes the default one.",
    )
    extra_args: list[str] = Field(
        default=[],
        description="More options of `reconciler serve` (Deployment) or `reconciler sweep` (CronJob).",
    )
    extra_env: Objects = Field(
        default=[],
        description="More environment variables of the reconciler, for example `HTTPS_PROXY` or secrets of "
        "`notify`.",
    )
    extra_volumes: Objects = Field(
        default=[], description="More volumes, for example with secrets of `notify`."
    )
    extra_volume_mounts: Objects = Field(default=[], description="More volume mounts of the container.")
    service: Service = Field(default=Service(), description=str(Service.__doc__))
    service_account: ServiceAccount = Field(default=ServiceAccount(), description=str(ServiceAccount.__doc__))
    azure: Azure = Field(default=Azure(), description=str(Azure.__doc__))
    permissions: Permissions = Field(  # type: ignore[valid-type]
        default=Permissions(), description=str(Permissions.__doc__)
    )
    report: Report = Field(default=Report(), description=str(Report.__doc__))
    admission_policies: AdmissionPolicies = Field(
        default=AdmissionPolicies(), description=str(AdmissionPolicies.__doc__)
    )
    network_policies: NetworkPolicies = Field(
        default=NetworkPolicies(), description=str(NetworkPolicies.__doc__)
    )
    flow_control: FlowControl = Field(default=FlowControl(), description=str(FlowControl.__doc__))
    global_: dict[str, Any] = Field(
        default={}, alias="global", description="Not used. A chart that has this one as a part may set it."
    )


_GROUPS: dict[str, Any] = {
    name: (module.VALUES, Field(default=module.VALUES(), description=str(module.VALUES.__doc__)))
    for name, module in modules().items()
}
Values = create_model("Values", __base__=CoreValues, __doc__="All values of the chart.", **_GROUPS)
"""All values of the chart: those of folders with a module come last."""
