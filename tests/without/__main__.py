"""Delete each feature and each source in turn from a copy, and check that the rest works without it.

    python -m tests.without [NAME ...]

With a plugin go its folder or file, its tests, its pages in docs with the links to them, its manifests with
what the chart has for them. The types of the program and of the core's tests, the
import contracts, these tests and a day of the simulation must then pass, and nothing of the plugin may be
left that a tooth finds (`teeth.py`). After each plugin alone, all are deleted at once.
It exits with 1 if something breaks or bites.
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
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from reconciler.plugins import names
from tests.without.teeth import left_of
from tests.without.words import WORDS

ROOT = Path(__file__).parents[2]
CORE = ("calendar", "drain", "model", "passes", "profiles", "report", "settings", "simulation", "starts")
"""Folders of tests of the core that need no API server."""

ANNOUNCING = ("arm", "condition", "imds", "named_condition", "request")
"""Sources by which tests of the core announce maintenance. Without one, these tests are left out."""

CHART = Path("charts") / "node-maintenance-reconciler"
ALL = "all"
"""The name of the run without any plugin."""

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
    parser.add_argument(
        "names",
        nargs="*",
        help=f"the plugins to delete, such as publishing, or {ALL}; default: each, then all",
    )
    parser.add_argument("--left", action="store_true", help="only look for what is left, and run nothing")
    chosen = parser.parse_args()
    each = list(plugins())
    runs = {str(plugin): [plugin] for plugin in each} | {ALL: each}
    if chosen.names:
        runs = {
            name: deleted
            for name, deleted in runs.items()
            if not {name, name.rpartition("/")[2]}.isdisjoint(chosen.names)
        }
    whole = True
    with TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as threads:
        copies = (Path(folder) / name for name in runs)
        results = threads.map(partial(without, checks=not chosen.left), runs.values(), copies)
        for name, (broken, left) in zip(runs, results, strict=True):
            found = broken[:_SHOWN]
            found += [f"{tooth}: {place}" for tooth, places in left.items() for place in places]
            whole &= not found
            print(f"{name}: {'breaks' if broken else 'bites' if found else 'ok'}", flush=True)
            for line in found:
                print(f"    {line}", flush=True)
    return 0 if whole else 1


def plugins() -> Iterator[Plugin]:
    """Yield every plugin in its order."""
    yield from (Plugin(room, name) for room in ("features", "sources") for name in names(room))


def without(
    deleted: Sequence[Plugin], copy: Path, *, checks: bool = True
) -> tuple[list[str], dict[str, Sequence[str]]]:
    """Return what breaks without these plugins, a line each, and what is left of them (see `left_of`).

    `copy` is where the project is copied to; it is removed. Without `checks`, nothing is run that may break.
    """
    _copy(copy)
    for plugin in deleted:
        delete(plugin, copy)
    _write_generated(copy)
    unlink(copy)
    try:
        left = left_of([str(plugin) for plugin in deleted], ROOT, copy)
        if not checks:
            return [], left
        if (ROOT / ".mypy_cache").exists():
            shutil.copytree(ROOT / ".mypy_cache", copy / ".mypy_cache")
        announced = not {plugin.name for plugin in deleted}.isdisjoint(ANNOUNCING)
        return _broken(copy, [] if announced else list(_core(copy))), left
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
    """Remove the plugin, its tests, its manifests, its pages, and their names from the list of pages.

    `root` is the folder of the project. In all folders below `tests/real` and `tests/docs`, a file with the
    name of the plugin has its tests.
    """
    for place in (root / "reconciler", root / "tests", root / "tests" / "real"):
        below = place / plugin.room
        shutil.rmtree(below / plugin.name, ignore_errors=True)
        for file in (below / f"{plugin.name}.py", below / f"test_{plugin.name}.py"):
            file.unlink(missing_ok=True)
    for name in ("docs", "real"):
        for file in (root / "tests" / name).rglob(f"test_{plugin.name}.py"):
            file.unlink()
    for name in WORDS[str(plugin)].tests:
        (root / "tests" / name).unlink(missing_ok=True)
    readme = root / "README.md"
    for page in (f"{plugin.name}.md", *WORDS[str(plugin)].pages):
        (root / "docs" / page).unlink(missing_ok=True)
        lines = readme.read_text(encoding="utf-8").splitlines(keepends=True)
        readme.write_text("".join(line for line in lines if f"](docs/{page})" not in line), encoding="utf-8")
    for name in WORDS[str(plugin)].manifests:
        delete_manifest(root, name)


def delete_manifest(root: Path, name: str) -> None:
    """Remove a folder of `k8s`, or a file there with its line, and what the chart has for it."""
    for place in (root / "k8s" / name, CHART / "templates" / name):
        if (root / place).is_dir():
            shutil.rmtree(root / place)
        else:
            (root / place).unlink(missing_ok=True)
    folder, _, file = name.partition("/")
    listed = root / "k8s" / folder / "kustomization.yaml"
    if listed.is_file():
        listed.write_text(listed.read_text(encoding="utf-8").replace(f"- {file}\n", ""), encoding="utf-8")
    else:
        (root / "charts" / "generator" / "folders" / f"{folder}.py").unlink(missing_ok=True)


_LINK = re.compile(r"\[((?:[^][]|\[[^][]*\])*)\]\(([\w./-]+\.md)(?:#[\w-]*)?\)")


def unlink(root: Path) -> None:
    """Leave the words of each link in the docs that leads to no page any more, without the link.

    So a page may name any other one, and nobody has to know which of them a plugin brings.
    """
    for page in (*root.glob("*.md"), *root.glob("docs/**/*.md")):

        def plain(link: re.Match[str], page: Path = page) -> str:
            return link[0] if (page.parent / link[2]).is_file() else link[1]

        page.write_text(_LINK.sub(plain, page.read_text(encoding="utf-8")), encoding="utf-8")


def _write_generated(root: Path) -> None:
    """Write the generated pages and the chart without what the plugin says there."""
    for command in (
        ("reconciler.settings.reference", "docs/settings.md"),
        ("jobs.reference", "docs/commands.md"),
        ("charts.generator",),
    ):
        subprocess.run((sys.executable, "-m", *command), cwd=root, check=False)


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
