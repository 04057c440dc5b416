"""Newer lock files are proposed on a branch of their own, from a clone whose remote is a folder."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from release.updates import BRANCH, TITLE, propose

GH = """#!/bin/sh
echo "$*" >> "$GH_LOG"
case "$*" in "pr list "*) cat "$GH_OPEN" ;; esac
"""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a lock file and another one, and a stand-in for gh that knows no pull request."""
    remote, clone, programs = tmp_path / "remote", tmp_path / "clone", tmp_path / "bin"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    git(tmp_path, "clone", "--quiet", str(remote), str(clone))
    for name in ("requirements.lock", "README.md"):
        (clone / name).write_text("old\n", encoding="utf-8")
    git(clone, "add", ".")
    git(clone, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "First")
    git(clone, "push", "--quiet", "origin", "HEAD:main")
    programs.mkdir()
    (programs / "gh").write_text(GH, encoding="utf-8")
    (programs / "gh").chmod(0o755)
    (tmp_path / "open").write_text("[]\n", encoding="utf-8")
    monkeypatch.setenv("GH_LOG", str(tmp_path / "log"))
    monkeypatch.setenv("GH_OPEN", str(tmp_path / "open"))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return clone


def asked(clone: Path) -> list[str]:
    """The words of gh, without the text of the pull request."""
    lines = (clone.parent / "log").read_text(encoding="utf-8").splitlines()
    return [line.partition(" --body")[0] for line in lines]


CREATED = f"pr create --head {BRANCH} --title {TITLE}"
LISTED = f"pr list --head {BRANCH} --json number"
TESTED = f"workflow run ci.yml --ref {BRANCH}"


def test_changed_locks_alone_are_proposed_and_tested(clone: Path) -> None:
    for name in ("requirements.lock", "README.md"):
        (clone / name).write_text("new\n", encoding="utf-8")

    assert propose(clone)

    assert git(clone.parent / "remote", "show", f"{BRANCH}:requirements.lock") == "new"
    assert git(clone.parent / "remote", "show", f"{BRANCH}:README.md") == "old"
    assert asked(clone) == [LISTED, CREATED, TESTED]


def test_a_pull_request_that_is_open_gets_the_newest_locks(clone: Path) -> None:
    (clone / "requirements.lock").write_text("newer\n", encoding="utf-8")
    propose(clone)
    git(clone, "switch", "--quiet", "-")
    (clone.parent / "open").write_text('[{"number":1}]\n', encoding="utf-8")
    (clone / "requirements.lock").write_text("newest\n", encoding="utf-8")

    assert propose(clone)

    assert git(clone.parent / "remote", "show", f"{BRANCH}:requirements.lock") == "newest"
    assert git(clone.parent / "remote", "rev-list", "--count", f"main..{BRANCH}") == "1"
    assert asked(clone) == [LISTED, CREATED, TESTED, LISTED, TESTED]


def test_unchanged_locks_ask_nobody(clone: Path) -> None:
    (clone / "README.md").write_text("new\n", encoding="utf-8")

    assert not propose(clone)

    assert not (clone.parent / "log").exists()
