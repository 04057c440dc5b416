"""Collect the root file system of the image: Python, its packages, and the shared libraries that they load.

What is not collected cannot be misused: there is no shell, no pip, and no other program. Everything is copied
to its own path below the target, so that links, shebangs and the cache of the dynamic linker stay right.

    python -m image.root --app /app --to /image

It collects the interpreter that runs it, and of the packages what unused.py does not name. It needs `ldd` and
the standard library.
"""

from __future__ import annotations

import argparse
import compileall
import py_compile
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from image.unused import unused

# pip (as a wheel), what builds and tests packages, what needs a screen or a terminal, and a database.
LEFT_OUT = (
    *("curses", "distutils", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "sqlite3"),
    *("test", "tkinter", "turtle.py", "turtledemo", "unittest", "venv"),
)
# Compiled modules of these, and others whose libraries are large or are not in each image of Python; tests of
# Python itself; and what the interpreter was built from.
_NOT_LOADED = (
    *("_curses", "_dbm.", "_gdbm.", "_sqlite3.", "_tkinter.", "nis.", "readline."),
    *("_ctypes_test.", "_test", "_xx", "xx", "config-"),
)
_PROGRAMS = re.compile(r"python[\d.]*|reconciler")
_LIBRARY = re.compile(r"(?:=>\s+|^\s+)(/\S+)\s+\(0x", re.MULTILINE)
# The C library loads it when a thread ends; no file names it.
_LOADED_LATER = "libgcc_s.so.1"
_COPIED = ("/etc/ld.so.cache", "/etc/ssl/certs/ca-certificates.crt")
_WRITTEN = {
    "/etc/passwd": "root:x:0:0::/:/none\nnonroot:x:65532:65532::/:/none\n",
    "/etc/group": "root:x:0:\nnonroot:x:65532:\n",
    "/etc/nsswitch.conf": "hosts: files dns\n",
}


def main(arguments: list[str] | None = None) -> None:
    """Collect everything; a file that is missing or a library that is not found ends it with an error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--app", type=Path, required=True, help="the virtual environment with the program")
    parser.add_argument("--to", type=Path, required=True, help="a folder that does not exist yet")
    asked = parser.parse_args(arguments)
    root = asked.to
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    prefix = Path(sys.base_prefix)
    library = prefix / "lib" / version
    _tree(library, root, partial(_not_needed, library))
    # An empty one, because the virtual environment must not find packages of the system.
    _below(root, library / "site-packages").mkdir()
    for name in ("python", "python3", version):
        _copy(prefix / "bin" / name, root)
    (packages,) = asked.app.glob("lib/python*/site-packages")
    left_out = set(unused(packages))
    _tree(asked.app, root, partial(_not_used, left_out))
    needed = [path for path in _shared(library / "lib-dynload") if not path.name.startswith(_NOT_LOADED)]
    needed += [path for path in _shared(asked.app) if left_out.isdisjoint((path, *path.parents))]
    programs = [prefix / "bin" / version, *needed]
    for path in sorted(_libraries(programs)):
        if not path.is_relative_to(asked.app):
            # A copy of what a link leads to, under the name that is asked for.
            _copy(path, root, follow=True)
    for name in _COPIED:
        _copy(Path(name), root, follow=True)
    for name, text in _WRITTEN.items():
        _below(root, Path(name)).write_text(text, encoding="utf-8")
    temporary = _below(root, Path("/tmp"))
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)
    for folder in (library, asked.app):
        _compile(root, folder)


def _not_needed(library: Path, folder: str, names: list[str]) -> Iterable[str]:
    """Leave out the parts of the standard library that the program does not need."""
    left_out = LEFT_OUT if Path(folder) == library else ()
    return [*left_out, *(name for name in names if name.startswith(_NOT_LOADED))]


def _not_used(left_out: set[Path], folder: str, names: list[str]) -> Iterable[str]:
    """Leave out what no command loads, and the programs that packages put beside Python."""
    if Path(folder).name == "bin" and (Path(folder).parent / "pyvenv.cfg").exists():
        return [name for name in names if not _PROGRAMS.fullmatch(name)]
    return [name for name in names if Path(folder, name) in left_out]


def _libraries(programs: list[Path]) -> set[Path]:
    """Return the libraries that these files load, directly or not, as the linker finds them."""
    found: set[Path] = set()
    # One by one: for a file without libraries `ldd` fails.
    for program in programs:
        said = subprocess.run(["ldd", program], capture_output=True, encoding="utf-8", check=False).stdout
        missing = [line.strip() for line in said.splitlines() if "not found" in line]
        if missing:
            raise SystemExit(f"{program}: {', '.join(missing)}")
        found.update(Path(name) for name in _LIBRARY.findall(said))
    folders = {path.parent for path in found}
    found.update(folder / _LOADED_LATER for folder in folders if (folder / _LOADED_LATER).exists())
    return found


def _shared(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.so*") if path.is_file())


def _tree(source: Path, root: Path, left_out: Callable[[str, list[str]], Iterable[str]]) -> None:
    def ignored(folder: str, names: list[str]) -> set[str]:
        return {"__pycache__", *left_out(folder, names)}

    shutil.copytree(source, _below(root, source), symlinks=True, ignore=ignored)


def _copy(path: Path, root: Path, *, follow: bool = False) -> None:
    target = _below(root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target, follow_symlinks=follow)


def _below(root: Path, path: Path) -> Path:
    return root / path.relative_to("/")


def _compile(root: Path, folder: Path) -> None:
    """Compile here, because the root file system of a container is read-only."""
    compileall.compile_dir(
        _below(root, folder),
        quiet=2,
        workers=0,
        stripdir=str(root),
        prependdir="/",
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


if __name__ == "__main__":
    main()
