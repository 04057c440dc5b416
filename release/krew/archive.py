"""Packs the plugin for one platform, and fills in the manifest that krew reads.

An archive has the program, the start file, and all libraries for each Python.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from string import Template
from types import MappingProxyType

from release.packing import pack
from release.version import ROOT, version

PYTHONS = ("3.11", "3.12", "3.13", "3.14")

PLATFORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "linux-amd64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
        "linux-arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
        "darwin-arm64": ("macosx_11_0_arm64",),
    }
)
"""krew's names of the platforms, and pip's tags for them, of systems that are still supported.

There is none for Macs with Intel processors: cryptography 50 has no wheel for them.
"""

_OWN = Path(__file__).parent
_STARTED = ("kubectl-maintenance", "start.py")


class Differs(Exception):
    """Two packages have the same file with different content; the message names it."""


def archive(wheel: Path, platform: str, to: Path, time: int, pythons: Iterable[str] = PYTHONS) -> None:
    """Write the archive for a platform, with our own wheel; all times in it are `time`, in seconds.

    The libraries are those of `requirements.lock`, by their hashes. Raises CalledProcessError if pip fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        root, wheels = Path(folder) / "plugin", Path(folder) / "wheels"
        for name in _STARTED:
            (root / "site").mkdir(parents=True, exist_ok=True)
            shutil.copy(_OWN / name, root / name)
        shutil.copy(ROOT / "LICENSE", root / "LICENSE")
        for python in pythons:
            _download(python, PLATFORMS[platform], wheels / python)
            for one in sorted((wheels / python).glob("*.whl")):
                unpack(one, root / "site")
        unpack(wheel, root / "site")
        pack(root, to, time)


def unpack(wheel: Path, to: Path) -> None:
    """Write the files of a wheel; Differs if one is there with another content.

    The compiled files of each Python have names of their own, so libraries for several share a folder.
    """
    with zipfile.ZipFile(wheel) as content:
        for entry in content.infolist():
            path = _place(PurePosixPath(entry.filename))
            if path is None or entry.is_dir():
                continue
            file, data = to / path, content.read(entry)
            if file.exists() and file.read_bytes() != data:
                raise Differs(f"{wheel.name}: {path} differs from the one that is there")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def _place(path: PurePosixPath) -> Path | None:
    """Return where a file of a wheel belongs, None if it is not needed to run the program."""
    if path.is_absolute() or ".." in path.parts:
        raise Differs(f"{path} leads out of the archive")
    first = path.parts[0]
    if first.endswith(".dist-info"):
        # The others say which wheel it was, and that differs from one Python to the next.
        needed = path.name in ("METADATA", "entry_points.txt") or "licenses" in path.parts
        return Path(path) if needed else None
    if first.endswith(".data"):
        return Path(*path.parts[2:]) if path.parts[1] in ("purelib", "platlib") else None
    return Path(path)


def _download(python: str, tags: Iterable[str], to: Path) -> None:
    words = ["download", "--quiet", "--disable-pip-version-check", "--dest", str(to), "--no-deps"]
    words += ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    words += [word for tag in tags for word in ("--platform", tag)]
    words += ["--require-hashes", "--requirement", str(ROOT / "requirements.lock")]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)


def archive_name(platform: str) -> str:
    """Return the name of the archive for a platform."""
    return f"kubectl-maintenance-{version()}-{platform}.tar.gz"


def manifest(uri: str, homepage: str, digests: Mapping[str, str]) -> str:
    """Return the manifest. `uri` is the folder of the archives, `digests` are their SHA-256 by platform.

    Raises KeyError if the template names a platform that has no digest.
    """
    named = {platform.replace("-", "_"): digest for platform, digest in digests.items()}
    text = (_OWN / "maintenance.yaml").read_text(encoding="utf-8")
    return Template(text).substitute(named, version=version(), uri=uri.rstrip("/"), homepage=homepage)
