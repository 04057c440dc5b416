"""Programs that Debian has, for machines that are there for tests only."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests.support.tools.building import NoTool


def may_install() -> bool:
    """Whether this machine is there for tests only, so that packages may be installed."""
    return bool(os.environ.get("CI") or os.environ.get("CONTROLPLANE_REQUIRED"))


def install(package: str) -> None:
    """Install a Debian package; raises NoTool if that is impossible."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise NoTool(f"no {package}: only root can install it, with apt-get")
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", package]):
        command = ["apt-get", "-q", *arguments]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise NoTool(f"no {package}: apt-get {arguments[0]} failed: {why}")
