"""What the generator of the chart makes of manifests and values, without helm."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from charts.generator.__main__ import CHART, ROOT, generated
from charts.generator.edits import NoSuchText
from charts.generator.folders import permissions
from charts.generator.templates import CONDITIONS, ELSEWHERE, NotInTheChart, templates
from charts.generator.values import Values
from jobs.runtime.process import processes
from release.repository import address

BY_HAND = {
    "templates/_helpers.tpl",
    "templates/NOTES.txt",
    "templates/monitoring/dashboard.yaml",
    "templates/settings.yaml",
    ".helmignore",
}
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def k8s(tmp_path: Path) -> Path:
    """The manifests, to change them."""
    return Path(shutil.copytree(ROOT / "k8s", tmp_path / "k8s"))


def test_every_other_file_of_the_chart_is_known() -> None:
    files = {str(path.relative_to(CHART)) for path in CHART.rglob("*") if path.is_file()}
    made = {str(path.relative_to(CHART)) for path in generated()}

    assert files - made == BY_HAND


def test_every_folder_of_manifests_is_in_the_chart_or_has_a_reason() -> None:
    folders = {file.parent.name for file in (ROOT / "k8s").glob("*/kustomization.yaml")}

    # `helm test` makes its objects of those of the report.
    made = {name.partition("/")[0] for name in templates(ROOT / "k8s")} - {"test"}
    assert folders == made | {one for one in ELSEWHERE if "/" not in one}
    assert set(CONDITIONS) & set(ELSEWHERE) == set()


def test_what_each_feature_keeps_has_a_role_which_the_settings_install() -> None:
    kept = {name.removeprefix("node-maintenance-") for one in processes() for name in one.config_maps}

    assert kept
    assert {f"base/kept-{name}.yaml" for name in kept} == {name for name in CONDITIONS if "/kept-" in name}


def test_a_new_folder_without_a_value_is_refused(k8s: Path) -> None:
    shutil.copytree(k8s / "service", k8s / "another")

    with pytest.raises(NotInTheChart, match=r"k8s/another/service\.yaml has no line in CONDITIONS"):
        templates(k8s)


def test_a_new_folder_of_permissions_has_a_value_of_its_name(k8s: Path) -> None:
    shutil.copytree(k8s / "pods", k8s / "another")
    allowed = ".Values.permissions.another"

    made = templates(k8s)

    assert permissions(k8s)["another"] == permissions(k8s)["pods"]
    assert f"{{{{- if {allowed} }}}}\n" in made["another/rbac.yaml"]
    both = f"{{{{- if and {allowed} .Values.admissionPolicies.enabled }}}}\n"
    assert both in made["another/admission-policy.yaml"]


def test_a_value_whose_place_in_the_manifest_has_changed_is_refused(k8s: Path) -> None:
    file = k8s / "deployment" / "deployment.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("128Mi", "64Mi"), encoding="utf-8")

    with pytest.raises(NoSuchText, match=r"k8s/deployment/deployment\.yaml has 0 times"):
        templates(k8s)


def test_the_chart_says_where_it_comes_from() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    notes = {
        key.removeprefix("artifacthub.io/"): yaml.safe_load(one) for key, one in chart["annotations"].items()
    }

    links = [chart["home"], *chart["sources"], chart["icon"], *(one["url"] for one in notes["links"])]
    assert all(link.startswith(address()) for link in links)
    assert (ROOT / chart["icon"].partition("/raw/main/")[2]).is_file()
    assert chart["maintainers"]
    assert chart["keywords"]
    (crd,) = notes["crds"]
    kind = yaml.safe_load((ROOT / "k8s/crd/nodemaintenances.yaml").read_text(encoding="utf-8"))
    assert crd["name"] == kind["metadata"]["name"]
    assert notes["license"] == "Apache-2.0"


def properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The values of the chart in its schema, without those of the settings."""
    for name, each in schema["properties"].items():
        found = SCHEMA["$defs"][each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        yield name, {**found, **each}
        if "properties" in found and name != "settings":
            yield from properties(found)


def test_the_schema_describes_each_value_and_refuses_others() -> None:
    found = dict(properties(SCHEMA))

    assert len(found) > 40
    assert [name for name, each in found.items() if not each.get("description")] == []
    groups = [SCHEMA, *(each for each in found.values() if "properties" in each)]
    assert {each["additionalProperties"] for each in groups} == {False}


def test_the_default_values_are_those_of_the_model_and_keep_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(VALUES)
    defaults = Values().model_dump(by_alias=True)
    settings = yaml.safe_load((ROOT / "k8s" / "base" / "maintenance.yaml").read_text(encoding="utf-8"))
    del defaults["global"]

    assert {**defaults, "settings": settings} == VALUES


def leaves(part: dict[str, Any], above: str = "") -> Iterator[str]:
    """The path of each value that is no group."""
    for name, field in part["properties"].items():
        found = SCHEMA["$defs"][field["$ref"].rpartition("/")[2]] if "$ref" in field else field
        if "properties" in found and name != "settings":
            yield from leaves(found, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def test_no_value_is_without_effect() -> None:
    texts = [file.read_text(encoding="utf-8") for file in (CHART / "templates").rglob("*") if file.is_file()]
    used = {word for text in texts for word in re.findall(r"\.Values\.([\w.]+)", text)}
    # The helper for the image reads its parts.
    used |= {f"image.{part}" for text in texts for part in re.findall(r"\.(repository|tag|digest)\b", text)}

    assert set(leaves(SCHEMA)) - used == {"global"}
