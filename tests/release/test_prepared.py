"""A published tree leads to the repository that publishes it, and its chart to the published image."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from release.prepared import CHART, absolute, prepare
from release.repository import tree
from release.version import ROOT, version

HOME = "https://github.com/Fork/Drainer"
IMAGE = "ghcr.io/fork/drainer"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    prepare(folder, "Fork/Drainer")
    return folder


def test_it_has_the_files_of_the_tree_with_their_modes(prepared: Path) -> None:
    files = {str(path.relative_to(prepared)) for path in prepared.rglob("*") if path.is_file()}
    start = prepared / "release" / "krew" / "kubectl-maintenance"

    assert files == {str(file) for file in tree()}
    assert start.stat().st_mode & 0o111


def test_the_package_and_the_alerts_lead_to_the_repository_that_publishes(prepared: Path) -> None:
    project = tomllib.loads((prepared / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    values = yaml.safe_load((prepared / CHART / "values.yaml").read_text(encoding="utf-8"))

    assert project["urls"]["Repository"] == HOME
    assert values["monitoring"]["runbooks"] == f"{HOME}/blob/v{version()}/docs/runbooks/{{alert}}.md"


def test_the_published_readme_does_not_say_that_nothing_is_published(prepared: Path) -> None:
    text = (prepared / "README.md").read_text(encoding="utf-8")

    assert "No image" not in text
    assert f"({HOME}/releases/tag/v{version()}) has its images, chart and packages.\n" in text


def test_the_chart_has_the_published_image_wherever_it_names_the_default(prepared: Path) -> None:
    chart = prepared / CHART
    values = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((chart / "values.schema.json").read_text(encoding="utf-8"))

    assert values["image"]["repository"] == IMAGE
    assert schema["$defs"]["Image"]["properties"]["repository"]["default"] == IMAGE
    assert schema["properties"]["image"]["default"]["repository"] == IMAGE
    assert f'| `image.repository` | `"{IMAGE}"` |' in (chart / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", str(CHART / "README.md")])
def test_each_link_of_a_published_page_is_whole_and_leads_to_a_file(prepared: Path, page: str) -> None:
    text = (prepared / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)", text)
    ours = [link.removeprefix(f"{HOME}/") for link in links if link.startswith(f"{HOME}/")]
    assert [link for link in links if not re.match(r"[a-z]+:|#", link)] == []
    paths = [found[1] for link in ours if (found := re.match(rf"(?:blob|raw)/v{version()}/([^#]+)", link))]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert paths


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        ("README.md", "[a](docs/a.md#x)", "[a](H/blob/vV/docs/a.md#x)"),
        ("README.md", "![a](docs/images/a.png)", "![a](H/raw/vV/docs/images/a.png)"),
        ("README.md", "[![a](docs/a.svg)](docs/b.md)", "[![a](H/raw/vV/docs/a.svg)](H/blob/vV/docs/b.md)"),
        ("README.md", '<img src="docs/a.png" width="9">', '<img src="H/raw/vV/docs/a.png" width="9">'),
        ("charts/c/README.md", "[a](../../docs/a.md)", "[a](H/blob/vV/docs/a.md)"),
        ("README.md", "[a](#x) [b](https://example.com/a.md) [c](mailto:a@example.com)", None),
    ],
)
def test_a_link_by_a_path_becomes_a_url_of_this_version(page: str, link: str, expected: str | None) -> None:
    whole = (expected or link).replace("H/", "https://example.com/o/n/").replace("vV", f"v{version()}")

    assert absolute(link, page, "https://example.com/o/n") == whole
