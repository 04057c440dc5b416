"""What tests run in the environment with the tools of a release (`OF_RELEASES`), as scripts."""

from __future__ import annotations

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
