"""Edits: what the values of the chart change in a manifest.

An edit replaces text of the manifest that must be there, and once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from charts.generator.part import MONITORING_NAMESPACES


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


def pull_secrets(column: int) -> Edit:
    """Return the edit that gives a Pod, whose spec has its keys at this column, the secrets for images."""
    space = " " * column
    return extended(
        f"{space}enableServiceLinks: false\n", ".Values.imagePullSecrets", column, "imagePullSecrets"
    )


OF_ALL = 'include "node-maintenance.commonLabels" .'
"""The labels of every Pod."""


def pod_labels(space: int, name: str, component: str, values: str, more: str = "") -> Edit:
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


def log_level(column: int) -> str:
    """Return the lines that give a container the option for its log, unless it is the default."""
    space = " " * column
    return (
        f'{space}{{{{- if ne .Values.logLevel "info" }}}}\n'
        f"{space}- --log-level={{{{ .Values.logLevel }}}}\n"
        f"{space}{{{{- end }}}}\n"
    )


def prefix_of(ending: str) -> Edit:
    """Return the edit that puts the prefix of the settings into the key with this ending."""
    return Edit(
        f"\"'node-maintenance.dev/{ending}'\"",
        f'"\'{{{{ include "node-maintenance.prefix" . }}}}/{ending}\'"',
    )


FROM_MONITORING = Edit(
    f"values: [{', '.join(MONITORING_NAMESPACES)}]\n",
    "values: {{ .Values.networkPolicies.monitoringNamespaces | toJson }}\n",
)
"""Puts the value in the place of the namespaces that may read metrics."""
