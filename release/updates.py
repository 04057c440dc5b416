"""`python -m release.updates`: propose changed lock files as a pull request, in the workflow `updates`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from release.version import ROOT

BRANCH = "updates/locks"
TITLE = "Update the lock files"
_USER = (
    "-c",
    "user.name=github-actions[bot]",
    "-c",
    "user.email=github-actions[bot]@users.noreply.github.com",
)
# `actions/checkout` leaves no token in the settings of Git; gh has it from the environment.
_TOKEN = ("-c", "credential.helper=!gh auth git-credential")


def propose(root: Path = ROOT) -> bool:
    """Push changed lock files to a branch, and open its pull request; return whether there are some."""
    files = sorted(file.name for file in root.glob("requirements*.lock"))

    def run(*words: str) -> str:
        return subprocess.run(words, cwd=root, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout

    if not run("git", "status", "--porcelain", "--", *files):
        return False
    run("git", "switch", "--quiet", "--force-create", BRANCH)
    run("git", *_USER, "commit", "--quiet", "--message", TITLE, "--", *files)
    run("git", *_TOKEN, "push", "--quiet", "--force", "origin", BRANCH)
    if run("gh", "pr", "list", "--head", BRANCH, "--json", "number").strip() == "[]":
        body = "Newer packages, as `nox -s lock -- --upgrade` found them."
        run("gh", "pr", "create", "--head", BRANCH, "--title", TITLE, "--body", body)
    # What a workflow pushes starts no other workflow, so the tests of the branch are started here.
    run("gh", "workflow", "run", "ci.yml", "--ref", BRANCH)
    return True


if __name__ == "__main__":
    print("proposed" if propose() else "nothing is newer", file=sys.stderr)
