"""State where the files of a release come from, in the form of in-toto, with the predicate of SLSA 1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BUILD_TYPE = "https://node-maintenance.dev/release/v1"
BUILDER = "https://node-maintenance.dev/release/nox"


@dataclass(frozen=True, slots=True)
class Source:
    """What a release is made from.

    `commit` is Git's. `time` is that of the commit, in seconds since 1970 (UTC). `locks` has the SHA-256 of
    each lock file by its name. `base` is the image below ours, as NAME@sha256:DIGEST, or empty. In a trial
    the tree may have changes that are not in the commit.
    """

    commit: str
    time: int
    locks: Mapping[str, str]
    base: str = ""
    trial: bool = False


def statement(files: Mapping[str, str], source: Source) -> str:
    """Return the statement as JSON, for files by name with their SHA-256. It is not signed."""
    used: list[dict[str, Any]] = [{"name": "commit", "digest": {"gitCommit": source.commit}}]
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
                "buildType": BUILD_TYPE,
                "externalParameters": {"sourceDateEpoch": source.time, "trial": source.trial},
                "resolvedDependencies": used,
            },
            "runDetails": {"builder": {"id": BUILDER}},
        },
    }
    return json.dumps(document, indent=2) + "\n"
