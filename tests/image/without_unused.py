"""A plugin of pytest that leaves out what the image leaves out: `pytest -p tests.image.without_unused`.

What a test then can't import, no command of an image can.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType

from image.unused import unused

# The tools of the tests load them.
_OF_TOOLS = {"attr", "attrs", "pygments", "cffi", "pycparser"}


def modules(packages: Path) -> set[str]:
    """Return the modules that an image with these packages does not have."""
    left_out: set[str] = set()
    for path in unused(packages):
        for file in [path] if path.is_file() else path.rglob("*.py"):
            if file.suffix == ".py":
                parts = file.relative_to(packages).with_suffix("").parts
                left_out.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return left_out


class Refusing(MetaPathFinder):
    """Refuses to import these modules, as if they were not installed."""

    def __init__(self, refused: set[str]) -> None:
        self._refused = refused

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> None:
        if fullname in self._refused:
            raise ModuleNotFoundError(f"the image has no {fullname}", name=fullname)


def pytest_configure() -> None:
    left_out = modules(Path(sysconfig.get_path("purelib")))
    sys.meta_path.insert(0, Refusing({name for name in left_out if name.partition(".")[0] not in _OF_TOOLS}))
