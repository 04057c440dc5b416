"""Writes the generated files of the chart: `python -m charts.generator`, or `nox -s chart`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import yaml

from charts.generator.templates import templates
from charts.generator.texts import readme, schema_json, values_yaml
from release.repository import address

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "node-maintenance-reconciler"


def generated() -> dict[Path, str]:
    """Return the text of each generated file, by its path."""
    settings = (ROOT / "k8s" / "base" / "maintenance.yaml").read_text(encoding="utf-8")
    page = CHART / "README.md"
    return {
        CHART / "Chart.yaml": _chart(),
        CHART / "values.yaml": values_yaml(settings),
        CHART / "values.schema.json": schema_json(),
        # What a manifest has in a file beside it, a template reads from the root of the chart.
        **{CHART / file.name: file.read_text(encoding="utf-8") for file in (ROOT / "k8s").glob("*/*.json")},
        page: readme(page.read_text(encoding="utf-8")),
        **{CHART / "templates" / name: text for name, text in templates(ROOT / "k8s").items()},
    }


def _chart() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    chart = {
        "apiVersion": "v2",
        "name": project["name"],
        "description": project["description"],
        "type": "application",
        "version": project["version"],
        "appVersion": project["version"],
        "kubeVersion": ">=1.33.0-0",
        "home": address(),
        "sources": [address()],
        "icon": f"{address()}/raw/main/docs/images/icon.svg",
        "keywords": project["keywords"],
        "maintainers": [{"name": f"The maintainers of {project['name']}", "url": address()}],
        "annotations": {f"artifacthub.io/{key}": text for key, text in _artifact_hub(project).items()},
    }
    return "# Generated: run `nox -s chart`, do not edit.\n" + yaml.safe_dump(
        chart, sort_keys=False, width=200
    )


def _artifact_hub(project: dict[str, Any]) -> dict[str, str]:
    """Return what Artifact Hub shows besides: texts, some of them YAML."""
    links = [
        {"name": name, "url": project["urls"][name]}
        for name in ("Documentation", "Issues", "Changelog", "Security")
    ]
    kinds = []
    for file in sorted((ROOT / "k8s" / "crd").glob("*.yaml")):
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
        if found["kind"] == "CustomResourceDefinition":
            kind, (version,) = found["spec"]["names"]["kind"], found["spec"]["versions"]
            what = version["schema"]["openAPIV3Schema"]["description"].partition(". ")[0]
            kinds.append(
                {
                    "kind": kind,
                    "version": version["name"],
                    "name": found["metadata"]["name"],
                    "displayName": kind,
                    "description": f"{what}. The chart installs it on request.",
                }
            )
    return {
        "license": project["license"],
        "links": yaml.safe_dump(links, sort_keys=False),
        "crds": yaml.safe_dump(kinds, sort_keys=False, width=200),
    }


if __name__ == "__main__":
    for path, text in generated().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
