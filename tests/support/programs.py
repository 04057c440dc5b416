"""Our programs as pip installs them, in a folder for PATH: a checkout may be installed under older names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def install(folder: Path, *names: str) -> dict[str, str]:
    """Write programs with these names into the folder; return the environment that finds them."""
    for name in names:
        file = folder / name
        text = f"#!{sys.executable}\nimport sys\nfrom jobs.__main__ import main\nsys.exit(main())\n"
        file.write_text(text, encoding="utf-8")
        file.chmod(0o755)
    return {
        "PATH": f"{folder}{os.pathsep}{os.defpath}",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }
