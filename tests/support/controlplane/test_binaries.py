"""Binaries are found, or one line says why not."""

from pathlib import Path

import pytest

from tests.support.controlplane import binaries
from tests.support.controlplane.server import ControlPlane


def test_without_any_of_the_three_ways_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(binaries, "USUAL_FOLDER", tmp_path / "usual")
    monkeypatch.setattr(binaries, "GO", ("no-such-go",))

    with pytest.raises(binaries.NoControlPlane, match="no Go toolchain") as refusal:
        binaries.find_binaries()

    assert "\n" not in str(refusal.value)


def test_a_build_that_fails_says_why_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho first >&2\necho no route to modules >&2\nexit 1\n", encoding="utf-8")
    go.chmod(0o755)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(binaries, "USUAL_FOLDER", tmp_path / "usual")
    monkeypatch.setattr(binaries, "GO", (str(go),))

    with pytest.raises(binaries.NoControlPlane, match="building etcd failed: no route to modules"):
        binaries.find_binaries()

    assert not list(tmp_path.glob("cache/**/etcd"))


def test_a_given_folder_comes_first_and_the_cache_fills_in_what_it_lacks(
    controlplane: ControlPlane, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usual = binaries.find_binaries()
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (tmp_path / name).symlink_to(usual[name])
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    found = binaries.find_binaries()

    assert found.given == tmp_path
    assert {name for name, path in found.paths.items() if path.parent == tmp_path} == {
        "etcd",
        "kube-apiserver",
        "kubectl",
    }
    assert set(found.paths) == set(binaries.PACKAGES)
