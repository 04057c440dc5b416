"""The templates of the chart, from the manifests in k8s/: when each is rendered, and what values change.

An edit replaces text of the manifest that must be there, and once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from charts.generator.values import PRIORITY_CLASS, RESOURCES, Agent, Monitoring, NetworkPolicies
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


@dataclass(frozen=True, slots=True)
class Instead:
    """Puts the value at `path`, unless it is empty, in the place of the block below `key`, at this column."""

    key: str
    path: str
    column: int

    def on(self, text: str, name: str) -> str:
        """Return the text of the manifest `name` with this edit; NoSuchText without one such block."""
        space = " " * self.column
        inner = rf"(?:{space}(?:  |- ).*\n)+"
        whole = re.compile(rf"^{space}{self.key}:\n{inner}", re.MULTILINE)
        count = len(whole.findall(text))
        if count != 1:
            raise NoSuchText(f"k8s/{name} has {count} times the key {self.key} at column {self.column}")
        values = f"{space}{self.key}: {{{{- toYaml . | nindent {self.column + 2} }}}}\n"
        first, last = f"{space}{{{{- with {self.path} }}}}\n{values}{space}{{{{- else }}}}\n", "{{- end }}\n"
        return whole.sub(lambda block: f"{first}{block.group()}{space}{last}", text)


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
    "base/admission-people.yaml": ".Values.admissionPolicies.enabled",
    "base/admission-reconciler.yaml": ".Values.admissionPolicies.enabled",
    **{
        f"base/kept-{name}.yaml": f'include "node-maintenance.keeps" (list . "{section}")'
        for name, section in (
            ("history", "audit"),
            ("notices", "notify"),
            ("observed", "observed"),
            ("pods", "pods"),
            ("settings", "revisions"),
        )
    },
    "base/network-policy.yaml": ".Values.networkPolicies.enabled",
    "base/priority-class.yaml": f'eq .Values.priorityClassName "{PRIORITY_CLASS}"',
    "base/service-account.yaml": ".Values.serviceAccount.create",
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
    "pods": ".Values.permissions.pods",
    "pods/admission-policy.yaml": "and .Values.permissions.pods .Values.admissionPolicies.enabled",
    "publish": ".Values.permissions.publish",
    "replacing": ".Values.permissions.replacing",
    "report": "or .Values.permissions.report .Values.report.enabled",
    "report-configmap": "and .Values.report.enabled .Values.report.configMap",
    "report-job": ".Values.report.enabled",
    "report-job/network-policy.yaml": "and .Values.report.enabled .Values.networkPolicies.enabled",
    "service": 'and (eq .Values.runAs "Deployment") .Values.service.enabled',
    "shuffles": ".Values.permissions.shuffles",
}
"""When a file is rendered, by its folder or by its own name. Empty: always."""

ELSEWHERE = {
    "azure": "a component of kustomize: the value `azure.workloadIdentity` takes its place",
    "base/maintenance.yaml": "the value `settings`",
    "base/namespace.yaml": "the namespace is that of the release",
}
"""What of k8s/ has no template, and why."""

_IMAGE = re.compile(r"^( *)image: node-maintenance-reconciler:\S+\n", re.MULTILINE)
_FROM_VALUES = r"""\1image: {{ include "node-maintenance.image" . }}
\1{{- with .Values.image.pullPolicy }}
\1imagePullPolicy: {{ . }}
\1{{- end }}
"""


_NAMESPACE, _ACCOUNT = "{{ $.Release.Namespace }}", "{{ $.Values.serviceAccount.name }}"
_FREE = (
    (re.compile(r"\bnamespace: node-maintenance$", re.MULTILINE), f"namespace: {_NAMESPACE}"),
    (re.compile(r"\bnamespaces: \[node-maintenance\]"), f"namespaces: [{_NAMESPACE}]"),
    (re.compile(r"-n node-maintenance\b(?!-)"), f"-n {_NAMESPACE}"),
    (
        re.compile(r"system:serviceaccount:node-maintenance:reconciler\b"),
        f"system:serviceaccount:{_NAMESPACE}:{_ACCOUNT}",
    ),
    (re.compile(r"^( *)serviceAccountName: reconciler$", re.MULTILINE), rf"\1serviceAccountName: {_ACCOUNT}"),
    # A subject of a binding, and one of a FlowSchema.
    (re.compile(r"^(- kind: ServiceAccount\n  name: )reconciler$", re.MULTILINE), rf"\1{_ACCOUNT}"),
    (re.compile(r"^( *namespace: .*\n *name: )reconciler$", re.MULTILINE), rf"\1{_ACCOUNT}"),
    (re.compile(r"^(kind: ServiceAccount\nmetadata:\n  name: )reconciler$", re.MULTILINE), rf"\1{_ACCOUNT}"),
)
"""The namespace of the release and the name of the ServiceAccount, in whatever manifest they are."""


def _pull_secrets(column: int) -> Edit:
    space = " " * column
    return extended(
        f"{space}enableServiceLinks: false\n", ".Values.imagePullSecrets", column, "imagePullSecrets"
    )


_OF_ALL = 'include "node-maintenance.commonLabels" .'
_OF_RECONCILER = 'include "node-maintenance.podLabels" .'


def _labels(space: int, name: str, component: str, values: str, more: str = "") -> Edit:
    """Return the edit that adds the labels of `values`, and then lines, to a Pod's `labels:`."""
    indent = " " * space
    labels = (
        f"{indent}labels:\n"
        f"{indent}  app.kubernetes.io/name: {name}\n"
        f"{indent}  app.kubernetes.io/component: {component}\n"
    )
    added = (
        f"{indent}  {{{{- with {values} }}}}\n"
        f"{indent}  {{{{- . | nindent {space + 2} }}}}\n"
        f"{indent}  {{{{- end }}}}\n"
    )
    return Edit(f"{labels}{indent[2:]}spec:\n", f"{labels}{added}{more}{indent[2:]}spec:\n")


def _placed(space: int, *, twice: bool = False) -> tuple[Edit, ...]:
    """Return the edits of a Pod that say where it runs and with how much; `twice`: it has two containers."""
    indent = " " * space
    return (
        _pull_secrets(space),
        extended(f"{indent}  kubernetes.io/os: linux\n", ".Values.nodeSelector", space + 2),
        extended(
            f"{indent}- key: CriticalAddonsOnly # system pools of AKS\n{indent}  operator: Exists\n",
            ".Values.tolerations",
            space,
        ),
        replace(replaced("resources", RESOURCES, ".Values.resources", space + 2), everywhere=twice),
    )


def _affinity(space: int) -> Edit:
    """Return the edit that gives a Pod without an affinity of its own the one of the values."""
    indent = " " * space
    return Edit(
        f"{indent}tolerations:\n",
        f"{indent}{{{{- with .Values.affinity }}}}\n"
        f"{indent}affinity: {{{{- toYaml . | nindent {space + 2} }}}}\n"
        f"{indent}{{{{- end }}}}\n"
        f"{indent}tolerations:\n",
    )


def _reconciler(space: int, component: str, last: str) -> tuple[Edit, ...]:
    """Return the edits of the reconciler's Pod: the column of its spec's keys, and its last argument."""
    indent = " " * space
    annotations = (
        f"{indent}{{{{- with .Values.podAnnotations }}}}\n"
        f"{indent}annotations: {{{{- toYaml . | nindent {space + 2} }}}}\n"
        f"{indent}{{{{- end }}}}\n"
    )
    return (
        _labels(space, "node-maintenance-reconciler", component, _OF_RECONCILER, annotations),
        *_placed(space),
        Edit(
            f"{indent}priorityClassName: {PRIORITY_CLASS}\n",
            f"{indent}{{{{- with .Values.priorityClassName }}}}\n"
            f"{indent}priorityClassName: {{{{ . }}}}\n"
            f"{indent}{{{{- end }}}}\n",
        ),
        extended(f"{indent}  - {last}\n", ".Values.extraArgs", space + 2),
        extended(f"{indent}        fieldPath: spec.nodeName\n", ".Values.extraEnv", space + 2),
        extended(f"{indent}    readOnly: true\n", ".Values.extraVolumeMounts", space + 2),
        extended(f"{indent}    name: maintenance-policy\n", ".Values.extraVolumes", space),
    )


def _log_level(column: int) -> str:
    space = " " * column
    return (
        f'{space}{{{{- if ne .Values.logLevel "info" }}}}\n'
        f"{space}- --log-level={{{{ .Values.logLevel }}}}\n"
        f"{space}{{{{- end }}}}\n"
    )


def _agent(space: int) -> tuple[Edit, ...]:
    indent = " " * space
    return (
        _labels(space, "node-maintenance-agent", "agent", _OF_ALL),
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
            f"{indent}  {{{{- end }}}}\n{_log_level(space + 2)}",
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

EDITS: dict[str, tuple[Edit | Instead, ...]] = {
    "agent/admission-policy.yaml": (_prefix("imds"),),
    "agent/daemonset.yaml": _agent(6),
    "agent/network-policy.yaml": (_FROM_MONITORING,),
    "base/admission-nodes.yaml": (_prefix(""),),
    "base/admission-people.yaml": (_prefix(""),),
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
    "cronjob/cronjob.yaml": (*_reconciler(10, "sweep", "--for=50s"), _affinity(10)),
    "deployment/deployment.yaml": (
        *_reconciler(6, "serve", "--listen=:8080"),
        Instead("affinity", ".Values.affinity", 6),
        Instead("topologySpreadConstraints", ".Values.topologySpreadConstraints", 6),
        Edit("  replicas: 2\n", "  replicas: {{ .Values.replicas }}\n"),
        after("        - --reconciler-namespace=$(POD_NAMESPACE)\n", _log_level(8)),
    ),
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
        _labels(10, "node-maintenance-report", "report", _OF_ALL),
        *_placed(10),
        _affinity(10),
        after(
            "            - --reconciler-namespace=$(POD_NAMESPACE)\n",
            "            {{- with .Values.report.args }}\n"
            "            {{- toYaml . | nindent 12 }}\n"
            "            {{- end }}\n"
            "            {{- if or .Values.report.configMap .Values.report.webhook.secretName }}\n"
            "            - --out=-\n"
            "            {{- end }}\n"
            "            {{- if .Values.report.configMap }}\n"
            "            - --out=configmap/$(POD_NAMESPACE)/node-maintenance-report\n"
            "            {{- end }}\n"
            "            {{- if .Values.report.webhook.secretName }}\n"
            "            - --out=$(REPORT_WEBHOOK)\n"
            "            {{- end }}\n",
        ),
        after(
            "                  fieldPath: metadata.namespace\n",
            "            {{- if .Values.report.webhook.secretName }}\n"
            "            - name: REPORT_WEBHOOK\n"
            "              valueFrom:\n"
            "                secretKeyRef:\n"
            "                  name: {{ .Values.report.webhook.secretName }}\n"
            "                  key: {{ .Values.report.webhook.secretKey }}\n"
            "            {{- end }}\n",
        ),
    ),
    "report-job/network-policy.yaml": (
        after(
            "    - {protocol: TCP, port: 6443}\n",
            "    {{- range .Values.networkPolicies.egressPorts }}\n"
            "    - {protocol: TCP, port: {{ . }}}\n"
            "    {{- end }}\n",
        ),
    ),
    "service/service.yaml": (
        after(
            "  name: reconciler\n  namespace: node-maintenance\n",
            "  {{- with .Values.service.annotations }}\n"
            "  annotations: {{- toYaml . | nindent 4 }}\n"
            "  {{- end }}\n",
        ),
        Edit("  type: ClusterIP\n", "  type: {{ .Values.service.type }}\n"),
        Edit("    port: 8080\n", "    port: {{ .Values.service.port }}\n"),
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
            name = f"{file.parent.name}/{resource}"
            if not resource.startswith("../") and name not in ELSEWHERE:
                found[name] = _template(name, (k8s / name).read_text(encoding="utf-8"))
    return {**found, **_tests(k8s)}


def _template(name: str, text: str) -> str:
    folder = name.partition("/")[0]
    condition = CONDITIONS.get(name, CONDITIONS.get(folder))
    if condition is None:
        raise NotInTheChart(f"k8s/{folder} has no line in CONDITIONS of charts/generator/templates.py")
    return _if(condition, _filled(name, text, EDITS.get(name, ())))


def _if(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _filled(name: str, text: str, edits: Iterable[Edit | Instead]) -> str:
    """Return the text of the manifest `name` with the values in it."""
    # Such as those of alerts, which Prometheus fills in.
    text = text.replace("{{", '{{ "{{" }}')
    text = _IMAGE.sub(_FROM_VALUES, text)
    labels = "monitoringLabels" if name.startswith("monitoring/") else "labels"
    text = labelled(text, f'{{{{- include "node-maintenance.{labels}" . | nindent 4 }}}}')
    for edit in edits:
        text = edit.on(text, name)
    for pattern, value in _FREE:
        text = pattern.sub(value, text)
    return f"# Generated from k8s/{name}: run `nox -s chart`, do not edit.\n{text}"


_OF_TEST = (
    ("node-maintenance-reconciler-report", "node-maintenance-reconciler-test"),
    ("node-maintenance-report-job", "node-maintenance-test"),
    ("node-maintenance-report", "node-maintenance-test"),
    ("component: report\n", "component: test\n"),
    ("name: report\n", "name: test\n"),
    ("serviceAccountName: report\n", "serviceAccountName: test\n"),
)
"""What the objects of the report's Pod are called for `helm test`."""

_CHECK = """\
    - check-config
    - configmap/$(POD_NAMESPACE)/maintenance-policy
    - --reconciler-namespace=$(POD_NAMESPACE)
"""
_REPORT = """\
    - report
    - --config=configmap/$(POD_NAMESPACE)/maintenance-policy
    - --reconciler-namespace=$(POD_NAMESPACE)
"""


def _tests(k8s: Path) -> dict[str, str]:
    """Return the templates of `helm test`: the Pod of the report, which also checks the settings.

    It has the rights of the report, so it can't write anything either. Only the Pod stays after a test.
    """
    found: dict[str, str] = {}
    for name in (
        "report/cluster-role.yaml",
        "report-job/service-account.yaml",
        "report-job/network-policy.yaml",
    ):
        text = _hooks((k8s / name).read_text(encoding="utf-8"), -1, "before-hook-creation,hook-succeeded")
        filled = _filled(name, text, EDITS.get(name, ()))
        condition = CONDITIONS["base/network-policy.yaml"] if "network" in name else ""
        found[f"test/{name.rpartition('/')[2]}"] = _if(condition, filled)
    name = "report-job/cronjob.yaml"
    template = (k8s / name).read_text(encoding="utf-8").partition("\n      template:\n        metadata:\n")[2]
    lines = "".join(line.removeprefix(" " * 8) for line in template.splitlines(keepends=True))
    start, containers, container = lines.partition("  containers:\n")
    if _REPORT not in container:
        raise NoSuchText(f"k8s/{name} has no container with these arguments:\n{_REPORT}")
    both = (
        container.replace("- name: report\n", "- name: check-config\n").replace(_REPORT, _CHECK) + container
    )
    head = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: report\n  namespace: node-maintenance\n"
    # Helm 3 reads the logs of a test only after it has deleted what a policy lets it delete.
    pod = _hooks(f"{head}{start}{containers}{both}", 0, "before-hook-creation").replace(
        "  - name: test\n", "  - name: report\n"
    )
    edits = (*_placed(2, twice=True), _affinity(2))
    found["test/pod.yaml"] = _filled(name, pod, edits)
    return found


def _hooks(text: str, weight: int, deleted: str) -> str:
    """Return the objects of the report as those that Helm makes for a test, and when it deletes them."""
    for old, new in _OF_TEST:
        text = text.replace(old, new)
    annotations = (
        "  annotations:\n"
        "    helm.sh/hook: test\n"
        f'    helm.sh/hook-weight: "{weight}"\n'
        f"    helm.sh/hook-delete-policy: {deleted}\n"
    )
    return re.sub(r"^metadata:\n", f"metadata:\n{annotations}", text, flags=re.MULTILINE)
