"""Programs and environments of others that some tests run: built once, or installed, into a cache."""

from __future__ import annotations

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
    "actionlint": "github.com/rhysd/actionlint/cmd/actionlint",
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


ROOT = Path(__file__).parents[3]

OF_DOCS = ("requirements-docs.lock",)
OF_RELEASES = ("requirements-build.lock", "requirements-release.lock")
"""The lock files of two environments that tests use."""


def find_environment(*locks: str) -> Path:
    """Return the folder of an environment's programs, with what the lock files name, each by its hash.

    It is made on the first use, for which pip needs its registry. NoTool if that is impossible.
    """
    digest = hashlib.sha256(sys.version.encode())
    for lock in locks:
        digest.update((ROOT / lock).read_bytes())
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = home / "node-maintenance-reconciler" / "environments" / digest.hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock_file:
        # Another process may be making it.
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        if not (cache / "complete").exists():
            _make(cache / "venv", locks)
            (cache / "complete").touch()
    return cache / "venv" / "bin"


def _make(folder: Path, locks: tuple[str, ...]) -> None:
    print(f"installing {', '.join(locks)} (once, about a minute) into {folder}", file=sys.stderr, flush=True)
    named = [word for lock in locks for word in ("-r", str(ROOT / lock))]
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--require-hashes", *named]
    for command in ([sys.executable, "-m", "virtualenv", "-q", "--clear", str(folder)], pip):
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise NoTool(f"no environment with {', '.join(locks)}: {why}")
