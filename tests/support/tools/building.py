"""Programs of others that some tests run: each is built once from its pinned Go module, into a cache."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.controlplane.binaries import GO

MODULES = Path(__file__).parent / "build"

# The package of each, which is in the module of the same name in `build`.
PACKAGES = {
    "alertmanager": "github.com/prometheus/alertmanager/cmd/alertmanager",
    "helm": "helm.sh/helm/v4/cmd/helm",
    "krew": "sigs.k8s.io/krew/cmd/krew",
    "prometheus": "github.com/prometheus/prometheus/cmd/prometheus",
    "promtool": "github.com/prometheus/prometheus/cmd/promtool",
    # A program of a few lines, which serves govmomi's simulator.
    "vcsim": ".",
}
# Without the clients of all clouds, which both need for the discovery of targets only.
_TAGS = {"prometheus": "remove_all_sd", "promtool": "remove_all_sd"}


class NoTool(Exception):
    """The program is not here, and can't be built; the message is one line for a person."""


def find_tool(name: str) -> Path:
    """Return the path of a program, built if need be (about two minutes); NoTool if that is impossible."""
    cache = cache_folder(name)
    program = cache / name
    if not program.is_file():
        _build(name, cache)
    return program


def cache_folder(name: str) -> Path:
    """Return where this version of a program is kept; the folder may not exist yet."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256()
    for file in sorted((MODULES / name).iterdir()):
        digest.update(file.read_bytes())
    return home / "node-maintenance-reconciler" / "tools" / digest.hexdigest()[:16]


def _build(name: str, cache: Path) -> None:
    go = next(filter(None, map(shutil.which, GO)), None)
    if go is None:
        raise NoTool(f"no {name}: {cache} does not have it, and there is no Go toolchain to build it")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Another process may have built it while we waited for the lock.
        if (cache / name).is_file():
            return
        print(f"building {name} (once, about two minutes) into {cache}", file=sys.stderr, flush=True)
        made = cache / f".{name}"
        command = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", str(made)]
        command += ["-tags", _TAGS.get(name, "")]
        done = subprocess.run(
            [*command, PACKAGES[name]],
            cwd=MODULES / name,
            env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise NoTool(f"no {name}: the build failed: {why}")
        made.rename(cache / name)
