"""What tests make of a release: scripts for the environment with its tools (`OF_RELEASES`), a manifest."""

from __future__ import annotations

from pathlib import Path

from release.krew.archive import PLATFORMS, manifest
from release.recipe import digest

MAKE = """
import sys
from pathlib import Path
from release import recipe
recipe.LOCKS = {suffix: recipe.LOCKS[suffix] for suffix in sys.argv[2:]}  # each SBOM takes seconds
recipe.make(recipe.Order(Path(sys.argv[1]), trial=True))
"""
"""Makes the files of a release but the plugin. Arguments: the folder, and suffixes of the lock files."""

PACK = """
import sys
from pathlib import Path
from release.krew.archive import archive
archive(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), 1_700_000_000, sys.argv[4:])
"""
"""Makes the archive of the plugin. Arguments: the wheel, the platform, the archive, and its Pythons."""


def write_manifest(packed: Path, folder: Path) -> Path:
    """Write the manifest by which krew installs an archive of the plugin, under its name in a release."""
    text = manifest("https://example.com", "https://example.com", dict.fromkeys(PLATFORMS, digest(packed)))
    path = folder / "maintenance.yaml"
    path.write_text(text, encoding="utf-8")
    return path
