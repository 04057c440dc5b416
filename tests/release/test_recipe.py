"""What keeps a tree from a release, and the statement of where its files come from."""

from __future__ import annotations

import json
import tomllib

import pytest

from release.recipe import LOCKS, Source, problems, statement
from release.version import ROOT, version

DATED = f"# Changelog\n\n## {version()} — 2026-11-22\n"
UNDATED = f"# Changelog\n\n## {version()} — unreleased\n"


@pytest.mark.parametrize(
    ("changelog", "changed", "trial", "words"),
    [
        (DATED, "", False, []),
        (UNDATED, " M README.md", True, []),
        (UNDATED, "", False, ["no date"]),
        (DATED, " M README.md", False, ["not committed"]),
        ("# Changelog\n\n## 0.0.1 — 2026-11-22\n", "", True, ["no heading"]),
    ],
)
def test_a_release_needs_a_dated_version_and_no_changes(
    changelog: str, changed: str, trial: bool, words: list[str]
) -> None:
    found = problems(changelog, changed, trial=trial)

    assert len(found) == len(words)
    assert all(word in one for word, one in zip(words, found, strict=True))


@pytest.mark.parametrize("tag", ["v0.0.1", version(), f"v{version()}-rc1"])
def test_a_tag_of_another_version_is_no_release(tag: str) -> None:
    assert problems(DATED, "", trial=False, tag=f"v{version()}") == []

    (found,) = problems(DATED, "", trial=False, tag=tag)

    assert found.startswith(f"the tag is {tag}, but the version is {version()}")


def test_the_provenance_names_each_file_and_what_it_is_made_from() -> None:
    base = f"docker.io/library/python:3.11-slim@sha256:{'b' * 64}"
    source = Source("owner/name", "c0ffee", 1_700_000_000, {"requirements.lock": "aa"}, base)

    document = json.loads(statement({"b.whl": "22", "a.tgz": "11"}, source))

    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert document["predicateType"] == "https://slsa.dev/provenance/v1"
    assert document["subject"] == [
        {"name": "a.tgz", "digest": {"sha256": "11"}},
        {"name": "b.whl", "digest": {"sha256": "22"}},
    ]
    made = document["predicate"]["buildDefinition"]
    assert made["externalParameters"] == {
        "repository": "owner/name",
        "sourceDateEpoch": 1_700_000_000,
        "trial": False,
    }
    assert made["buildType"] == "https://github.com/owner/name/blob/main/docs/release.md"
    assert [one["digest"] for one in made["resolvedDependencies"]] == [
        {"gitCommit": "c0ffee"},
        {"sha256": "aa"},
        {"sha256": "b" * 64},
    ]


def test_each_image_has_its_sbom() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert set(LOCKS) == {"", *(f"-{extra}" for extra in project["optional-dependencies"])}
    assert [lock for lock in LOCKS.values() if not (ROOT / lock).is_file()] == []
