"""The image on this machine: its base by debootstrap, the image by the project's Dockerfile, as an archive.

    python -m tests.nodes.images [--version 0.9.0] [--lock requirements-aws.lock]

prints the path of a docker-archive, which `ctr images import` reads. It needs root, the packages that
`missing` names, and the machine's own network: pip and debootstrap download packages. Archives are kept by
what they are made of, so the second call takes no time.
"""

from __future__ import annotations

import argparse
import configparser
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from image import parts
from release.version import ROOT, write
from release.version import version as version_of

NAME = "docker.io/library/node-maintenance-reconciler"
# What the Dockerfile copies; it fails if something is not here.
_INPUTS = ("Dockerfile", ".dockerignore", "LICENSE", "README.md", "pyproject.toml", "requirements*.lock")
_FOLDERS = ("image", "jobs", "reconciler")
_BASE = ("bookworm", "python3,python3-venv,python3-pip,ca-certificates,tzdata")
# Each program that is needed, and its package in Debian.
PROGRAMS = {"buildah": "buildah", "debootstrap": "debootstrap", "unshare": "util-linux"}
# An archive has about 110 MB, and a run needs two. Runs of other checkouts may need others.
_KEPT = 8


class NoImage(Exception):
    """The image can't be built here; the message says what to do."""


def missing() -> list[str]:
    """Return what this machine lacks to build the image, each with the way to get it."""
    lacks = [] if sys.platform == "linux" else ["Linux: debootstrap and buildah run nowhere else"]
    if os.geteuid() != 0:
        lacks.append("root: run it with sudo")
    packages = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if packages:
        lacks.append(f"{', '.join(packages)}: run apt-get install {' '.join(packages)}")
    return lacks


def image(version: str = "", lock: str = "requirements.lock") -> Path:
    """Return the archive of the image, built if need be (some minutes); NoImage if that is impossible.

    With a version, the program in the image says this one, and the image has it as its tag.
    """
    cache = cache_folder("image")
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        copy_context(context, version)

        def build(archive: Path) -> None:
            if lacks := missing():
                raise NoImage(f"no image: this machine lacks {'; '.join(lacks)}")
            _build(context, cache, archive, lock)

        return kept(cache / f"{digest(context, str(_BASE), lock)}.tar", build)


def kept(archive: Path, build: Callable[[Path], None]) -> Path:
    """Return an archive of a cache, built if need be."""
    # The oldest go: those that nobody asked for since. This one may go at this moment.
    with suppress(FileNotFoundError):
        os.utime(archive)
        return archive
    cache = archive.parent
    with _alone(cache):
        # Another process may have built it while we waited.
        if not archive.is_file():
            build(archive)
        for old in sorted(cache.glob("*.tar*"), key=lambda path: path.stat().st_mtime)[:-_KEPT]:
            old.unlink()
    return archive


def cache_folder(name: str) -> Path:
    """Return a folder for what takes long to make."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = home / "node-maintenance-reconciler" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def copy_context(to: Path, version: str = "") -> None:
    """Copy what the image is built from, and write another version into it."""
    for pattern in _INPUTS:
        for file in ROOT.glob(pattern):
            shutil.copy2(file, to / file.name)
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
    if version:
        write(version, to)


def digest(context: Path, *texts: str) -> str:
    """Return a digest of some texts, and of all files in a folder, with their names and modes."""
    digest = hashlib.sha256("".join(f"{text}\0" for text in texts).encode())
    for file in sorted(path for path in context.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(context)}\0{file.stat().st_mode & 0o777}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _build(context: Path, cache: Path, archive: Path, lock: str) -> None:
    base = _base(cache)
    began = time.monotonic()
    tag = f"{NAME}:{version_of(context)}"
    with _folder(cache) as folder:
        # Its own storage: images of the machine are neither used nor left behind.
        storage = ("--root", str(folder / "storage"), "--runroot", str(folder / "run"))

        def buildah(*words: str) -> str:
            return _run(["buildah", *storage, "--storage-driver", "vfs", *words])

        container = buildah("from", "scratch")
        buildah("add", container, str(base), "/")
        buildah("commit", container, "localhost/python:base")
        buildah("rm", container)
        # The Dockerfile demands a digest. A local image has one, so no registry is needed.
        digest = buildah("images", "--format", "{{.Digest}}", "localhost/python:base")
        pip = folder / "pip"
        _pip_configuration(pip)
        buildah(
            *("build", "--pull-never", "--isolation", "chroot", "--tag", tag),
            *("--build-arg", f"PYTHON=localhost/python@{digest}", "--build-arg", f"LOCK={lock}"),
            *("--volume", f"{pip}:/pip:ro", "--volume", f"{pip}/pip.conf:/etc/pip.conf:ro"),
            str(context),
        )
        made = folder / "image.tar"
        buildah("push", tag, f"docker-archive:{made}:{tag}")
        made.rename(archive)
    _say(f"built {tag} in {time.monotonic() - began:.0f} s: {archive}")


def _base(cache: Path) -> Path:
    """Return the root of a small Debian with Python and pip, as the official images of Python are one."""
    suite, packages = _BASE
    root = cache / f"{suite}-{hashlib.sha256(packages.encode()).hexdigest()[:8]}"
    if root.is_dir():
        return root
    began = time.monotonic()
    with _folder(cache) as folder:
        made = folder / "root"
        _run(["debootstrap", "--variant=minbase", f"--include={packages}", suite, str(made)])
        for path in (made / "var/cache/apt/archives", made / "var/lib/apt/lists"):
            shutil.rmtree(path)
        (made / "usr/bin/python").symlink_to("python3")
        # It forbids pip to install beside Debian's packages, which the images of Python permit.
        for path in made.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
            path.unlink()
        made.rename(root)
    _say(f"made the base in {time.monotonic() - began:.0f} s")
    return root


def _pip_configuration(folder: Path) -> None:
    """Write the machine's configuration of pip for the build, with its certificates beside it."""
    folder.mkdir()
    parser = configparser.RawConfigParser()
    home = Path.home()
    parser.read(["/etc/pip.conf", home / ".pip/pip.conf", home / ".config/pip/pip.conf"])
    values = dict(parser["global"]) if parser.has_section("global") else {}
    for name in ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "cert"):
        if given := os.environ.get(f"PIP_{name.upper().replace('-', '_')}"):
            values[name] = given
    # These name folders and files of the machine.
    values = {key: value for key, value in values.items() if key not in ("find-links", "cache-dir", "target")}
    bundle = Path(
        values.get("cert") or os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt"
    )
    if bundle.is_file():
        shutil.copy(bundle, folder / "ca.crt")
        values["cert"] = "/pip/ca.crt"
    lines = ["[global]", *(f"{key} = {value}" for key, value in values.items())]
    (folder / "pip.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _run(command: list[str]) -> str:
    """Run it with mounts of its own, so that none stays if it is killed; return what it printed last."""
    done = subprocess.run(
        ["unshare", "--mount", *command], capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode:
        said = "\n".join([*done.stdout.splitlines(), *done.stderr.splitlines()][-20:])
        raise NoImage(f"no image: {command[0]} failed with exit code {done.returncode}:\n{said}")
    return (done.stdout.strip().splitlines() or [""])[-1]


@contextmanager
def _folder(cache: Path) -> Iterator[Path]:
    """Give a folder for a build. What a killed one left goes with the next."""
    for left in cache.glob(".building-*"):
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".building-") as folder:
        yield Path(folder)


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    with (cache / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"waiting for another build in {cache}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(line: str) -> None:
    print(f"images: {line}", file=sys.stderr, flush=True)


def main() -> None:
    """Build it, and print the path of the archive."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--version", default="", help="another version than the tree's, such as 0.9.0")
    arguments.add_argument(
        "--lock", default="requirements.lock", help="the packages, such as those of an extra"
    )
    arguments.add_argument("--parts", action="store_true", help="also print its largest parts")
    chosen = arguments.parse_args()
    try:
        archive = image(chosen.version, chosen.lock)
    except NoImage as error:
        sys.exit(str(error))
    print(archive, flush=True)
    if chosen.parts:
        sys.exit(parts.main([str(archive)]))


if __name__ == "__main__":
    main()
