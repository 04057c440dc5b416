"""axe-core, which finds what keeps people from reading a page: from npm, pinned by version and integrity."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.tools.building import MODULES, NoTool, install, may_install

_PINNED = ("package.json", "package-lock.json")


def find_axe() -> Path:
    """Return the script, installed if need be; raises NoTool if that is impossible."""
    cache = _cache_folder()
    script = cache / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        _install(cache)
    return script


def _cache_folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256()
    for file in _PINNED:
        digest.update((MODULES / "axe" / file).read_bytes())
    return home / "node-maintenance-reconciler" / "tools" / digest.hexdigest()[:16]


def _install(cache: Path) -> None:
    if shutil.which("npm") is None and may_install():
        install("npm")
    npm = shutil.which("npm")
    if npm is None:
        raise NoTool(f"no axe: {cache} does not have it, and there is no npm to install it")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print(f"installing axe-core into {cache}", file=sys.stderr, flush=True)
        for file in _PINNED:
            shutil.copy(MODULES / "axe" / file, cache / file)
        # `npm ci` installs what the lock file says, and checks the integrity.
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=cache, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise NoTool(f"no axe: npm ci failed: {why}")
