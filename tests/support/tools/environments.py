"""Python environments for tools that are not installed beside the tests: one per lock file, in a cache."""

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.support.tools.building import NoTool

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
