"""Every library that the program imports is declared: what another one brings may go with its next one."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Collection
from functools import cache
from importlib.metadata import files, packages_distributions
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
BROUGHT = {"annotated-types", "botocore", "opentelemetry-api", "pydantic-core"}
"""What pydantic, boto3 and the SDK of OpenTelemetry have in their own interfaces."""


_IMPORT = re.compile(r"^ *(?:from ([\w.]+) import |import ([\w.]+)(?: as \w+)?(?: +#.*)?$)", re.MULTILINE)


def _imported() -> set[str]:
    return {
        of or itself
        for folder in ("reconciler", "jobs")
        for path in (ROOT / folder).rglob("*.py")
        for of, itself in _IMPORT.findall(path.read_text(encoding="utf-8"))
    }


def _distributions(module: str, shared: Collection[str]) -> set[str]:
    """Return which of these distributions have the module; folders such as `azure` belong to several."""
    path = module.replace(".", "/")
    return {
        name.lower().replace("_", "-")
        for name in shared
        if len(set(shared)) == 1 or not _files(name).isdisjoint({f"{path}.py", f"{path}/__init__.py"})
    }


@cache
def _files(distribution: str) -> frozenset[str]:
    return frozenset(file.as_posix() for file in files(distribution) or ())


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
    installed = packages_distributions()
    known = {
        module: _distributions(module, installed.get(module.partition(".")[0], ()))
        for module in others
        if not _is_only_a_folder(module)
    }
    assert {module for module, names in known.items() if names.isdisjoint(declared | BROUGHT)} == set()
