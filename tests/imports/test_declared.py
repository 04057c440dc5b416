"""Every library that the program imports is declared: what another one brings may go with its next one."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import files, packages_distributions
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
BROUGHT = {"annotated-types", "botocore", "opentelemetry-api", "pydantic-core"}
"""What pydantic, boto3 and the SDK of OpenTelemetry have in their own interfaces."""


def _imported() -> set[str]:
    found: set[str] = set()
    for path in (each for folder in ("reconciler", "jobs") for each in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
    return found


def _distributions(module: str) -> set[str]:
    """Return the distributions that have the module; folders such as `azure` belong to several."""
    shared = packages_distributions().get(module.partition(".")[0], ())
    spec = find_spec(module)
    origin = Path(spec.origin).resolve() if spec is not None and spec.origin else None
    return {
        name.lower().replace("_", "-")
        for name in shared
        if len(set(shared)) == 1
        or any(Path(str(file.locate())).resolve() == origin for file in files(name) or ())
    }


def _is_only_a_folder(module: str) -> bool:
    spec = find_spec(module)
    return spec is not None and spec.origin is None


def test_every_imported_library_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [each for group in project["optional-dependencies"].values() for each in group]
    declared = {re.split(r"[<>=!\[]", each)[0].lower() for each in (*project["dependencies"], *extras)}
    ours = {"reconciler", "jobs", *sys.stdlib_module_names}
    others = {module for module in _imported() if module.partition(".")[0] not in ours}
    assert others
    known = {module: _distributions(module) for module in others if not _is_only_a_folder(module)}
    assert {module for module, names in known.items() if names.isdisjoint(declared | BROUGHT)} == set()
