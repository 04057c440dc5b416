"""Delete each feature and each source in turn from a copy, and check that the rest works without it.

    python -m tests.without [NAME ...]

With a plugin go its folder or file, its tests, its page in docs and its name in the list. The types of the
program and of the core's tests, the import contracts, these tests and a day of the simulation must then pass.
It exits with 1 if something breaks.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CORE = ("calendar", "drain", "model", "passes", "profiles", "report", "settings", "simulation", "starts")
"""Folders of tests of the core that need no API server."""

ANNOUNCING = ("arm", "condition", "imds", "request")
"""Sources by which tests of the core announce maintenance. Without one, these tests are left out."""

_SHOWN = 12


class Plugin(NamedTuple):
    """A feature or a source: the room in which it stands, and its name."""

    room: str
    name: str

    def __str__(self) -> str:
        return f"{self.room}/{self.name}"


def main() -> int:
    """Print what breaks without each plugin; return 1 if something does."""
    parser = argparse.ArgumentParser(prog="python -m tests.without", description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help="the plugins to delete, such as publishing; default: all")
    names = parser.parse_args().names
    whole = True
    chosen = [plugin for plugin in plugins() if not names or not {plugin.name, str(plugin)}.isdisjoint(names)]
    with TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as runs:
        copies = (Path(folder) / plugin.room / plugin.name for plugin in chosen)
        for plugin, broken in zip(chosen, runs.map(without, chosen, copies), strict=True):
            whole &= not broken
            print(f"{plugin}: {'breaks' if broken else 'ok'}", flush=True)
            for line in broken[:_SHOWN]:
                print(f"    {line}", flush=True)
    return 0 if whole else 1


def plugins() -> Iterator[Plugin]:
    """Yield every plugin in the order of the lists."""
    for room in ("features", "sources"):
        names = re.findall(r'"(\w+)"', _list(ROOT, room).read_text(encoding="utf-8"))
        yield from (Plugin(room, name) for name in names)


def without(plugin: Plugin, copy: Path) -> list[str]:
    """Return what breaks in a copy of the project without this plugin, a line each; remove the copy."""
    _copy(copy)
    delete(plugin, copy)
    cache = copy / ".mypy_cache"
    if (ROOT / ".mypy_cache").exists():
        shutil.copytree(ROOT / ".mypy_cache", cache)
    try:
        return _broken(copy, [] if plugin.name in ANNOUNCING else list(_core(copy)))
    finally:
        shutil.rmtree(copy)


def _broken(copy: Path, tests: Sequence[str]) -> list[str]:
    python = sys.executable
    checks: tuple[tuple[str, ...], ...] = (
        (python, "-m", "mypy", "reconciler", "jobs", *tests),
        (str(Path(python).with_name("lint-imports")), "--no-logo", "--no-cache"),
        (python, "-m", "jobs", "demo"),
    )
    if tests:
        checks = (*checks, (python, "-m", "pytest", "-q", "-x", "-m", "not cluster and not heavy", *tests))
    env = {**os.environ, "LAWS_PROFILE": "quick"}
    for check in checks:
        run = subprocess.run(check, cwd=copy, env=env, capture_output=True, text=True, check=False)
        if run.returncode:
            lines = (run.stdout + run.stderr).splitlines()
            return [line for line in lines if "error" in line.lower() or "BROKEN" in line] or lines[-_SHOWN:]
    return []


def delete(plugin: Plugin, root: Path) -> None:
    """Remove the plugin, its tests, its page and its name from the project in this folder."""
    for place in (root / "reconciler", root / "tests", root / "tests" / "real"):
        below = place / plugin.room
        shutil.rmtree(below / plugin.name, ignore_errors=True)
        for file in (below / f"{plugin.name}.py", below / f"test_{plugin.name}.py"):
            file.unlink(missing_ok=True)
    (root / "docs" / f"{plugin.name}.md").unlink(missing_ok=True)
    listed = _list(root, plugin.room)
    text = listed.read_text(encoding="utf-8")
    listed.write_text(re.sub(rf'"{plugin.name}"(, |,\n    |,)?', "", text), encoding="utf-8")
    _write_docs(root)


def _write_docs(root: Path) -> None:
    """Write the generated pages without what the plugin says there."""
    for module, page in (("reconciler.settings.reference", "settings"), ("jobs.reference", "commands")):
        subprocess.run((sys.executable, "-m", module, f"docs/{page}.md"), cwd=root, check=False)


def _list(root: Path, room: str) -> Path:
    return root / "reconciler" / room / "__init__.py"


def _copy(to: Path) -> None:
    names = subprocess.run(
        ("git", "ls-files", "--cached", "--others", "--exclude-standard"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in names:
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def _core(root: Path) -> Iterator[str]:
    return (f"tests/{name}" for name in CORE if (root / "tests" / name).exists())


if __name__ == "__main__":
    sys.exit(main())
