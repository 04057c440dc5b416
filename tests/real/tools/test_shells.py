"""The scripts for zsh and fish, in the real shells. The one for bash is tested with the commands."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.terminal import completes


def shell(name: str) -> str:
    """Return the path of a shell, installed where no tool may be missing; else skip the test."""
    if shutil.which(name) is None and os.environ.get("CONTROLPLANE_REQUIRED") and os.geteuid() == 0:
        for command in (["update"], ["install", "-y", "--no-install-recommends", name]):
            subprocess.run(["apt-get", "-q", *command], check=True, capture_output=True, timeout=600)
    found = shutil.which(name)
    if found is not None:
        return found
    message = f"no {name} on the path; apt-get install {name}"
    if os.environ.get("CONTROLPLANE_REQUIRED"):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


def test_the_script_works_in_zsh(tmp_path: Path) -> None:
    first = "autoload -U compinit; compinit -u -D; source <(reconciler completion zsh)"

    completes([shell("zsh"), "-f", "-i"], first, tmp_path)


def test_the_script_works_in_fish(tmp_path: Path) -> None:
    completes([shell("fish"), "--no-config", "-i"], "reconciler completion fish | source", tmp_path)
