"""The files of a release: made twice with the same bytes, complete, and installed without a registry."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import publishing, recipe
from release.krew.archive import archive_name
from release.recipe import digest
from release.repository import full_name, image_name
from release.version import version
from tests.support.tools.building import OF_RELEASES, NoTool, find_environment
from tests.support.tools.releasing import MAKE, PACK, write_manifest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def run(*words: str | Path, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, words)),
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter with the tools of a release."""
    try:
        return find_environment(*OF_RELEASES) / "python"
    except NoTool as error:
        if os.environ.get("CONTROLPLANE_REQUIRED"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def made(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    run(python, "-c", MAKE, folder, *LOCKS)
    return folder


def wheel(made: Path) -> Path:
    (found,) = made.glob("*.whl")
    return found


LOCKS = {suffix: recipe.LOCKS[suffix] for suffix in ("", "-aws")}
OF_ALL = {"SHA256SUMS", f"node-maintenance-reconciler-{version()}.intoto.json"}
"""Files with the checksums of all others."""


def test_the_same_tree_makes_the_same_bytes(made: Path, python: Path, tmp_path: Path) -> None:
    run(python, "-c", MAKE, tmp_path / "again", "", TZ="Asia/Kolkata", LC_ALL="C")

    sums = {file.name: digest(file) for file in made.iterdir()}
    again = {file.name: digest(file) for file in (tmp_path / "again").iterdir()}
    assert len(sums) == 5 + len(LOCKS)
    assert len(again) == 5 + 1
    assert {name for name, found in again.items() if found != sums[name]} == OF_ALL


def test_the_checksums_are_right(made: Path) -> None:
    lines = (made / "SHA256SUMS").read_text(encoding="utf-8").splitlines()

    assert {line[66:]: line[:64] for line in lines} == {
        file.name: digest(file) for file in made.iterdir() if file.name != "SHA256SUMS"
    }


def test_the_wheel_has_every_file_of_the_program(made: Path) -> None:
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "reconciler", "jobs")
    packed = [name for name in zipfile.ZipFile(wheel(made)).namelist() if not name.endswith("/")]

    assert {name for name in packed if ".dist-info/" not in name} == set(files.splitlines())


@pytest.mark.parametrize("suffix", LOCKS)
def test_the_sbom_has_every_package_of_its_lock_and_no_other(made: Path, suffix: str) -> None:
    lock = (ROOT / LOCKS[suffix]).read_text(encoding="utf-8")
    sbom = made / f"node-maintenance-reconciler-{version()}{suffix}.cdx.json"
    document = json.loads(sbom.read_text(encoding="utf-8"))

    assert (document["bomFormat"], document["metadata"]["component"]["version"]) == ("CycloneDX", version())
    assert sorted((one["name"], one["version"]) for one in document["components"]) == sorted(
        re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)
    )


def test_the_wheel_runs_where_it_is_installed(made: Path, python: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "virtualenv", "-q", "--no-download", "--without-pip", venv)
    # The packages that it needs are those of the tests: no registry is asked.
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    options = ("-q", "--no-index", "--no-deps", "--disable-pip-version-check")
    run(python, "-m", "pip", "--python", venv / "bin" / "python", "install", *options, wheel(made))

    program = venv / "bin" / "reconciler"
    where = run(
        venv / "bin" / "python", "-c", "import reconciler; print(reconciler.__file__)", PYTHONSAFEPATH="1"
    )

    assert where.startswith(str(packages))
    # A trial has a commit only if it has no other changes.
    commit = "unknown: " if run("git", "status", "--porcelain") else run("git", "rev-parse", "HEAD").strip()
    for name in ("reconciler", "kubectl-maintenance"):
        assert f", version {version()}, commit {commit}" in run(venv / "bin" / name, "--version")
    assert "uncordon" in run(program, "demo")


def test_helm_takes_the_chart(made: Path, helm_program: Path) -> None:
    (chart,) = made.glob("*.tgz")

    assert "0 chart(s) failed" in run(helm_program, "lint", chart)
    rendered = run(helm_program, "template", "x", chart)
    assert f"image: {image_name(full_name())}:{version()}\n" in rendered


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """A registry on loopback, by its host and port."""
    program = shutil.which("docker-registry", path=f"{os.environ['PATH']}:/usr/bin")
    if program is None:
        pytest.skip("no registry to push to; install it with: apt-get install docker-registry")
    settings = {
        "version": "0.1",
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "registry")}},
        "http": {"addr": "127.0.0.1:0"},
    }
    (tmp_path / "registry.yml").write_text(json.dumps(settings), encoding="utf-8")
    words = [program, "serve", str(tmp_path / "registry.yml")]
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr is not None
        address = ""
        while not address and (line := process.stderr.readline()):
            address = next(iter(re.findall(r"listening on (127\.0\.0\.1:\d+)", line)), "")
        # Nobody else reads what it says after that.
        reader = threading.Thread(target=process.stderr.read, name="registry", daemon=True)
        reader.start()
        assert address
        yield address
        process.terminate()
        reader.join(10)


def test_helm_gets_the_chart_that_was_pushed_by_its_digest(
    made: Path, helm_program: Path, registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{helm_program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    (packed,) = made.glob("*.tgz")

    # A registry on loopback has no certificate.
    reference = publishing.chart(made, f"{registry}/charts", options=["--plain-http"])

    name, _, pushed = reference.partition("@")
    assert name == f"{registry}/charts/node-maintenance-reconciler"
    run(helm_program, "pull", f"oci://{reference}", "--plain-http", "--destination", tmp_path)
    (pulled,) = tmp_path.glob("*.tgz")
    assert pushed.startswith("sha256:")
    assert pulled.read_bytes() == packed.read_bytes()


PLATFORM = "linux-amd64"


def test_krew_installs_the_plugin_and_it_runs(
    made: Path, python: Path, krew_program: Path, tmp_path: Path
) -> None:
    """krew itself checks the manifest, and installs the archive: the plugin runs without our packages."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip(f"the archive of the test is for {PLATFORM}")
    packed = tmp_path / archive_name(PLATFORM)
    # The libraries are those for the Python of the tests alone.
    run(python, "-c", PACK, wheel(made), PLATFORM, packed, "{}.{}".format(*sys.version_info[:2]))
    filled = write_manifest(packed, tmp_path)
    own = tmp_path / "python"
    own.mkdir()
    (own / "python3").symlink_to(Path(sys.executable).resolve())
    root = tmp_path / "root"
    environment = {
        "PATH": os.pathsep.join((str(root / "bin"), str(own), os.defpath)),
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
        (["--version"], f"kubectl maintenance, version {version()}, commit "),
        (["check-config", str(ROOT / "examples" / "mechanic.yaml")], "mechanic.yaml is valid."),
    ):
        ran = subprocess.run(
            [*command, *arguments], env=environment, capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert shown in ran.stdout
