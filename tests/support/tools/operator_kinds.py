"""The kinds of the Prometheus Operator, from its pinned Go module: nothing is built."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.support.controlplane.binaries import GO
from tests.support.tools.building import MODULES, NoTool, cache_folder

NAME = "prometheus-operator"
MODULE = f"github.com/prometheus-operator/{NAME}"
KINDS = ("podmonitors", "prometheusrules")


def find_kinds() -> list[Path]:
    """Return the file of each definition, downloaded if need be; NoTool if that is impossible."""
    cache = cache_folder(NAME)
    if not all(file.is_file() for file in _files(cache)):
        downloaded = Path(_download()) / "example" / "prometheus-operator-crd"
        cache.mkdir(parents=True, exist_ok=True)
        for file in _files(downloaded):
            # In one step, because another process may do the same.
            made = cache / f".{file.name}.{os.getpid()}"
            shutil.copyfile(file, made)
            made.rename(cache / file.name)
    return _files(cache)


def _files(folder: Path) -> list[Path]:
    return [folder / f"monitoring.coreos.com_{kind}.yaml" for kind in KINDS]


def _download() -> str:
    go = next(filter(None, map(shutil.which, GO)), None)
    if go is None:
        raise NoTool(f"no definitions of {NAME}: there is no Go toolchain to download them with")
    done = subprocess.run(
        [go, "mod", "download", "-json", MODULE],
        cwd=MODULES / NAME,
        env={**os.environ, "GOWORK": "off"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode != 0:
        raise NoTool(f"no definitions of {NAME}: {done.stderr.strip() or done.stdout.strip()}")
    return str(json.loads(done.stdout)["Dir"])
