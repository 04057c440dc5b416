"""What people and programs find first in the repository: forms, rules, and proposals of newer versions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from jobs.cli import commands
from release.publishing import BASE
from release.repository import address
from release.version import ROOT

GITHUB = ROOT / ".github"
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
INPUTS = {"textarea", "input", "dropdown", "checkboxes"}


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_a_form_has_what_github_demands(form: Path) -> None:
    found = read(form)
    inputs = [part for part in found["body"] if part["type"] != "markdown"]

    assert found.keys() <= {"name", "description", "labels", "body"}
    assert 3 < len(found["name"]) < 60
    assert len(found["description"]) < 200
    assert {part["type"] for part in inputs} <= INPUTS
    assert len({part["id"] for part in inputs}) == len(inputs)
    assert all(part["attributes"]["label"] for part in inputs)
    assert any(part.get("validations", {}).get("required") for part in inputs)


def test_a_report_needs_the_file_of_the_node_and_the_version() -> None:
    parts = {part.get("id"): part for part in read(GITHUB / "ISSUE_TEMPLATE" / "bug.yml")["body"]}

    assert "reconciler record NODE" in parts["record"]["attributes"]["description"]
    assert parts["record"]["validations"]["required"]
    assert "reconciler --version" in parts["version"]["attributes"]["description"]


def test_each_command_in_a_form_is_one_of_the_program() -> None:
    named = {
        (name, option)
        for form in FORMS
        for name, option in re.findall(
            r"`reconciler (\w+)(?: NODE)?(?: (--\w+))?[^`]*`", form.read_text(encoding="utf-8")
        )
    }

    assert ("explain", "") in named
    for name, option in named:
        command = commands.get_command(click.Context(commands), name)
        assert command is not None, name
        assert not option or any(option in parameter.opts for parameter in command.params)


def test_the_readme_shows_how_the_tests_went() -> None:
    badges = re.findall(
        r"\[!\[(\w+)\]\((\S+)/badge\.svg\?branch=main\)\]\((\S+)\)",
        (ROOT / "README.md").read_text(encoding="utf-8"),
    )

    assert badges
    for name, picture, page in badges:
        assert picture == page == f"{address()}/actions/workflows/{name}.yml"
        assert (GITHUB / "workflows" / f"{name}.yml").is_file()


@pytest.mark.parametrize(
    "file",
    [*FORMS, GITHUB / "pull_request_template.md", ROOT / "CODE_OF_CONDUCT.md"],
    ids=lambda file: file.name,
)
def test_each_file_that_a_front_page_names_exists(file: Path) -> None:
    named = re.findall(r"\b((?:docs/)?[\w-]+\.md)\b", file.read_text(encoding="utf-8"))

    assert [name for name in named if not (ROOT / name).is_file()] == []


def updates() -> dict[str, list[dict[str, Any]]]:
    """What Dependabot updates, by the kind of it."""
    found: dict[str, list[dict[str, Any]]] = {}
    for update in read(GITHUB / "dependabot.yml")["updates"]:
        found.setdefault(update["package-ecosystem"], []).append(update)
    return found


# Kubernetes and what has its version: docs/versions.md says which are tested.
BY_HAND = {f"tests/support/controlplane/{name}" for name in ("build/kubernetes", "minors", "nodes")}


def test_each_module_of_go_and_npm_gets_newer_versions_or_has_a_reason() -> None:
    modules = {str(file.parent.relative_to(ROOT)) for file in (ROOT / "tests").rglob("go.mod")}
    packages = {str(file.parent.relative_to(ROOT)) for file in (ROOT / "tests").rglob("package.json")}
    by_hand = {module for module in modules for reason in BY_HAND if Path(module).is_relative_to(reason)}
    (go,), (npm,) = updates()["gomod"], updates()["npm"]

    assert {f"/{module}" for module in modules - by_hand} == set(go["directories"])
    assert {f"/{package}" for package in packages} == {npm["directory"]}


def test_each_module_of_go_names_what_it_is_there_for() -> None:
    (go,) = updates()["gomod"]
    names = [rule["dependency-name"].rstrip("*") for rule in go["allow"]]
    required = {
        directory: re.findall(r"^\s*(?:require )?([\w./-]+) v\S+", text, re.MULTILINE)
        for directory in go["directories"]
        for text in [(ROOT / directory[1:] / "go.mod").read_text(encoding="utf-8")]
    }

    assert [
        directory
        for directory, found in required.items()
        if not any(module.startswith(name) for module in found for name in names)
    ] == []
    assert [
        name
        for name in names
        if not any(module.startswith(name) for found in required.values() for module in found)
    ] == []


def test_the_base_of_the_image_keeps_its_python() -> None:
    (docker,) = updates()["docker"]
    (base,) = re.findall(
        r"^FROM (\S+?)(?:@sha256:[0-9a-f]{64})?$", BASE.read_text(encoding="utf-8"), re.MULTILINE
    )

    assert docker["directory"] == f"/{BASE.parent.relative_to(ROOT)}"
    # By this name, Dependabot knows it for a Dockerfile.
    assert "dockerfile" in BASE.name.lower()
    assert docker["ignore"][0]["update-types"] == [
        "version-update:semver-major",
        "version-update:semver-minor",
    ]
    assert base == "docker.io/library/python:3.11-slim"
    assert "an image of Python 3.11 " in (ROOT / "Dockerfile").read_text(encoding="utf-8")
