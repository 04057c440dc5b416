"""The templates of the chart, from the manifests in k8s/: when each is rendered, and what values change.

An edit replaces text of the manifest that must be there, and once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from charts.generator.values import Agent, Monitoring, NetworkPolicies, Pods
from release.version import ROOT


class NoSuchText(Exception):
    """A manifest has changed, so that an edit of the chart no longer fits; the message names both."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the text `old` by `new`, where it is there once, or `everywhere`."""

    old: str
    new: str
    everywhere: bool = False

    def on(self, text: str, name: str) -> str:
        """Return the text of the manifest `name` with this edit; NoSuchText if `old` is not there so."""
        count = text.count(self.old)
        if count == 0 or (count > 1 and not self.everywhere):
            raise NoSuchText(
                f"k8s/{name} has {count} times what an edit in charts/generator replaces:\n{self.old}"
            )
        return text.replace(self.old, self.new)


def after(old: str, new: str) -> Edit:
    """Return the edit that adds whole lines behind the text `old`, which ends with a line."""
    return Edit(old, old + new)


def extended(old: str, path: str, indent: int, key: str = "") -> Edit:
    """Return the edit that adds the value at `path`, unless it is empty, behind `old`, and below `key`."""
    space = " " * indent
    inner = indent + 2 if key else indent
    lines = [f"{{{{- with {path} }}}}"]
    lines += [f"{key}:"] if key else []
    lines += [f"{{{{- toYaml . | nindent {inner} }}}}", "{{- end }}"]
    return after(old, "".join(f"{space}{line}\n" for line in lines))


def replaced(key: str, default: dict[str, Any], path: str, indent: int) -> Edit:
    """Return the edit that puts the value at `path` in the place of its default below `key`."""
    space = " " * indent
    written = yaml.safe_dump(default, sort_keys=False).splitlines()
    old = "".join(f"{line}\n" for line in (f"{space}{key}:", *(f"{space}  {line}" for line in written)))
    return Edit(old, f"{space}{key}: {{{{- toYaml {path} | nindent {indent + 2} }}}}\n")


def labelled(text: str, labels: str) -> str:
    """Return the text with the line `labels` among the labels of each object."""
    return "---\n".join("".join(_labelled(one, labels)) for one in text.split("---\n"))


def _labelled(text: str, labels: str) -> Iterator[str]:
    inside = done = False
    for line in text.splitlines(keepends=True):
        if inside and not line.startswith("  "):
            inside = False
            if not done:
                yield f"  labels:\n    {labels}\n"
                done = True
        inside = inside or line.startswith("metadata:")
        yield line
        if inside and line.startswith("  labels:"):
            yield f"    {labels}\n"
            done = True
    if inside and not done:
        yield f"  labels:\n    {labels}\n"


CONDITIONS = {
    "agent": ".Values.agent.enabled",
    "agent/network-policy.yaml": "and .Values.agent.enabled .Values.networkPolicies.enabled",
    "base": "",
    "base/admission-nodes.yaml": ".Values.admissionPolicies.enabled",
    "base/admission-reconciler.yaml": ".Values.admissionPolicies.enabled",
    # Helm has created the namespace of the release itself.
    "base/namespace.yaml": 'ne .Release.Namespace "node-maintenance"',
    "base/network-policy.yaml": ".Values.networkPolicies.enabled",
    "crd": ".Values.crd.enabled",
    "cronjob": 'eq .Values.runAs "CronJob"',
    "deployment": 'eq .Values.runAs "Deployment"',
    "deployment/network-policy.yaml": 'and (eq .Values.runAs "Deployment") .Values.networkPolicies.enabled',
    "escalation": ".Values.permissions.escalation",
    "flow-control": ".Values.flowControl.enabled",
    "hooks": ".Values.permissions.hooks",
    "hypervisors": ".Values.permissions.hypervisors",
    "metrics": "and .Values.networkPolicies.enabled .Values.networkPolicies.monitoringByLabel",
    "monitoring/pod-monitor.yaml": ".Values.monitoring.podMonitor",
    "monitoring/rules.yaml": ".Values.monitoring.rules",
    "publish": ".Values.permissions.publish",
    "replacing": ".Values.permissions.replacing",
    "report": "or .Values.permissions.report .Values.report.enabled",
    "report-job": ".Values.report.enabled",
    "report-job/network-policy.yaml": "and .Values.report.enabled .Values.networkPolicies.enabled",
    "shuffles": ".Values.permissions.shuffles",
}
"""When a file is rendered, by its folder or by its own name. Empty: always."""

ELSEWHERE = {
    "azure": "a component of kustomize: the value `azure.workloadIdentity` takes its place",
    "base/maintenance.yaml": "the value `settings`",
}
"""What of k8s/ has no template, and why."""

_IMAGE = re.compile(r"^( *)image: node-maintenance-reconciler:\S+\n", re.MULTILINE)
_FROM_VALUES = r"""\1image: {{ include "node-maintenance.image" . }}
\1{{- with .Values.image.pullPolicy }}
\1imagePullPolicy: {{ . }}
\1{{- end }}
"""


def _pull_secrets(column: int) -> Edit:
    space = " " * column
    return extended(
        f"{space}enableServiceLinks: false\n", ".Values.imagePullSecrets", column, "imagePullSecrets"
    )


def _reconciler(space: int, last: str) -> tuple[Edit, ...]:
    """Return the edits of the reconciler's Pod: the column of its spec's keys, and its last argument."""
    indent = " " * space
    labels = f"{indent}labels:\n{indent}  app.kubernetes.io/name: node-maintenance-reconciler\n"
    return (
        Edit(
            f"{labels}{indent[2:]}spec:\n",
            f"{labels}"
            f"{indent}  {{{{- if .Values.azure.workloadIdentity }}}}\n"
            f'{indent}  azure.workload.identity/use: "true"\n'
            f"{indent}  {{{{- end }}}}\n"
            f"{indent}  {{{{- with .Values.pods.labels }}}}\n"
            f"{indent}  {{{{- toYaml . | nindent {space + 2} }}}}\n"
            f"{indent}  {{{{- end }}}}\n"
            f"{indent}{{{{- with .Values.pods.annotations }}}}\n"
            f"{indent}annotations: {{{{- toYaml . | nindent {space + 2} }}}}\n"
            f"{indent}{{{{- end }}}}\n"
            f"{indent[2:]}spec:\n",
        ),
        _pull_secrets(space),
        extended(f"{indent}  kubernetes.io/os: linux\n", ".Values.pods.nodeSelector", space + 2),
        extended(
            f"{indent}- key: CriticalAddonsOnly # system pools of AKS\n{indent}  operator: Exists\n",
            ".Values.pods.tolerations",
            space,
        ),
        extended(f"{indent}  - {last}\n", ".Values.pods.args", space + 2),
        extended(f"{indent}        fieldPath: spec.nodeName\n", ".Values.pods.env", space + 2),
        replaced("resources", Pods().resources, ".Values.pods.resources", space + 2),
        extended(f"{indent}    readOnly: true\n", ".Values.pods.volumeMounts", space + 2),
        extended(f"{indent}    name: maintenance-policy\n", ".Values.pods.volumes", space),
    )


def _agent(space: int) -> tuple[Edit, ...]:
    indent = " " * space
    return (
        _pull_secrets(space),
        extended(
            f"{indent}- key: karpenter.sh/unregistered\n{indent}  operator: Exists\n",
            ".Values.agent.tolerations",
            space,
        ),
        extended(f"{indent}  kubernetes.io/os: linux\n", ".Values.agent.nodeSelector", space + 2),
        Edit(
            f"{indent}  - --listen={Agent().address}:20270\n",
            f"{indent}  - --listen={{{{ .Values.agent.address }}}}:20270\n"
            f'{indent}  {{{{- if ne (include "node-maintenance.prefix" .) "node-maintenance.dev" }}}}\n'
            f'{indent}  - --key-prefix={{{{ include "node-maintenance.prefix" . }}}}\n'
            f"{indent}  {{{{- end }}}}\n",
        ),
        replaced("resources", Agent().resources, ".Values.agent.resources", space + 2),
    )


def _prefix(ending: str) -> Edit:
    return Edit(
        f"\"'node-maintenance.dev/{ending}'\"",
        f'"\'{{{{ include "node-maintenance.prefix" . }}}}/{ending}\'"',
    )


def _keys_of(what: str) -> Edit:
    old = f"  - name: trigger{what}\n    expression: "
    return Edit(f'{old}"[]"\n', f"{old}{{{{ .Values.admissionPolicies.trigger{what} | toJson | quote }}}}\n")


_MONITORING = f"values: [{', '.join(NetworkPolicies().monitoring_namespaces)}]\n"
_FROM_MONITORING = Edit(_MONITORING, "values: {{ .Values.networkPolicies.monitoringNamespaces | toJson }}\n")

EDITS: dict[str, tuple[Edit, ...]] = {
    "agent/admission-policy.yaml": (_prefix("imds"),),
    "agent/daemonset.yaml": _agent(6),
    "agent/network-policy.yaml": (_FROM_MONITORING,),
    "base/admission-nodes.yaml": (_prefix(""),),
    "base/admission-reconciler.yaml": (
        _prefix(""),
        *(_keys_of(what) for what in ("Labels", "Annotations", "Taints", "Finalizers")),
    ),
    "base/network-policy.yaml": (
        after(
            "    - {protocol: TCP, port: 6443}\n",
            "    {{- range .Values.networkPolicies.egressPorts }}\n"
            "    - {protocol: TCP, port: {{ . }}}\n"
            "    {{- end }}\n",
        ),
    ),
    "base/service-account.yaml": (
        after(
            "  name: reconciler\n  namespace: node-maintenance\n",
            '  {{- with include "node-maintenance.accountAnnotations" . }}\n'
            "  annotations: {{- . | nindent 4 }}\n"
            "  {{- end }}\n",
        ),
    ),
    "cronjob/cronjob.yaml": _reconciler(10, "--for=50s"),
    "deployment/deployment.yaml": _reconciler(6, "--listen=:8080"),
    "deployment/network-policy.yaml": (_FROM_MONITORING,),
    "monitoring/pod-monitor.yaml": (
        Edit(
            "apiVersion: monitoring.coreos.com/v1\n", "apiVersion: {{ .Values.monitoring.podMonitorApi }}\n"
        ),
        after(
            "spec:\n",
            '  {{- if eq .Values.monitoring.podMonitorApi "azmonitoring.coreos.com/v1" }}\n'
            "  # Without these limits, the service may drop series.\n"
            "  labelLimit: 63\n"
            "  labelNameLengthLimit: 511\n"
            "  labelValueLengthLimit: 1023\n"
            "  {{- end }}\n",
        ),
    ),
    "report-job/cronjob.yaml": (
        Edit(
            'schedule: "0 6 * * *" # in the time zone of the controller manager, mostly UTC\n',
            "schedule: {{ .Values.report.schedule | quote }}\n",
        ),
        _pull_secrets(10),
        extended(
            "            - --config=/etc/node-maintenance/maintenance.yaml\n", ".Values.report.args", 12
        ),
        extended("            kubernetes.io/os: linux\n", ".Values.pods.nodeSelector", 12),
        replaced("resources", Pods().resources, ".Values.pods.resources", 12),
    ),
    "report-job/network-policy.yaml": (
        after(
            "    - {protocol: TCP, port: 6443}\n",
            "    {{- range .Values.networkPolicies.egressPorts }}\n"
            "    - {protocol: TCP, port: {{ . }}}\n"
            "    {{- end }}\n",
        ),
    ),
    "monitoring/rules.yaml": tuple(
        Edit(
            Monitoring().runbooks.replace("{alert}", alert),
            f'{{{{ $.Values.monitoring.runbooks | replace "{{alert}}" "{alert}" }}}}',
            everywhere=True,
        )
        for alert in sorted(page.stem for page in (ROOT / "docs" / "runbooks").glob("*.md"))
    ),
}
"""What the values change, by file."""


class NotInTheChart(Exception):
    """A file of k8s/ has no condition; the message names it, and says where to add one."""


def templates(k8s: Path) -> dict[str, str]:
    """Return the text of each template by its path below `templates`, for all folders of `k8s`.

    Raises NotInTheChart if a folder is new, and NoSuchText if an edit does not fit any more.
    """
    found: dict[str, str] = {}
    for file in sorted(k8s.glob("*/kustomization.yaml")):
        if file.parent.name in ELSEWHERE:
            continue
        for resource in yaml.safe_load(file.read_text(encoding="utf-8"))["resources"]:
            if not resource.startswith("../"):
                name = f"{file.parent.name}/{resource}"
                found[name] = _template(name, (k8s / name).read_text(encoding="utf-8"))
    return found


def _template(name: str, text: str) -> str:
    folder = name.partition("/")[0]
    condition = CONDITIONS.get(name, CONDITIONS.get(folder))
    if condition is None:
        raise NotInTheChart(f"k8s/{folder} has no line in CONDITIONS of charts/generator/templates.py")
    # Such as those of alerts, which Prometheus fills in.
    text = text.replace("{{", '{{ "{{" }}')
    text = _IMAGE.sub(_FROM_VALUES, text)
    labels = "monitoringLabels" if folder == "monitoring" else "labels"
    text = labelled(text, f'{{{{- include "node-maintenance.{labels}" . | nindent 4 }}}}')
    for edit in EDITS.get(name, ()):
        text = edit.on(text, name)
    text = f"# Generated from k8s/{name}: run `nox -s chart`, do not edit.\n{text}"
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text
