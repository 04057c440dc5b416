"""docs/plugins.md: what plugins may rely on exists, and the example uses nothing else."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/plugins.md").read_text(encoding="utf-8")
NAMES = {
    module: re.findall(r"`(\w+)`", names.partition(" with ")[0])
    for module, names in re.findall(r"^- `(reconciler\.[\w.]+)`: (.+)$", PAGE, re.MULTILINE)
}


def test_what_a_plugin_may_rely_on_exists() -> None:
    assert NAMES
    missing = [
        f"{module}.{name}"
        for module, names in NAMES.items()
        for name in names
        if not hasattr(import_module(module), name)
    ]
    assert missing == []


def test_the_example_relies_on_nothing_else() -> None:
    (path,) = (ROOT / "examples/plugin").glob("*.py")
    imported = {
        f"{node.module}.{each.name}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reconciler")
        for each in node.names
    }

    assert imported
    assert imported <= {f"{module}.{name}" for module, names in NAMES.items() for name in names}
