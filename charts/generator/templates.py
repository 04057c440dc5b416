"""The templates of the chart, from the manifests in k8s/: when each is rendered, and what values change.

This is about folders of the core. One that comes and goes with a plugin has a module in `folders`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import yaml

from charts.generator.edits import (
    FROM_MONITORING,
    OF_ALL,
    Edit,
    Instead,
    NoSuchText,
    after,
    extended,
    log_level,
    pod_labels,
    prefix_of,
    pull_secrets,
    replaced,
)
from charts.generator.folders import modules, permissions
from charts.generator.values import PRIORITY_CLASS, RESOURCES


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
    "cronjob": 'eq .Values.runAs "CronJob"',
    "deployment": 'eq .Values.runAs "Deployment"',
    "deployment/network-policy.yaml": 'and (eq .Values.runAs "Deployment") .Values.networkPolicies.enabled',
    "flow-control": ".Values.flowControl.enabled",
    "metrics": "and .Values.networkPolicies.enabled .Values.networkPolicies.monitoringByLabel",
    "report": "or .Values.permissions.report .Values.report.enabled",
    "report-configmap": "and .Values.report.enabled .Values.report.configMap",
    "report-job": ".Values.report.enabled",
    "report-job/network-policy.yaml": "and .Values.report.enabled .Values.networkPolicies.enabled",
    "service": 'and (eq .Values.runAs "Deployment") .Values.service.enabled',
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


_OF_RECONCILER = 'include "node-maintenance.podLabels" .'


def _placed(space: int, *, twice: bool = False) -> tuple[Edit, ...]:
    """Return the edits of a Pod that say where it runs and with how much; `twice`: it has two containers."""
    indent = " " * space
    return (
        pull_secrets(space),
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
        pod_labels(space, "node-maintenance-reconciler", component, _OF_RECONCILER, annotations),
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


def _keys_of(what: str) -> Edit:
    old = f"  - name: trigger{what}\n    expression: "
    return Edit(f'{old}"[]"\n', f"{old}{{{{ .Values.admissionPolicies.trigger{what} | toJson | quote }}}}\n")


EDITS: dict[str, tuple[Edit | Instead, ...]] = {
    "base/admission-nodes.yaml": (prefix_of(""),),
    "base/admission-people.yaml": (prefix_of(""),),
    "base/admission-reconciler.yaml": (
        prefix_of(""),
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
        after("        - --reconciler-namespace=$(POD_NAMESPACE)\n", log_level(8)),
    ),
    "deployment/network-policy.yaml": (FROM_MONITORING,),
    "report-job/cronjob.yaml": (
        Edit(
            'schedule: "0 6 * * *" # in the time zone of the controller manager, mostly UTC\n',
            "schedule: {{ .Values.report.schedule | quote }}\n",
        ),
        pod_labels(10, "node-maintenance-report", "report", OF_ALL),
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
}
"""What the values change, by file."""


class NotInTheChart(Exception):
    """A file of k8s/ has no condition; the message names it, and says where to add one."""


def templates(k8s: Path) -> dict[str, str]:
    """Return the text of each template by its path below `templates`, for all folders of `k8s`.

    Raises NotInTheChart if a file has no condition, and NoSuchText if an edit does not fit any more.
    """
    found: dict[str, str] = {}
    conditions = _conditions(k8s)
    edits = EDITS | {
        f"{folder}/{name}": of_file
        for folder, module in modules().items()
        for name, of_file in module.EDITS.items()
    }
    for file in sorted(k8s.glob("*/kustomization.yaml")):
        folder = file.parent.name
        if folder in ELSEWHERE:
            continue
        for resource in yaml.safe_load(file.read_text(encoding="utf-8"))["resources"]:
            name = f"{folder}/{resource}"
            if resource.startswith("../") or name in ELSEWHERE:
                continue
            condition = conditions.get(name, conditions.get(folder))
            if condition is None:
                raise NotInTheChart(
                    f"k8s/{name} has no line in CONDITIONS of charts/generator/templates.py, or of "
                    f"charts/generator/folders/{folder}.py, and k8s/{folder}/kustomization.yaml does not "
                    'begin with "# Permissions"'
                )
            text = (k8s / name).read_text(encoding="utf-8")
            found[name] = _if(condition, _filled(name, text, edits.get(name, ())))
    return {**found, **_tests(k8s)}


def _conditions(k8s: Path) -> dict[str, str]:
    """Return when a file is rendered, by its folder or by its own name. Empty: always."""
    found = dict(CONDITIONS)
    for folder in permissions(k8s):
        allowed = f".Values.permissions.{folder}"
        found[folder] = allowed
        found[f"{folder}/admission-policy.yaml"] = f"and {allowed} .Values.admissionPolicies.enabled"
    for folder, module in modules().items():
        found |= {f"{folder}/{name}".rstrip("/"): condition for name, condition in module.CONDITIONS.items()}
    return found


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
