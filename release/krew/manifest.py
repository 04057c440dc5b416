"""Fills in the manifest that krew reads: the version, where the archives are, and their checksums."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template

from release.version import version

TEMPLATE = Path(__file__).parent / "maintenance.yaml"


def archive_name(platform: str) -> str:
    """Return the name of the archive for a platform."""
    return f"kubectl-maintenance-{version()}-{platform}.tar.gz"


def manifest(uri: str, homepage: str, digests: Mapping[str, str]) -> str:
    """Return the manifest. `uri` is the folder of the archives, `digests` are their SHA-256 by platform.

    Raises KeyError if the template names a platform that has no digest.
    """
    named = {platform.replace("-", "_"): digest for platform, digest in digests.items()}
    text = TEMPLATE.read_text(encoding="utf-8")
    return Template(text).substitute(named, version=version(), uri=uri.rstrip("/"), homepage=homepage)
