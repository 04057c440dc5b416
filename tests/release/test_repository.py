"""The address of the repository: the same in the package, the site, the alerts, the chart and the docs."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from release.repository import HOST, address, full_name, tree, write
from release.version import NAME, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def texts() -> dict[str, str]:
    """Each file that is text, but for the tests, which may name other repositories."""
    found = {}
    for file in tree():
        if file.parts[0] != "tests":
            try:
                found[str(file)] = (ROOT / file).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
    return found


def test_no_file_names_another_repository_of_the_project() -> None:
    named = {
        (file, owner)
        for file, text in texts().items()
        for owner in re.findall(rf"(?:github\.com|github\.io|ghcr\.io)/([\w.-]+)/{NAME}\b", text)
    }

    assert {owner for _, owner in named} == {full_name().partition("/")[0]}


def test_each_link_to_a_file_of_the_repository_leads_to_one() -> None:
    link = re.compile(rf"{re.escape(address())}/(?:blob|tree|raw|edit)/main/([\w./-]*[\w/-])")
    linked = {path for text in texts().values() for path in link.findall(text)}

    assert {"CHANGELOG.md", "docs"} <= linked
    assert [path for path in sorted(linked) if not (ROOT / path).exists()] == []


def test_the_package_names_its_pages() -> None:
    assert PROJECT["urls"].keys() == {
        *("Homepage", "Documentation", "Repository", "Issues", "Changelog", "Security")
    }
    assert all(url.startswith(f"{HOST}/{full_name()}") for url in PROJECT["urls"].values())


def test_a_fork_writes_its_name_everywhere(tmp_path: Path) -> None:
    names = [file for file, text in texts().items() if address() in text]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)

    write("Fork-1/drainer", tmp_path, map(Path, names))

    assert full_name(tmp_path) == "Fork-1/drainer"
    assert [name for name in names if address() in (tmp_path / name).read_text(encoding="utf-8")] == []
    rules = (tmp_path / "k8s/monitoring/rules.yaml").read_text(encoding="utf-8")
    assert "https://github.com/Fork-1/drainer/blob/main/docs/runbooks/NodeMaintenanceNoPass.md" in rules


def test_a_repository_whose_name_is_longer_stays(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "page.md").write_text(f"{address()}-charts {address()}.", encoding="utf-8")

    write("a/b", tmp_path, [Path("page.md")])

    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page == f"{address()}-charts https://github.com/a/b."


@pytest.mark.parametrize("bad", ["b", "a/", "a/b/c", "https://github.com/a/b", "a b/c", "-a/b"])
def test_a_repository_is_an_owner_and_a_name(tmp_path: Path, bad: str) -> None:
    with pytest.raises(ValueError, match="OWNER/NAME"):
        write(bad, tmp_path, [])


def test_the_tree_is_what_git_knows_or_would_add(tmp_path: Path) -> None:
    for name in ("known", "new", "deleted", "built"):
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("built\n", encoding="utf-8")
    for words in (["init", "-q"], ["add", "known", "deleted"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "deleted").unlink()

    assert tree(tmp_path) == [Path(".gitignore"), Path("known"), Path("new")]
