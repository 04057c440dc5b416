"""krew itself checks the manifest, and installs the archive: the plugin runs without our packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from release.krew.archive import PLATFORMS
from release.krew.manifest import archive_name, manifest
from release.recipe import digest
from release.version import ROOT, version
from tests.support.tools.building import NoTool
from tests.support.tools.environments import OF_RELEASES, find_environment

pytestmark = [pytest.mark.tools, pytest.mark.slow]

PLATFORM = "linux-amd64"
TIME = 1_700_000_000
MAKE = (
    "import sys; from pathlib import Path; from release.krew.archive import archive;"
    f"archive(Path(sys.argv[1]), '{PLATFORM}', Path(sys.argv[2]), {TIME}, sys.argv[3:])"
)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive for this machine, with the libraries for the Python of the tests."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip(f"the archive of the test is for {PLATFORM}")
    try:
        python = find_environment(*OF_RELEASES) / "python"
    except NoTool as error:
        if os.environ.get("CONTROLPLANE_REQUIRED"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("krew")
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    build = [str(python), "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, cwd=ROOT, env=environment, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    own = "{}.{}".format(*sys.version_info[:2])
    made = folder / archive_name(PLATFORM)
    subprocess.run([python, "-c", MAKE, wheel, made, own], cwd=ROOT, check=True, capture_output=True)
    return made


def test_krew_installs_the_plugin_and_it_runs(packed: Path, krew_program: Path, tmp_path: Path) -> None:
    filled = tmp_path / "maintenance.yaml"
    digests = dict.fromkeys(PLATFORMS, digest(packed))
    filled.write_text(manifest("https://example.com", "https://example.com", digests), encoding="utf-8")
    python = tmp_path / "python"
    python.mkdir()
    (python / "python3").symlink_to(Path(sys.executable).resolve())
    root = tmp_path / "root"
    environment = {
        "PATH": os.pathsep.join((str(root / "bin"), str(python), os.defpath)),
        "HOME": str(tmp_path),
        "KREW_ROOT": str(root),
    }

    done = subprocess.run(
        [krew_program, "install", f"--manifest={filled}", f"--archive={packed}"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Installed plugin: maintenance" in done.stderr

    kubectl = shutil.which("kubectl")
    command = [kubectl, "maintenance"] if kubectl else [root / "bin" / "kubectl-maintenance"]
    for arguments, shown in (
        (["--version"], f"kubectl maintenance, version {version()}\n"),
        (["demo"], "uncordon"),
    ):
        ran = subprocess.run(
            [*command, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert shown in ran.stdout
