"""The tree as a release publishes it: with the repository's own address, and with links that lead there.

Pages in the tree link to each other by paths, which lead nowhere on a package index or on Artifact Hub. The
chart in the tree names an image that its user builds. The published one names the published image.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

from release.repository import address, image_name, tree, write
from release.version import NAME, ROOT, version

CHART = Path("charts") / NAME
_PAGES = (Path("README.md"), CHART / "README.md")
_LINK = re.compile(r'(\]\(|\b(?:src|href)=")(?![a-z]+:|#|/)([^)\s"#]+)')
# What the README says until there is a release. With the package it would be wrong.
_UNPUBLISHED = re.compile(r"^No image and no package is published yet\b.*$", re.MULTILINE)
_IMAGE = re.compile(rf'(\brepository"?: |`|"default": )"{NAME}"')


def prepare(to: Path, repository: str) -> None:
    """Copy the tree for a release from the repository OWNER/NAME; ValueError if that is no such name."""
    files = tree()
    for file in files:
        (to / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, to / file)
    write(repository, to, files)
    page = f"{address(to)}/releases/tag/v{version()}"
    released = f"[The page of version {version()}]({page}) has its images, chart and packages."
    for name in _PAGES:
        text = _UNPUBLISHED.sub(released, (to / name).read_text(encoding="utf-8"))
        _change(to / name, absolute(text, str(name), address(to)))
    for file in files:
        if file.is_relative_to(CHART):
            text = (to / file).read_text(encoding="utf-8")
            # Alerts of this version lead to the pages of this version.
            text = re.sub(rf"({re.escape(address(to))}/(?:blob|raw|tree))/main/", rf"\1/v{version()}/", text)
            _change(to / file, _IMAGE.sub(rf'\1"{image_name(repository)}"', text))


def absolute(text: str, page: str, repository: str) -> str:
    """Return a page with its links as URLs of the files at this version, in the repository at an address."""

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), found[2]))
        kind = "raw" if path.endswith((".png", ".svg", ".webp")) else "blob"
        return f"{found[1]}{repository}/{kind}/v{version()}/{path}"

    return _LINK.sub(link, text)


def _change(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
