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


def test_another_minor_has_programs_of_its_own_and_the_rest_is_shared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    go.write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho x > "$2"\nchmod +x "$2"\n', encoding="utf-8"
    )
    go.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(binaries, "USUAL_FOLDER", tmp_path / "usual")
    monkeypatch.setattr(binaries, "GO", (str(go),))
    usual, version = binaries.find_binaries(), binaries.kubernetes_version()
    other = sorted(folder.name for folder in binaries.MINORS.iterdir())[0]
    monkeypatch.setenv(binaries.CHOSEN, other)

    found = binaries.find_binaries()

    assert {name for name in binaries.PACKAGES if found[name] == usual[name]} == {"etcd", "kwok"}
    assert binaries.kubernetes_version().startswith(f"v{other}.")
    assert version != binaries.kubernetes_version()


def test_what_nodes_run_is_built_only_when_it_is_wanted_and_in_the_same_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    go.write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho x > "$2"\nchmod +x "$2"\n', encoding="utf-8"
    )
    go.chmod(0o755)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(binaries, "USUAL_FOLDER", tmp_path / "usual")
    monkeypatch.setattr(binaries, "GO", (str(go),))

    binaries.find_binaries()
    assert not list(tmp_path.glob("cache/**/kubelet"))

    assert {path.name for path in binaries.find_node_binaries().values() if path.is_file()} == {
        "kubelet",
        "kube-proxy",
    }
    assert binaries.version_of(binaries.NODES) == binaries.kubernetes_version()


def test_a_minor_without_a_module_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(binaries.CHOSEN, "1.99")

    with pytest.raises(binaries.NoControlPlane, match=r"is 1\.99, and .* has no such folder"):
        binaries.find_binaries()
