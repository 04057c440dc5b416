"""The image's root file system: the program runs in it, and there is no shell and no pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.tools

ROOT = Path(__file__).parents[3]
LOADED = "import ctypes, hashlib, lzma, socket, sqlite3, ssl, threading, uuid, zlib, zoneinfo"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The collected tree, and the virtual environment's path in it. It has the program without packages."""
    if shutil.which("ldd") is None:
        pytest.skip("no ldd to find the libraries with")
    folder = tmp_path_factory.mktemp("image")
    app, tree = folder / "app", folder / "tree"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", app], check=True, timeout=60)
    (packages,) = app.glob("lib/python*/site-packages")
    for name in ("reconciler", "jobs"):
        shutil.copytree(ROOT / name, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
    (app / "bin" / "a-tool").write_text("#!/bin/sh\n", encoding="utf-8")
    command = [sys.executable, str(ROOT / "image" / "root.py"), "--app", str(app), "--to", str(tree)]
    subprocess.run(command, check=True, timeout=120)
    return tree, app


def test_there_is_no_shell_no_pip_and_no_other_program(image: tuple[Path, Path]) -> None:
    tree, _ = image
    programs = {
        path.name for path in tree.rglob("*") if path.parent.name in ("bin", "sbin") and not path.is_dir()
    }

    assert programs
    assert {name for name in programs if not name.startswith("python")} == set()
    assert [path for path in tree.rglob("*") if path.name in ("pip", "ensurepip", "setuptools")] == []
    assert list(tree.rglob("*.whl")) == []
    # Images of Python may not have their libraries.
    assert [*tree.rglob("_tkinter.*"), *tree.rglob("nis.*")] == []
    compiled = [path for path in tree.rglob("*.pyc") if path.name.startswith("own_node.")]
    assert len(compiled) == 1


def test_the_agent_runs_in_it(image: tuple[Path, Path]) -> None:
    tree, app = image
    chroot = shutil.which("chroot")
    if chroot is None or os.geteuid() != 0:
        pytest.skip("only root may change the root directory")
    enter = [chroot, "--userspec=65532:65532", str(tree), str(app / "bin" / "python")]

    subprocess.run([*enter, "-c", LOADED], check=True, timeout=60)
    done = subprocess.run(
        [*enter, "-m", "jobs.agent", "--help"], check=True, capture_output=True, encoding="utf-8", timeout=60
    )

    assert "--imds-address" in done.stdout
