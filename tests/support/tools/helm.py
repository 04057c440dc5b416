"""Helm with the chart, in folders of its own, so that nothing of the user's configuration counts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[3] / "charts" / "node-maintenance-reconciler"
RELEASE = "maintenance"


class Refused(Exception):
    """Helm ended with an error; the message is its own."""


class Helm:
    """One release of the chart, in one namespace."""

    def __init__(self, program: Path, folder: Path, kubeconfig: Path | None = None) -> None:
        """Use this program, this folder for its files, and this API server."""
        self._program, self._folder = program, folder
        self.namespace = "node-maintenance"
        self._environment = {
            **os.environ,
            **{f"HELM_{one}_HOME": str(folder / one) for one in ("CACHE", "CONFIG", "DATA")},
            "KUBECACHEDIR": str(folder / "kube"),
            "KUBECONFIG": str(kubeconfig or folder / "none"),
        }

    def lint(self) -> str:
        """Return what `helm lint` says; Refused if it found something."""
        return self._run("lint", "--strict", str(CHART))

    def template(
        self, values: dict[str, Any] | None = None, *options: str, tests: bool = False
    ) -> list[dict[str, Any]]:
        """Return the objects for these values; `tests`: with those that exist during `helm test` only."""
        every = () if tests else ("--skip-tests",)
        text = self._run("template", RELEASE, str(CHART), *self._with(values or {}), *options, *every)
        return [one for one in yaml.safe_load_all(text) if one]

    def upgrade(self, values: dict[str, Any], *options: str) -> str:
        """Install the release or upgrade it, and return what Helm says, with the notes."""
        return self._run("upgrade", "--install", RELEASE, str(CHART), *self._with(values), *options)

    def rollback(self, revision: int) -> None:
        """Go back to a revision of the release; the first one is 1."""
        self._run("rollback", RELEASE, str(revision), "--namespace", self.namespace)

    def test(self) -> str:
        """Run the tests of the release, and return what Helm says; Refused if one has failed."""
        return self._run("test", RELEASE, "--namespace", self.namespace)

    def uninstall(self) -> None:
        """Remove the release."""
        self._run("uninstall", RELEASE, "--namespace", self.namespace, "--ignore-not-found")

    def _with(self, values: dict[str, Any]) -> tuple[str, ...]:
        file = self._folder / "values.yaml"
        file.write_text(yaml.safe_dump(values), encoding="utf-8")
        return "--namespace", self.namespace, "--values", str(file)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(self._program), *arguments],
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=120,
            env=self._environment,
        )
        if done.returncode != 0:
            raise Refused(done.stderr)
        return done.stdout
