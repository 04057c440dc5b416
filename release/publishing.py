"""What a release does outside: push images and the chart, sign, upload packages, make its page.

Each function runs the programs of others that do it, and raises CalledProcessError if one fails. All of them
can be run again: what is there already stays, or is replaced by the same.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from string import Template

from release.recipe import LOCKS, NotReady, commit, commit_time
from release.repository import HOST, image_name
from release.version import NAME, ROOT, version

BASE = ROOT / "release" / "base.Dockerfile"
PLATFORMS = ("linux/amd64", "linux/arm64")
BUNDLE = "SHA256SUMS.sigstore.json"
_ARTIFACT_HUB = "application/vnd.cncf.artifacthub"


def base(file: Path = BASE) -> str:
    """Return the base of the image with its digest; without one in the file, that of its tag on this day."""
    name = re.findall(r"^FROM (\S+)$", file.read_text(encoding="utf-8"), re.MULTILINE)[0]
    if "@" in name:
        return str(name)
    words = ("docker", "buildx", "imagetools", "inspect", name, "--format", "{{.Manifest.Digest}}")
    return f"{name}@{_digest(_output(*words))}"


def images(below: str, repository: str, *, push: bool, platforms: Iterable[str] = PLATFORMS) -> list[str]:
    """Build an image for each lock, on the base `below`; return those that are pushed, by their digests."""
    pushed, to = [], image_name(repository)
    created = datetime.fromtimestamp(commit_time(), UTC).isoformat().replace("+00:00", "Z")
    # What the labels of the image say.
    labels = {"REVISION": commit(), "CREATED": created, "SOURCE": f"{HOST}/{repository}"}
    for suffix, lock in LOCKS.items():
        with tempfile.TemporaryDirectory() as folder:
            metadata = Path(folder) / "metadata.json"
            words = ["--platform", ",".join(platforms), "--tag", f"{to}:{version()}{suffix}"]
            for name, value in {"PYTHON": below, "LOCK": lock, **labels}.items():
                words += ["--build-arg", f"{name}={value}"]
            if push:
                words += ["--sbom=true", "--provenance=mode=max", "--metadata-file", str(metadata), "--push"]
            else:
                words += ["--output", "type=cacheonly"]
            _run("docker", "buildx", "build", *words, str(ROOT), SOURCE_DATE_EPOCH=str(commit_time()))
            if push:
                found = json.loads(metadata.read_text(encoding="utf-8"))
                pushed.append(f"{to}@{found['containerimage.digest']}")
    return pushed


def chart(dist: Path, to: str, hub: str = "", options: Iterable[str] = ()) -> str:
    """Push the chart below the registry's path `to`, and return it by its digest.

    `hub` is the ID that Artifact Hub gives the chart's repository, empty if it has none.
    """
    said = _output("helm", "push", str(dist / f"{NAME}-{version()}.tgz"), f"oci://{to}", *options)
    if hub:
        with tempfile.TemporaryDirectory() as folder:
            text = (ROOT / "release" / "artifacthub-repo.yml").read_text(encoding="utf-8")
            (Path(folder) / "artifacthub-repo.yml").write_text(Template(text).substitute(id=hub), "utf-8")
            words = ["--config", f"/dev/null:{_ARTIFACT_HUB}.config.v1+yaml", *options]
            file = f"artifacthub-repo.yml:{_ARTIFACT_HUB}.repository-metadata.layer.v1.yaml"
            _run("oras", "push", *words, f"{to}/{NAME}:artifacthub.io", file, cwd=Path(folder))
    return f"{to}/{NAME}@{_digest(said)}"


def _digest(said: str) -> str:
    """Return the digest that a program has printed, perhaps among warnings."""
    found = set(re.findall(r"\bsha256:[0-9a-f]{64}\b", said))
    if len(found) != 1:
        raise NotReady(f"there should be one digest, but the program said: {said}")
    return str(found.pop())


def sign(references: Iterable[str]) -> None:
    """Sign images and charts, each by its digest. The workflow's identity is the key."""
    for reference in references:
        _run("cosign", "sign", "--yes", reference)


def sign_files(dist: Path) -> None:
    """Sign the checksums, and with them all files."""
    _run("cosign", "sign-blob", "--yes", "--bundle", str(dist / BUNDLE), str(dist / "SHA256SUMS"))


def page(dist: Path, tag: str, notes: Path) -> None:
    """Make the page of the release with all files, or replace the files of the page that is there."""
    files = [str(file) for file in sorted(dist.iterdir())]
    if subprocess.run(["gh", "release", "view", tag], capture_output=True, check=False).returncode == 0:
        _run("gh", "release", "upload", tag, "--clobber", *files)
    else:
        words = ("--verify-tag", "--title", tag, "--notes-file", str(notes))
        _run("gh", "release", "create", tag, *words, *files)


def packages(dist: Path) -> None:
    """Upload the wheel and the source package. Without a password, the workflow's identity is the key."""
    stem = f"{NAME.replace('-', '_')}-{version()}"
    files = [str(dist / f"{stem}-py3-none-any.whl"), str(dist / f"{stem}.tar.gz")]
    _run(sys.executable, "-m", "twine", "upload", "--non-interactive", "--skip-existing", *files)


def notes(changelog: str, names: Mapping[str, str]) -> str:
    """Return the text for the page of the release: how to get and check it, and what the changelog says."""
    heading = rf"^## {re.escape(version())} — .+\n"
    found = re.split(heading, changelog, maxsplit=1, flags=re.MULTILINE)
    if len(found) != 2:
        raise NotReady(f"CHANGELOG.md has no heading `## {version()} — DATE`")
    (changes,) = re.split(r"^## ", found[1], maxsplit=1, flags=re.MULTILINE)[:1]
    text = (ROOT / "release" / "notes.md").read_text(encoding="utf-8")
    return Template(text).substitute(names, version=version()) + changes.strip() + "\n"


def _run(*words: str, cwd: Path = ROOT, **environment: str) -> None:
    print("+", *words, file=sys.stderr, flush=True)
    subprocess.run(words, cwd=cwd, env={**os.environ, **environment}, check=True)


def _output(*words: str) -> str:
    """Run a program, and return what it prints, on standard error too: there helm says what it did."""
    print("+", *words, file=sys.stderr, flush=True)
    done = subprocess.run(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, words)
    return done.stdout.strip()
