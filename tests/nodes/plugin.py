"""The plugin of kubectl in the archive that krew installs, for this machine and the Python of the tests."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from release.krew.archive import archive_name
from tests.nodes import images
from tests.support.tools.building import OF_RELEASES, ROOT, NoTool, find_environment
from tests.support.tools.releasing import MAKE, PACK, write_manifest

PLATFORM = "linux-arm64" if platform.machine() == "aarch64" else "linux-amd64"


def archive() -> Path:
    """Return the archive, made if need be (half a minute, from the package index); NoTool if that fails."""
    python = find_environment(*OF_RELEASES) / "python"
    version = "{}.{}".format(*sys.version_info[:2])
    with tempfile.TemporaryDirectory() as folder:
        context, made = Path(folder) / "context", Path(folder) / "made"
        context.mkdir()
        images.copy_context(context)
        shutil.copytree(ROOT / "release", context / "release", ignore=shutil.ignore_patterns("__pycache__"))

        def build(to: Path) -> None:
            _run(python, MAKE, made, "")
            (wheel,) = made.glob("*.whl")
            packed = made / "plugin.tar.gz"
            _run(python, PACK, wheel, PLATFORM, packed, version)
            # In one step: the cache may be on another disk.
            shutil.copy(packed, to.with_suffix(".part"))
            to.with_suffix(".part").rename(to)

        cache = images.cache_folder("plugin")
        return images.kept(cache / f"{images.digest(context, PLATFORM, version)}.tar.gz", build)


def put(packed: Path, folder: Path) -> None:
    """Put the archive and its manifest into a folder, under the names that they have in a release."""
    shutil.copy(packed, folder / archive_name(PLATFORM))
    write_manifest(packed, folder)


def _run(python: Path, script: str, *words: str | Path) -> None:
    command = [str(python), "-c", script, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise NoTool(
            f"no archive of the plugin: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}"
        )
