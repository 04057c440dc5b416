"""The chart makes the objects that kustomize makes, and Helm refuses values that are wrong."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.settings.load import parse_settings
from tests.real.manifests.applying import DELETES, K8S
from tests.real.manifests.schemas import keeps_its_schema
from tests.real.tools.values import EVERYTHING
from tests.support.tools.helm import Helm, Refused

Object = dict[str, Any]
OF_HELM = {"helm.sh/chart", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"}
IMAGE = {"repository": "registry.example.com/team/node-maintenance-reconciler", "tag": "1.2.3"}
SETTINGS = (K8S.parent / "docs" / "settings.md").read_text(encoding="utf-8")


FILE = "  # Ours.\nmode: Finish\n\nwindows: []\n"


@dataclass(frozen=True, slots=True)
class Same:
    """The folders of kustomize and the values of the chart that make the same objects.

    `off` names what is not kept by the settings: kustomize leaves out the Roles for it by patches.
    """

    resources: tuple[str, ...]
    values: Object
    off: tuple[str, ...] = ("notices",)
    components: tuple[str, ...] = ()
    patches: tuple[str, ...] = ()
    more: Object = field(default_factory=dict)

    def built(self, folder: Path) -> list[Object]:
        """Return what kustomize builds."""
        shutil.copytree(K8S, folder / "k8s")
        ours = folder / "ours"
        ours.mkdir()
        kustomization: Object = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": [f"../k8s/{one}" for one in self.resources],
            "components": [f"../k8s/{one}" for one in self.components],
            "patches": [
                *({"target": {"name": f"node-maintenance-{one}"}, "patch": DELETES} for one in self.off),
                *({"patch": one} for one in self.patches),
            ],
            **self.more,
        }
        (ours / "kustomization.yaml").write_text(yaml.safe_dump(kustomization), encoding="utf-8")
        (ours / "maintenance.yaml").write_text(yaml.safe_dump(self.values.get("settings")), encoding="utf-8")
        program = shutil.which("kubectl")
        if program is None:
            pytest.skip("no kubectl on the path to build the manifests with")
        done = subprocess.run(
            [program, "kustomize", str(ours)], capture_output=True, encoding="utf-8", check=True, timeout=60
        )
        return list(yaml.safe_load_all(done.stdout))


OURS = {
    "name": "maintenance-policy",
    "namespace": "node-maintenance",
    "behavior": "replace",
    "files": ["maintenance.yaml"],
}
IDENTITY = """\
apiVersion: v1
kind: ServiceAccount
metadata:
  name: reconciler
  namespace: node-maintenance
  annotations: {azure.workload.identity/client-id: CLIENT}
"""
PERMISSIONS = ("escalation", "hooks", "hypervisors", "pods", "replacing", "report", "shuffles")
PAIRS = {
    "a Deployment that reports": Same(("deployment",), {}),
    "a Deployment that acts": Same(
        ("deployment",),
        {
            "settings": {
                "apiVersion": "node-maintenance.dev/v1alpha1",
                "kind": "MaintenancePolicy",
                "mode": "Enforce",
                "timeZone": "Europe/Berlin",
                "windows": [{"name": "nights", "days": ["Mon-Thu"], "start": "22:00", "end": "05:00"}],
                "notAllowed": [{"name": "freeze", "start": "2026-12-18", "end": "2027-01-04"}],
                "budget": {"maxUnavailable": 2},
            }
        },
        more={"configMapGenerator": [OURS]},
    ),
    "a CronJob": Same(("cronjob",), {"runAs": "CronJob"}),
    "a Deployment that keeps nothing": Same(
        ("deployment",),
        {
            "settings": {
                **yaml.safe_load((K8S / "base" / "maintenance.yaml").read_text(encoding="utf-8")),
                "audit": {"keep": "0s"},
                "observed": {"keep": "0s"},
                "pods": {"keep": "0s"},
                "revisions": {"keep": 0},
            }
        },
        off=("history", "notices", "observed", "pods", "settings"),
        more={"configMapGenerator": [OURS]},
    ),
    "with the agent": Same(("deployment", "agent"), {"agent": {"enabled": True}}),
    "with a Service": Same(("deployment", "service"), {"service": {"enabled": True}}),
    "the report beside it": Same(("deployment", "report-job"), {"report": {"enabled": True}}),
    "the report in a ConfigMap": Same(
        ("deployment", "report-configmap"), {"report": {"enabled": True, "configMap": True}}
    ),
    "an image of a registry": Same(
        ("deployment", "agent"),
        {"agent": {"enabled": True}, "image": IMAGE},
        more={
            "images": [
                {
                    "name": "node-maintenance-reconciler",
                    "newName": IMAGE["repository"],
                    "newTag": IMAGE["tag"],
                }
            ]
        },
    ),
    "metrics for labelled namespaces": Same(
        ("deployment", "metrics"), {"networkPolicies": {"monitoringByLabel": True}}
    ),
    "metrics, alerts and the dashboard": Same(
        ("deployment", "monitoring"), {"monitoring": {"podMonitor": True, "rules": True, "dashboard": True}}
    ),
    "priority for what it writes": Same(("deployment", "flow-control"), {"flowControl": {"enabled": True}}),
    "objects that are published": Same(
        ("deployment", "publish", "crd"), {"permissions": {"publish": True}, "crd": {"enabled": True}}
    ),
    "all other permissions": Same(
        ("deployment", *PERMISSIONS), {"permissions": dict.fromkeys(PERMISSIONS, True)}
    ),
    **{
        f"an identity in Azure for the {kind}": Same(
            (kind.lower(),),
            {"runAs": kind, "azure": {"workloadIdentity": True, "clientId": "CLIENT"}},
            components=("azure",),
            patches=(IDENTITY,),
        )
        for kind in ("CronJob", "Deployment")
    },
}


@pytest.fixture
def helm(helm_program: Path, tmp_path: Path) -> Helm:
    folder = tmp_path / "helm"
    folder.mkdir()
    return Helm(helm_program, folder)


def by_name(objects: list[Object]) -> dict[tuple[str, ...], Object]:
    """The objects by kind and name, without what Helm puts on each, and with the settings as a mapping."""
    found: dict[tuple[str, ...], Object] = {}
    for one in objects:
        metadata = one["metadata"]
        metadata["labels"] = {k: v for k, v in metadata["labels"].items() if k not in OF_HELM}
        if "data" in one:
            one["data"] = {name: yaml.safe_load(text) for name, text in one["data"].items()}
        if one["kind"] == "ValidatingAdmissionPolicy":
            one["spec"] = unfolded(one["spec"])
        found[one["apiVersion"], one["kind"], metadata.get("namespace", ""), metadata["name"]] = one
    assert len(found) == len(objects)
    return found


def unfolded(found: Any) -> Any:
    """The same with each expression on one line; kustomize adds empty lines to those that are indented."""
    if isinstance(found, dict):
        return {key: unfolded(one) for key, one in found.items()}
    if isinstance(found, list):
        return [unfolded(one) for one in found]
    return " ".join(found.split()) if isinstance(found, str) else found


def policy(objects: list[Object]) -> str:
    """The settings in the objects, as text."""
    (found,) = [one for one in objects if one["metadata"]["name"] == "maintenance-policy"]
    return str(found["data"]["maintenance.yaml"])


def test_lint_has_nothing_to_say(helm: Helm) -> None:
    assert "[WARNING]" not in helm.lint()


@pytest.mark.parametrize("name", PAIRS)
def test_the_objects_are_those_of_kustomize(helm: Helm, tmp_path: Path, name: str) -> None:
    pair = PAIRS[name]
    rendered, built = by_name(helm.template(pair.values)), by_name(pair.built(tmp_path))
    del built["v1", "Namespace", "", "node-maintenance"]  # Helm makes the namespace of a release, or a person

    assert rendered.keys() == built.keys()
    for key, one in built.items():
        assert rendered[key] == one


def kept(objects: list[Object]) -> set[str]:
    """The ConfigMaps of features that a Role of their own lets the reconciler write."""
    roles = {one["metadata"]["name"] for one in objects if one["kind"] == "Role"}
    bindings = {one["metadata"]["name"] for one in objects if one["kind"] == "RoleBinding"}
    assert roles == bindings
    named = {name.removeprefix("node-maintenance-") for name in roles}
    return {name for name in named if not name.startswith("reconciler")}


ALL = {"history", "observed", "pods", "settings"}
HOOK = [{"name": "hook", "webhook": {"url": "https://example.com"}}]
"""An entry of `notify`."""
SENT = {"instances": {"notify": [{"name": "mail", "type": "mail", "config": {}}]}}
"""Workflows with a notification."""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ALL),
        ({"pods": None, "audit": {"keep": None}, "observed": {}}, ALL),
        ({"pods": {"keep": "0s"}}, ALL - {"pods"}),
        ({"pods": {"keep": "0m"}, "audit": {"keep": "0"}, "observed": {"keep": 0}}, {"settings"}),
        ({"pods": {"keep": "0d0h00m0s"}, "audit": {"keep": " 0s "}}, {"observed", "settings"}),
        ({"pods": {"keep": "10m"}, "audit": {"keep": "0h10m"}, "observed": {"keep": "1d"}}, ALL),
        ({"revisions": {"keep": 0}}, ALL - {"settings"}),
        ({"revisions": {"keep": 10}}, ALL),
        ({"notify": HOOK}, {*ALL, "notices"}),
        ({"notify": []}, ALL),
        ({"profiles": SENT}, {*ALL, "notices"}),
        ({"profiles": {"instances": {"check": []}, "profiles": []}}, ALL),
        ({**SENT, "profiles": []}, {*ALL, "notices"}),
        ({"instances": {"check": []}, "profiles": []}, ALL),
    ],
)
def test_what_a_feature_keeps_has_a_role_exactly_if_the_settings_keep_it(
    helm: Helm, settings: Object, expected: set[str]
) -> None:
    found = helm.template({"settingsFile": yaml.safe_dump(settings)})

    assert kept(found) == expected


def test_what_prometheus_reads_has_the_labels_that_it_selects(helm: Helm) -> None:
    found = helm.template({"monitoring": {"podMonitor": True, "rules": True, "labels": {"release": "ours"}}})

    labelled = {one["kind"] for one in found if one["metadata"]["labels"].get("release") == "ours"}
    assert labelled == {"PodMonitor", "PrometheusRule"}


def test_the_managed_prometheus_of_azure_gets_a_pod_monitor_of_its_own_kind(helm: Helm) -> None:
    def spec(api: str) -> Object:
        found = helm.template({"monitoring": {"podMonitor": True, "podMonitorApi": api}})
        (monitor,) = [one for one in found if one["kind"] == "PodMonitor"]
        assert monitor["apiVersion"] == api
        return dict(monitor["spec"])

    limits = {"labelLimit": 63, "labelNameLengthLimit": 511, "labelValueLengthLimit": 1023}
    assert spec("azmonitoring.coreos.com/v1") == {**spec("monitoring.coreos.com/v1"), **limits}


def test_the_links_of_alerts_lead_where_the_values_say(helm: Helm) -> None:
    found = helm.template(
        {"monitoring": {"rules": True, "runbooks": "https://wiki.example.com/nodes/{alert}.html"}}
    )
    groups = [group for one in found if one["kind"] == "PrometheusRule" for group in one["spec"]["groups"]]
    alerts = [alert for group in groups for alert in group["rules"] if "alert" in alert]

    assert {alert["alert"] for alert in alerts} == {
        page.stem for page in (K8S.parent / "docs" / "runbooks").glob("*.md")
    }
    for alert in alerts:
        assert alert["annotations"]["runbook_url"] == f"https://wiki.example.com/nodes/{alert['alert']}.html"


def test_the_release_leaves_its_namespace_to_helm(helm: Helm) -> None:
    found = helm.template({"agent": {"enabled": True}})

    assert [one["metadata"]["name"] for one in found if one["kind"] == "Namespace"] == [
        "node-maintenance-agent"
    ]


def test_nothing_of_a_release_names_the_usual_namespace_and_account(helm: Helm) -> None:
    helm.namespace = "ops"
    permissions = dict.fromkeys((*PERMISSIONS, "publish"), True)
    more = {"podMonitor": True, "rules": True, "dashboard": True}
    network = {"monitoringByLabel": True}
    given = {
        **EVERYTHING,
        "permissions": permissions,
        "crd": {"enabled": True},
        "flowControl": {"enabled": True},
        "monitoring": more,
        "networkPolicies": network,
    }
    found = [
        one
        for kind in ("Deployment", "CronJob")
        for one in helm.template({**given, "runAs": kind}, tests=True)
    ]

    places = {one["metadata"].get("namespace", "ops") for one in found}
    assert places == {"ops", "node-maintenance-agent", "kube-system", "default"}
    accounts = {
        (subject["namespace"], subject["name"]) for one in found for subject in one.get("subjects", ())
    }
    agent = ("node-maintenance-agent", "node-maintenance-agent")
    assert accounts == {("ops", "drainer"), ("ops", "report"), ("ops", "test"), agent}
    for one in found:
        one["metadata"].pop("name")
        text = yaml.safe_dump(one, width=10_000)
        assert "serviceaccount:node-maintenance:" not in text
        assert "-n node-maintenance " not in text
        assert "namespace: node-maintenance\n" not in text


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"runas": "CronJob"}, "'runas' not allowed"),
        ({"runAs": "Job"}, "/runAs"),
        ({"service": {"replicas": 3}}, "'replicas' not allowed"),
        ({"replicas": 0}, "/replicas"),
        ({"logLevel": "debug"}, "/logLevel"),
        ({"podLabels": {"app.kubernetes.io/name": "ours"}}, "/podLabels"),
        ({"commonLabels": {"app.kubernetes.io/component": "serve"}}, "/commonLabels"),
        ({"serviceAccount": {"name": "report"}}, "/serviceAccount/name"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"agent": {"enabled": "yes"}}, "/agent/enabled"),
        ({"settings": {"mode": "Enforced"}}, "/settings/mode"),
        ({"settings": {"window": []}}, "'window' not allowed"),
        ({"settings": {"events": {"Reboot": {"leadTime": "soon"}}}}, "/settings/events/Reboot/leadTime"),
    ],
)
def test_values_that_are_wrong_are_refused_by_name(helm: Helm, values: Object, named: str) -> None:
    with pytest.raises(Refused) as refused:
        helm.template(values)

    assert named in str(refused.value)


@pytest.mark.parametrize("example", [b for b in SETTINGS.split("```") if b.startswith("yaml\napiVersion")])
def test_settings_arrive_as_they_are_written(helm: Helm, tmp_path: Path, example: str) -> None:
    text = example.removeprefix("yaml\n")
    values = tmp_path / "written.yaml"
    values.write_text("settings:\n" + "".join(f"  {line}\n" for line in text.splitlines()), encoding="utf-8")

    arrived = policy(helm.template({}, "--values", str(values)))

    assert parse_settings(arrived, "f") == parse_settings(text, "f")


def test_a_settings_file_arrives_as_it_is_with_its_comments(helm: Helm, tmp_path: Path) -> None:
    file = tmp_path / "maintenance.yaml"
    file.write_text(FILE, encoding="utf-8")

    arrived = policy(helm.template({}, "--set-file", f"settingsFile={file}"))

    assert arrived == FILE


def test_a_settings_file_that_is_no_yaml_is_refused(helm: Helm) -> None:
    with pytest.raises(Refused, match="settingsFile is not YAML"):
        helm.template({"settingsFile": "mode: [", "agent": {"enabled": True}})


def test_another_prefix_is_in_the_policies_and_known_to_the_agent(helm: Helm) -> None:
    found = helm.template(
        {"settings": {"keys": {"prefix": "maintenance.example.com"}}, "agent": {"enabled": True}}
    )
    first = {
        one["metadata"]["name"]: one["spec"]["variables"][0]["expression"]
        for one in found
        if one["kind"] == "ValidatingAdmissionPolicy"
    }
    (agent,) = [one for one in found if one["kind"] == "DaemonSet"]

    assert first == {
        "node-maintenance-keys": "'maintenance.example.com/'",
        "node-maintenance-reconciler": "'maintenance.example.com/'",
        "node-maintenance-agent": "'maintenance.example.com/imds'",
        "node-maintenance-people": "'maintenance.example.com/'",
    }
    assert (
        "--key-prefix=maintenance.example.com" in agent["spec"]["template"]["spec"]["containers"][0]["args"]
    )


@pytest.mark.parametrize("kind", ["CronJob", "Deployment"])
def test_each_value_is_where_it_belongs(helm: Helm, kind: str) -> None:
    objects = helm.template({**EVERYTHING, "runAs": kind}, tests=True)
    for one in objects:
        keeps_its_schema(one)
    found = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    spec = found[kind, "reconciler"]["spec"]
    template = spec.get("jobTemplate", {}).get("spec", spec)["template"]
    pod = template["spec"]
    (container,) = pod["containers"]
    agents = found["DaemonSet", "node-maintenance-agent"]["spec"]["template"]
    agent = agents["spec"]
    reports = found["CronJob", "report"]["spec"]["jobTemplate"]["spec"]["template"]
    report = reports["spec"]
    test = found["Pod", "test"]["spec"]

    assert {"cost-center": "42", "team": "a"}.items() <= template["metadata"]["labels"].items()
    common = EVERYTHING["commonLabels"].items()
    for one in (*objects, agents, reports):
        assert common <= one["metadata"]["labels"].items()
    assert template["metadata"]["annotations"] == EVERYTHING["podAnnotations"]
    for one in (pod, report, test):
        assert one["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "system"}
        assert one["affinity"] == EVERYTHING["affinity"]
        # Helm joins mappings with their defaults.
        for each in one["containers"]:
            assert each["resources"] == {
                "requests": {"cpu": "1", "memory": "128Mi"},
                "limits": {"memory": "1Gi"},
            }
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert ("PriorityClass", "node-maintenance-reconciler") not in found
    assert agent["containers"][0]["resources"]["limits"] == EVERYTHING["agent"]["resources"]["limits"]
    assert {"--listen=:20270", "--log-level=warning"} <= set(agent["containers"][0]["args"])
    assert agent["nodeSelector"] == {"kubernetes.io/os": "linux", "azure": "yes"}
    assert container["args"][0] == {"CronJob": "sweep", "Deployment": "serve"}[kind]
    assert container["args"][-1] == EVERYTHING["extraArgs"][0]
    assert EVERYTHING["extraEnv"][0] in container["env"]
    assert EVERYTHING["extraVolumes"][0] in pod["volumes"]
    assert EVERYTHING["extraVolumeMounts"][0] in container["volumeMounts"]
    for one in (pod, agent, report, test):
        assert {"key": "ours", "operator": "Exists"} in one["tolerations"]
        assert one["imagePullSecrets"] == EVERYTHING["imagePullSecrets"]
        for each in one["containers"]:
            assert each["image"] == f"node-maintenance-reconciler@{EVERYTHING['image']['digest']}"
            assert each["imagePullPolicy"] == "Always"
    assert found["CronJob", "report"]["spec"]["schedule"] == "0 5 * * *"
    assert report["containers"][0]["args"][-4:] == [
        "--output=markdown",
        "--out=-",
        "--out=configmap/$(POD_NAMESPACE)/node-maintenance-report",
        "--out=$(REPORT_WEBHOOK)",
    ]
    assert report["containers"][0]["env"][-1] == {
        "name": "REPORT_WEBHOOK",
        "valueFrom": {"secretKeyRef": {"name": "reports", "key": "address"}},
    }
    assert pod["serviceAccountName"] == "drainer"
    account = found["ServiceAccount", "drainer"]["metadata"]
    assert account["annotations"] == EVERYTHING["serviceAccount"]["annotations"]
    egress = found["NetworkPolicy", "reconciler-egress"]["spec"]["egress"]
    assert [one["port"] for one in egress[0]["ports"]] == [443, 6443, 587]
    variables = found["ValidatingAdmissionPolicy", "node-maintenance-reconciler"]["spec"]["variables"]
    assert {one["name"]: one["expression"] for one in variables if one["name"].startswith("trigger")} == {
        f"trigger{what}": f'["a.example.com/{what[0].lower()}"]'
        for what in ("Labels", "Annotations", "Taints", "Finalizers")
    }
    if kind == "Deployment":
        assert spec["replicas"] == 3
        assert pod["topologySpreadConstraints"] == EVERYTHING["topologySpreadConstraints"]
        assert "--log-level=warning" in container["args"]
        service = found["Service", "reconciler"]
        assert service["metadata"]["annotations"] == {"example.com/s": "t"}
        assert (service["spec"]["type"], service["spec"]["ports"][0]["port"]) == ("NodePort", 80)
        (rule,) = found["NetworkPolicy", "reconciler-http"]["spec"]["ingress"]
        assert rule["from"][0]["namespaceSelector"]["matchExpressions"][0]["values"] == ["observability"]


@pytest.mark.parametrize(
    ("values", "without"),
    [
        ({"admissionPolicies": {"enabled": False}}, "ValidatingAdmissionPolicy"),
        ({"networkPolicies": {"enabled": False}}, "NetworkPolicy"),
    ],
)
def test_policies_can_be_left_out_but_not_the_one_that_the_agent_needs(
    helm: Helm, values: Object, without: str
) -> None:
    found = helm.template({**values, "runAs": "Deployment", "agent": {"enabled": True}})
    names = {one["metadata"]["name"] for one in found if one["kind"] == without}

    assert names == ({"node-maintenance-agent"} if without == "ValidatingAdmissionPolicy" else set())
