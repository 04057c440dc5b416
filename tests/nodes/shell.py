"""What a person types in a checkout, and the commands of the docs that say so."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.nodes.cluster import MANIFESTS, Cluster

CHECKOUT = MANIFESTS.parent

LONGEST = 300
"""Seconds that commands may take."""


class Shell:
    """A folder with `charts` and `k8s`, and with nothing of the machine's settings of kubectl and helm."""

    def __init__(self, cluster: Cluster, name: str, programs: Mapping[str, Path]) -> None:
        """Prepare a folder of a name, with `kubectl` and these programs, each under its name."""
        self.folder = cluster.folder / name
        (self.folder / "bin").mkdir(parents=True)
        for each in ("charts", "k8s"):
            (self.folder / each).symlink_to(CHECKOUT / each)
        for each, path in {"kubectl": cluster.controlplane.kubectl, **programs}.items():
            (self.folder / "bin" / each).symlink_to(path)
        self._environment = {
            **os.environ,
            **{f"HELM_{kind}_HOME": str(self.folder / kind) for kind in ("CACHE", "CONFIG", "DATA")},
            "HOME": str(self.folder),
            # krew installs there.
            "PATH": f"{self.folder / 'bin'}:{self.folder / '.krew/bin'}:{os.environ['PATH']}",
            "KUBECONFIG": str(cluster.controlplane.kubeconfig),
        }

    def run(self, typed: str, *, check: bool = True) -> str:
        """Run commands; return what they print."""
        with self.start(f"set -e\n{typed}", output=subprocess.PIPE) as process:
            said, _ = process.communicate(timeout=LONGEST)
        assert not (check and process.returncode), f"{typed.strip()}\nfailed:\n{said}"
        return said

    def start(self, typed: str, output: int | None = subprocess.DEVNULL) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            ["sh", "-c", typed],
            cwd=self.folder,
            env=self._environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )


def commands(page: str, heading: str) -> list[str]:
    """Return the commands in a section of a page."""
    return blocks(page, heading, "sh")


def blocks(page: str, heading: str, language: str) -> list[str]:
    """Return what a section of a page has in this language."""
    text = (CHECKOUT / "docs" / page).read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
