"""Make the files of a release in a folder: packages, chart, SBOMs, provenance and checksums.

The same commit makes the same bytes: times in the files are that of the commit, or SOURCE_DATE_EPOCH. The
provenance says where the files come from, in the form of in-toto, with the predicate of SLSA 1.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from release.krew.archive import PLATFORMS, archive, archive_name, manifest
from release.packing import pack
from release.prepared import CHART, prepare
from release.repository import HOST, full_name
from release.version import NAME, ROOT, places, version, write_commit

# The image is built with one of these, see docs/install.md.
LOCKS = {"": "requirements.lock"} | {
    f"-{extra}": f"requirements-{extra}.lock" for extra in ("aws", "esx", "notify", "openstack", "otel")
}


class NotReady(Exception):
    """The tree is not one to release; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to make: the folder for it, the image that the image is based on, and whether it is a trial.

    A trial may have changes that are not committed, and a version without a date. `repository` is the one
    that publishes the files, OWNER/NAME.
    """

    to: Path
    base: str = ""
    trial: bool = False
    plugin: bool = False
    repository: str = field(default_factory=full_name)


def make(order: Order) -> list[Path]:
    """Make the files, and return their paths; NotReady, or CalledProcessError if a tool fails."""
    source = _source(order)
    order.to.mkdir(parents=True, exist_ok=True)
    if any(order.to.iterdir()):
        raise NotReady(f"{order.to} is not empty: remove what is there")
    with TemporaryDirectory() as folder:
        prepare(Path(folder), order.repository)
        # A trial with other changes is no commit.
        if not _git("status", "--porcelain"):
            write_commit(source.commit, Path(folder))
        return _make(order, source, Path(folder))


def _make(order: Order, source: Source, tree: Path) -> list[Path]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(source.time)}
    # The build looks for its program there.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    # A lock has no graph of its packages, which the tool of the SBOM warns about.
    environment["PYTHONWARNINGS"] = "ignore:The Component this BOM is describing:UserWarning"
    # The wheel is built from the source package, so this also shows that the source package is complete.
    _run(environment, tree, "build", "--no-isolation", "--outdir", str(order.to), str(tree))
    _run(environment, tree, "twine", "check", "--strict", *map(str, sorted(order.to.iterdir())))
    stem = f"{NAME}-{version()}"
    with ThreadPoolExecutor() as threads:
        boms = [order.to / f"{stem}{suffix}.cdx.json" for suffix in LOCKS]
        list(threads.map(partial(_sbom, environment, tree), LOCKS.values(), boms))
    pack(tree / CHART, order.to / f"{stem}.tgz", source.time, CHART.name)
    if order.plugin:
        _plugin(order, source.time)
    made = sorted(order.to.iterdir())
    provenance = order.to / f"{stem}.intoto.json"
    provenance.write_text(statement({file.name: digest(file) for file in made}, source), encoding="utf-8")
    made.append(provenance)
    lines = [f"{digest(file)}  {file.name}\n" for file in made]
    sums = order.to / "SHA256SUMS"
    sums.write_text("".join(lines), encoding="utf-8")
    return [*made, sums]


def digest(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def problems(changelog: str, changed: str, *, trial: bool, tag: str = "") -> list[str]:
    """Return what keeps a tree from a release: its changelog, `git status --porcelain`, and the tag."""
    found = [
        f"{place.path}, line {place.line}, has version {place.version}: run python -m release.version"
        for place in places()
        if place.version != version()
    ]
    if tag not in ("", f"v{version()}"):
        found.append(f"the tag is {tag}, but the version is {version()}: run python -m release.version")
    heading = re.search(rf"^## {re.escape(version())} — (.+)$", changelog, re.MULTILINE)
    if heading is None:
        found.append(f"CHANGELOG.md has no heading `## {version()} — DATE`")
    elif not trial and not re.fullmatch(r"\d{4}-\d\d-\d\d", heading[1]):
        found.append(f"CHANGELOG.md has no date for {version()}")
    if not trial and changed:
        found.append("there are changes that are not committed")
    return found


def ready(tag: str = "", *, trial: bool = False) -> None:
    """Raise NotReady if something keeps the tree from a release."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if found := problems(changelog, _git("status", "--porcelain"), trial=trial, tag=tag):
        raise NotReady("; ".join(found))


def _source(order: Order) -> Source:
    ready(trial=order.trial)
    if order.base and not re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", order.base):
        raise NotReady(f"{order.base} is not an image with its digest: NAME@sha256:DIGEST")
    locks = {name: digest(ROOT / name) for name in (*LOCKS.values(), "requirements-build.lock")}
    return Source(order.repository, commit(), commit_time(), locks, order.base, order.trial)


def commit() -> str:
    """Return the commit that is released."""
    return _git("rev-parse", "HEAD")


def commit_time() -> int:
    """Return the time for what is made, in seconds since 1970: the commit's, or SOURCE_DATE_EPOCH."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct"))


def _sbom(environment: dict[str, str], tree: Path, lock: str, to: Path) -> None:
    words = ["requirements", lock, "--pyproject", "pyproject.toml", "--mc-type", "application"]
    words += ["--output-reproducible", "--output-format", "JSON", "--output-file", str(to)]
    _run(environment, tree, "cyclonedx_py", *words)
    document = json.loads(to.read_text(encoding="utf-8"))
    if not document["components"]:
        raise NotReady(f"the SBOM of {lock} names no package")


def _plugin(order: Order, time: int) -> None:
    """Make the archives of the plugin for each platform, and the manifest that krew reads."""
    (wheel,) = order.to.glob("*.whl")
    digests = {}
    for platform in PLATFORMS:
        packed = order.to / archive_name(platform)
        archive(wheel, platform, packed, time)
        digests[platform] = digest(packed)
    home = f"{HOST}/{order.repository}"
    filled = manifest(f"{home}/releases/download/v{version()}", home, digests)
    (order.to / "maintenance.yaml").write_text(filled, encoding="utf-8")


def _run(environment: dict[str, str], tree: Path, module: str, *words: str) -> None:
    subprocess.run([sys.executable, "-m", module, *words], cwd=tree, env=environment, check=True)


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Source:
    """What a release is made from.

    `repository` is the one that publishes it, OWNER/NAME. `commit` is Git's. `time` is that of the commit, in
    seconds since 1970 (UTC). `locks` has the SHA-256 of each lock file by its name. `base` is the image below
    ours, as NAME@sha256:DIGEST, or empty. In a trial the tree may have changes that are not in the commit.
    """

    repository: str
    commit: str
    time: int
    locks: Mapping[str, str]
    base: str = ""
    trial: bool = False


def statement(files: Mapping[str, str], source: Source) -> str:
    """Return the statement as JSON, for files by name with their SHA-256. It is not signed."""
    home = f"{HOST}/{source.repository}"
    used: list[dict[str, Any]] = [{"uri": f"git+{home}", "digest": {"gitCommit": source.commit}}]
    used += [{"name": name, "digest": {"sha256": sha}} for name, sha in sorted(source.locks.items())]
    if source.base:
        image, _, sha = source.base.partition("@sha256:")
        used.append({"uri": f"docker://{image}", "digest": {"sha256": sha}})
    document = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": sha}} for name, sha in sorted(files.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{home}/blob/main/docs/release.md",
                "externalParameters": {
                    "repository": source.repository,
                    "sourceDateEpoch": source.time,
                    "trial": source.trial,
                },
                "resolvedDependencies": used,
            },
            "runDetails": {"builder": {"id": f"{home}/blob/main/noxfile.py"}},
        },
    }
    return json.dumps(document, indent=2) + "\n"
