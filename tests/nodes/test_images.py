"""What the image of `nox -s nodes` is built from. The session itself builds and runs it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from tests.nodes import images


def test_another_version_is_another_image(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    images.copy_context(tmp_path / "a", "97.98.99")

    project = tomllib.loads((tmp_path / "a" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == "97.98.99"
    assert '__version__ = "97.98.99"' in (tmp_path / "a/reconciler/__init__.py").read_text(encoding="utf-8")


def test_a_machine_that_cannot_build_it_is_told_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(images.NoImage) as refused:
        images.image()

    assert "root: run it with sudo" in str(refused.value)
    assert "apt-get install buildah debootstrap util-linux" in str(refused.value)
