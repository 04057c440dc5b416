"""docs/helm.md, docs/aks.md and the chart: generated files are current, values and folders are named."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from charts.generator.__main__ import CHART, generated
from charts.generator.values import Values
from reconciler.settings.load import parse_settings
from reconciler.settings.schema import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "helm.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
EXAMPLES = [
    example
    for page in (PAGE, (ROOT / "docs" / "aks.md").read_text(encoding="utf-8"))
    for example in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
]
VALUES = Values().model_dump(by_alias=True)


def test_each_generated_file_of_the_chart_is_current() -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, text in generated().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]

    assert stale == [], "run `nox -s chart`"


def test_the_table_has_each_folder_of_manifests() -> None:
    folders = {f"k8s/{file.parent.name}" for file in (ROOT / "k8s").glob("*/kustomization.yaml")}

    assert {name for first, _ in ROWS for name in re.findall(r"`(k8s/[\w-]+)`", first)} == folders


def test_the_commands_of_the_readme_lead_to_the_page_of_a_reconciler_that_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (install,) = re.findall(r"\n## Install it\n.*?```sh\n(.*?)```", readme, re.DOTALL)
    build, push, namespace, helm, waits, forward = install.splitlines()

    assert (ROOT / namespace.split()[-1]).is_file()
    assert (ROOT / helm.split()[4] / "Chart.yaml").is_file()
    deployment = yaml.safe_load((ROOT / "k8s/deployment/deployment.yaml").read_text(encoding="utf-8"))
    metadata = deployment["metadata"]
    # A Pod that does not run yet has no port to forward.
    assert f"-n {metadata['namespace']} rollout status deployment/{metadata['name']}" in waits
    assert f"-n {metadata['namespace']} port-forward deployment/{metadata['name']} 8080" in forward
    given: dict[str, Any] = {}
    for path, value in re.findall(r"--set (\S+)=(\S+)", helm):
        section, _, key = path.rpartition(".")
        given.setdefault(section, {})[key] = yaml.safe_load(value)
    assert given["agent"] == {"enabled": True}
    image = given["image"]["repository"]
    assert f"--tag {image}:" in build
    assert f" push {image}:" in push
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    # The schema refuses names and values that the chart does not know.
    jsonschema.validate({**given.pop("", {}), **given}, schema)


def test_each_value_of_the_tables_is_one() -> None:
    paths = {path for _, last in ROWS for path in re.findall(r"`([\w.]+)`", last)}

    assert len(paths) > 15
    for path in paths:
        found: Any = VALUES
        for key in path.split("."):
            assert key in found, path
            found = found[key]


@pytest.mark.parametrize("example", EXAMPLES)
def test_each_example_keeps_the_schema_and_its_settings_load(example: str) -> None:
    values = yaml.safe_load(example)
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(values)

    assert parse_settings(yaml.safe_dump(values["settings"]), "helm.md") != Settings()
