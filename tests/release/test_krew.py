"""The plugin for krew: a manifest as krew documents it, archives, and a start file that finds a Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.krew.archive import PLATFORMS, Differs, archive_name, manifest, unpack
from release.packing import pack
from release.version import ROOT, version

KREW = ROOT / "release" / "krew"
DIGESTS = {platform: str(number) * 64 for number, platform in enumerate(PLATFORMS)}


def filled() -> dict[str, Any]:
    found = yaml.safe_load(manifest("https://example.com/v1/", "https://example.com", DIGESTS))
    assert isinstance(found, dict)
    return found


def test_the_manifest_has_the_fields_of_krews_documentation_and_no_other() -> None:
    found = filled()
    spec = found["spec"]

    assert found.keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert found["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert (found["kind"], found["metadata"]) == ("Plugin", {"name": "maintenance"})
    assert spec.keys() == {
        *("version", "homepage", "shortDescription", "description", "caveats", "platforms")
    }
    assert spec["version"] == f"v{version()}"
    assert re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"])


def test_its_texts_are_as_short_as_krew_shows_them() -> None:
    spec = filled()["spec"]

    assert len(spec["shortDescription"]) <= 50
    assert not spec["shortDescription"].endswith(".")
    assert "\n" not in spec["shortDescription"]
    assert max(map(len, (spec["description"] + spec["caveats"]).splitlines())) <= 80


def test_each_platform_has_its_archive_and_no_two_select_the_same() -> None:
    platforms = filled()["spec"]["platforms"]

    assert all(one.keys() == {"selector", "uri", "sha256", "bin"} for one in platforms)
    assert {
        f"{one['selector']['matchLabels']['os']}-{one['selector']['matchLabels']['arch']}": (
            one["uri"],
            one["sha256"],
        )
        for one in platforms
    } == {
        platform: (f"https://example.com/v1/{archive_name(platform)}", digest)
        for platform, digest in DIGESTS.items()
    }
    assert len(platforms) == len(PLATFORMS)
    assert {one["bin"] for one in platforms} == {"kubectl-maintenance"}
    assert all(one["selector"].keys() == {"matchLabels"} for one in platforms)


def test_a_platform_without_a_checksum_is_an_error() -> None:
    with pytest.raises(KeyError):
        manifest("https://example.com", "https://example.com", {"linux-amd64": "0" * 64})


def wheel(folder: Path, name: str, files: dict[str, str]) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as content:
        for file, text in files.items():
            content.writestr(file, text)
    return path


def test_wheels_for_several_pythons_share_a_folder(tmp_path: Path) -> None:
    site = tmp_path / "site"
    both = {"lib/a.py": "a", "lib-1.dist-info/METADATA": "m"}
    first = {**both, "lib/c11.so": "11", "lib-1.dist-info/RECORD": "1"}
    second = {**both, "lib/c12.so": "12", "lib-1.dist-info/RECORD": "2"}
    third = {"x-1.data/platlib/x.py": "x", "x-1.data/scripts/x": ""}

    for name, files in (("1.whl", first), ("2.whl", second), ("3.whl", third)):
        unpack(wheel(tmp_path, name, files), site)

    found = {str(file.relative_to(site)) for file in site.rglob("*") if file.is_file()}
    assert found == {"lib/a.py", "lib/c11.so", "lib/c12.so", "lib-1.dist-info/METADATA", "x.py"}


def test_a_file_that_differs_is_not_replaced(tmp_path: Path) -> None:
    unpack(wheel(tmp_path, "1.whl", {"a.py": "1"}), tmp_path / "site")

    with pytest.raises(Differs, match=r"2\.whl: a\.py differs"):
        unpack(wheel(tmp_path, "2.whl", {"a.py": "2"}), tmp_path / "site")


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b"])
def test_a_wheel_writes_nowhere_else(name: str, tmp_path: Path) -> None:
    with pytest.raises(Differs, match="leads out of the archive"):
        unpack(wheel(tmp_path, "1.whl", {name: "1"}), tmp_path / "site")


def test_an_archive_keeps_what_can_be_run_and_nothing_of_this_machine(tmp_path: Path) -> None:
    folder, packed = tmp_path / "plugin", tmp_path / "plugin.tar.gz"
    folder.mkdir()
    (folder / "run").touch(mode=0o700)
    (folder / "read").touch(mode=0o600)

    pack(folder, packed, 1_700_000_000)

    with tarfile.open(packed) as archive:
        assert [(one.name, one.mode, one.uid, one.mtime) for one in archive] == [
            ("read", 0o644, 0, 1_700_000_000),
            ("run", 0o755, 0, 1_700_000_000),
        ]


class Installed:
    """The start file as krew installs it, with a program that prints its arguments."""

    def __init__(self, folder: Path) -> None:
        self.pythons = folder / "pythons"
        store, bin_ = folder / "store", folder / "bin"
        for made in (self.pythons, store / "site" / "jobs", bin_):
            made.mkdir(parents=True)
        for name in ("kubectl-maintenance", "start.py"):
            (store / name).write_bytes((KREW / name).read_bytes())
        (store / "kubectl-maintenance").chmod(0o755)
        program = "import sys\ndef main():\n    print(*sys.argv)\n    return 3\n"
        (store / "site" / "jobs" / "__main__.py").write_text(program, encoding="utf-8")
        (store / "site" / "jobs" / "__init__.py").touch()
        (store / "link").symlink_to("kubectl-maintenance")
        self.program = bin_ / "kubectl-maintenance"
        self.program.symlink_to(store / "link")

    def python(self, name: str, script: str) -> None:
        file = self.pythons / name
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # The tools of the start file, and no other Python than those of the test.
        for tool in ("sh", "readlink", "dirname"):
            link = self.pythons / tool
            if not link.exists():
                link.symlink_to(f"/usr/bin/{tool}")
        environment = {"PATH": str(self.pythons)}
        return subprocess.run(
            [self.program, *arguments], env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def test_it_starts_under_the_name_of_the_plugin_and_returns_the_exit_code(installed: Installed) -> None:
    installed.python("python3", f'exec {sys.executable} "$@"')

    done = installed.run("report", "a b")

    assert (done.stdout, done.stderr, done.returncode) == ("kubectl-maintenance report a b\n", "", 3)


def test_a_python_that_does_not_work_is_passed_over(installed: Installed) -> None:
    installed.python("python3", f"exec {sys.executable} -c 'import sys; sys.exit(1)'")
    installed.python("python3.14", "echo 'pyenv: command not found' >&2; exit 127")
    installed.python("python3.12", f'exec {sys.executable} "$@"')

    assert installed.run("plan").stdout == "kubectl-maintenance plan\n"


def test_without_a_python_it_says_which_ones_it_needs(installed: Installed) -> None:
    done = installed.run("plan")

    assert done.returncode == 2
    assert done.stderr == "kubectl maintenance needs Python 3.11 to 3.14 in PATH\n"


def test_the_start_file_can_be_run() -> None:
    assert os.access(KREW / "kubectl-maintenance", os.X_OK)
