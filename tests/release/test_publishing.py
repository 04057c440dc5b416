"""What a release asks the programs of others to do, by stand-ins that write down how they are called."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from release import publishing
from release.__main__ import do, parser
from release.recipe import LOCKS, NotReady, commit
from release.version import NAME, version

DIGEST = f"sha256:{'d' * 64}"
BASE = f"docker.io/library/python:3.11-slim@sha256:{'b' * 64}"
STAND_IN = """#!{python}
import json, os, sys
from pathlib import Path
words = sys.argv[1:]
named = [word for word in words if word.startswith("artifacthub-")]
files = {{word: Path(word.partition(":")[0]).read_text() for word in named}}
with open({log!r}, "a") as log:
    log.write(json.dumps([Path(sys.argv[0]).name, *words, files]) + "\\n")
if "--metadata-file" in words:
    to = words[words.index("--metadata-file") + 1]
    Path(to).write_text(json.dumps({{"containerimage.digest": {digest!r}}}))
if "imagetools" in words:
    print("WARNING: an old builder", file=sys.stderr)
    print({digest!r})
if words[:1] == ["push"] and "helm" in sys.argv[0]:
    print("Pushed: example", file=sys.stderr)
    print("Digest: " + {digest!r}, file=sys.stderr)
sys.exit(1 if words[:2] == ["release", "view"] and not Path({page!r}).exists() else 0)
"""


class Programs:
    """The stand-ins, and the calls of them."""

    def __init__(self, folder: Path) -> None:
        self._log, self.page = folder / "log", folder / "page"
        self.dist = folder / "dist"
        self.dist.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        text = STAND_IN.format(python=sys.executable, log=str(self._log), digest=DIGEST, page=str(self.page))
        for name in ("docker", "helm", "oras", "cosign", "gh"):
            (programs / name).write_text(text, encoding="utf-8")
            (programs / name).chmod(0o755)
        self.path = os.pathsep.join((str(programs), os.environ["PATH"]))

    def calls(self) -> list[list[Any]]:
        """Each call: the program, its arguments, and the texts of files that it was given."""
        return [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines()]

    def lines(self) -> list[str]:
        """Each call as it would be typed."""
        return [" ".join(call[:-1]) for call in self.calls()]


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    made = Programs(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    return made


@pytest.fixture
def step(programs: Programs) -> Callable[..., None]:
    def run(*words: str) -> None:
        do(parser().parse_args(words))

    return run


Step = Callable[..., None]


def test_the_base_has_the_digest_that_its_tag_has_today(
    step: Step, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "output"
    output.write_text("before=1\n", encoding="utf-8")

    step("base", "--output", str(output))

    expected = f"docker.io/library/python:3.11-slim@{DIGEST}"
    assert capsys.readouterr().out == f"{expected}\n"
    assert output.read_text(encoding="utf-8") == f"before=1\nbase={expected}\n"


def test_a_base_with_a_digest_needs_no_registry(tmp_path: Path) -> None:
    file = tmp_path / "base.Dockerfile"
    file.write_text(f"# FROM comment\nFROM {BASE}\n", encoding="utf-8")

    assert publishing.base(file) == BASE


def test_an_image_for_each_lock_is_pushed_and_signed_by_its_digest(
    step: Step, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")

    step("image", "--repository", "Fork/Drainer", "--base", BASE, "--push")

    lines = programs.lines()
    built = [line for line in lines if line.startswith("docker buildx build")]
    assert len(built) == len(LOCKS)
    for line, (suffix, lock) in zip(built, LOCKS.items(), strict=True):
        assert f"--platform linux/amd64,linux/arm64 --tag ghcr.io/fork/drainer:{version()}{suffix} " in line
        assert f"--build-arg PYTHON={BASE} --build-arg LOCK={lock} --build-arg REVISION={commit()} " in line
        assert "--build-arg CREATED=2023-11-14T22:13:20Z " in line
        assert "--build-arg SOURCE=https://github.com/Fork/Drainer " in line
        assert "--sbom=true --provenance=mode=max " in line
        assert " --push " in line
    signed = f"cosign sign --yes ghcr.io/fork/drainer@{DIGEST}"
    assert [line for line in lines if line not in built] == [signed] * len(LOCKS)


def test_a_build_without_push_leaves_nothing_anywhere(step: Step, programs: Programs) -> None:
    step("image", "--base", BASE, "--platform", "linux/arm64")

    lines = programs.lines()
    assert len(lines) == len(LOCKS)
    assert all("--platform linux/arm64 " in line and "--output type=cacheonly" in line for line in lines)
    assert not any("--push" in line or "cosign" in line for line in lines)


def test_the_chart_is_pushed_beside_the_image_and_signed(step: Step, programs: Programs) -> None:
    step("chart", "--repository", "Fork/Drainer", "--dist", str(programs.dist))

    assert programs.lines() == [
        f"helm push {programs.dist}/{NAME}-{version()}.tgz oci://ghcr.io/fork/charts",
        f"cosign sign --yes ghcr.io/fork/charts/{NAME}@{DIGEST}",
    ]


def test_artifact_hub_finds_the_publisher_beside_the_chart(step: Step, programs: Programs) -> None:
    step("chart", "--repository", "a/b", "--dist", str(programs.dist), "--artifact-hub", "1-2-3")

    (call,) = [call for call in programs.calls() if call[0] == "oras"]
    assert call[1:-1] == [
        "push",
        "--config",
        "/dev/null:application/vnd.cncf.artifacthub.config.v1+yaml",
        f"ghcr.io/a/charts/{NAME}:artifacthub.io",
        "artifacthub-repo.yml:application/vnd.cncf.artifacthub.repository-metadata.layer.v1.yaml",
    ]
    (text,) = call[-1].values()
    assert yaml.safe_load(text) == {"repositoryID": "1-2-3"}


def test_a_push_that_says_no_digest_is_an_error(programs: Programs, tmp_path: Path) -> None:
    helm = tmp_path / "bin" / "helm"
    helm.write_text("#!/bin/sh\necho Pushed\n", encoding="utf-8")

    with pytest.raises(NotReady, match="one digest, but the program said: Pushed"):
        publishing.chart(programs.dist, "ghcr.io/a/charts")


def test_the_checksums_are_signed_and_the_signature_is_a_file_beside_them(
    step: Step, programs: Programs
) -> None:
    step("sign", "--dist", str(programs.dist))

    sums = programs.dist / "SHA256SUMS"
    assert programs.lines() == [f"cosign sign-blob --yes --bundle {sums}.sigstore.json {sums}"]


def test_the_page_is_made_once_and_gets_its_files_again(step: Step, programs: Programs) -> None:
    (programs.dist / "b").touch()
    (programs.dist / "a").touch()
    words = ("page", "--dist", str(programs.dist), "--tag", "v1.2.3", "--notes", "/n.md")

    step(*words)
    programs.page.touch()
    step(*words)

    files = f"{programs.dist}/a {programs.dist}/b"
    assert [line for line in programs.lines() if "view" not in line] == [
        f"gh release create v1.2.3 --verify-tag --title v1.2.3 --notes-file /n.md {files}",
        f"gh release upload v1.2.3 --clobber {files}",
    ]


CHANGELOG = f"# Changelog\n\n## 9.9.9 — unreleased\n\nNew.\n\n## {version()} — 2026-11-30\n\n- Yes.\n"


@pytest.mark.parametrize("older", ["", "\n## 0.0.1 — 2026-01-01\n\nOld.\n"])
def test_the_notes_have_the_changes_of_the_version_alone(older: str) -> None:
    names = {"image": "ghcr.io/o/n", "chart": "ghcr.io/o/charts", "address": "https://example.com/o/n"}

    text = publishing.notes(CHANGELOG + older, names)

    assert text.endswith("\n## Changes\n\n- Yes.\n")
    assert f"`ghcr.io/o/n:{version()}`" in text
    assert f"oci://ghcr.io/o/charts/{NAME} --version {version()}" in text
    assert all(f"{version()}{suffix}" in text or f"`{suffix}`" in text for suffix in LOCKS)
    assert "$" not in text


def test_notes_of_a_version_without_a_heading_are_an_error() -> None:
    with pytest.raises(NotReady, match="no heading"):
        publishing.notes("# Changelog\n", {})


def test_the_notes_of_the_next_release_are_written(step: Step, tmp_path: Path) -> None:
    step("notes", "--repository", "Fork/Drainer", "--to", str(tmp_path / "new" / "notes.md"))

    text = (tmp_path / "new" / "notes.md").read_text(encoding="utf-8")
    assert f"`ghcr.io/fork/drainer:{version()}`" in text
    assert "https://github.com/Fork/Drainer/blob/" in text
    # GitHub takes no longer text.
    assert len(text) < 125_000
