"""The version: the same in the program, the packages, the manifests, the chart and the docs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import reconciler
from jobs.cli import commands
from release.version import PLACES, ROOT, places, version, write, write_commit


def copied(to: Path) -> Path:
    """The files with the version, in a folder of their own."""
    for name in {place.path for place in places()}:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, to / name)
    return to


def test_every_place_has_the_version_of_the_project() -> None:
    assert [place for place in places() if place.version != version()] == []


def test_each_place_that_is_written_exists() -> None:
    found = [(ROOT / place.path, place.line) for place in places()]
    lines = {file: file.read_text(encoding="utf-8").splitlines() for file, _ in found}

    assert [
        (files, before)
        for files, before in PLACES
        if not any(
            file in ROOT.glob(files) and re.search(before, lines[file][line - 1]) for file, line in found
        )
    ] == []


def test_a_checkout_says_its_version_and_that_it_knows_no_commit() -> None:
    assert reconciler.__version__ == version()
    said = CliRunner().invoke(commands, ["--version"]).output
    assert f", version {version()}, commit unknown: only images and the packages of a release name" in said


def test_a_tree_with_its_commit_says_it(tmp_path: Path) -> None:
    for name in ("jobs", "reconciler"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    commit = "0123456789abcdef" * 2 + "01234567"
    write_commit(commit, tmp_path)

    command = [sys.executable, "-m", "jobs", "--version"]
    said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, encoding="utf-8").stdout
    assert said.endswith(f", version {version()}, commit {commit}\n")


def test_no_image_and_no_tag_has_a_version_that_is_not_written() -> None:
    known = {(place.path, place.line) for place in places()}
    found = [
        (str(file.relative_to(ROOT)), number)
        for folder in ("docs", "k8s", "charts", "examples", "image")
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".md", ".yaml", ".yml", ".tpl", ".txt")
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"(node-maintenance-reconciler[:@]v?|newTag: |appVersion: )['\"]?\d", line)
    ]

    assert found
    assert [one for one in found if one not in known] == []


def test_a_new_version_is_written_everywhere(tmp_path: Path) -> None:
    root = copied(tmp_path)
    before = list(places(root))

    write("12.3.45", root)

    assert version(root) == "12.3.45"
    assert [(one.path, one.line, one.version) for one in places(root)] == [
        (one.path, one.line, "12.3.45") for one in before
    ]


@pytest.mark.parametrize("bad", ["1.2", "1.2.3rc1", "v1.2.3", "1.2.3\n"])
def test_a_version_is_three_numbers(tmp_path: Path, bad: str) -> None:
    with pytest.raises(ValueError, match="three numbers"):
        write(bad, tmp_path)
