"""Make one site of docs/ and of the pages beside it, with the README's lists as its navigation.

MkDocs calls `on_config`, `on_files` and `on_page_markdown`. The pages stay as they are in the repository:
only their links to files outside of docs/ are changed.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown

ROOT = Path(__file__).parents[1]
# They are beside docs/, and on the site among its pages.
OUTSIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")

_SECTION = re.compile(r"^### (.+)\n((?:(?!#).*\n?)*)", re.MULTILINE)
_PAGE = re.compile(r"\]\(([\w./-]+\.md)\)")
_LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\((?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?\)")


def navigation(readme: str) -> list[dict[str, list[str]]]:
    """Return the sections below the README's heading Documentation, each with the pages that it links to."""
    sections: list[dict[str, list[str]]] = []
    named: set[str] = set()
    for title, text in _SECTION.findall(readme.partition("\n## Documentation\n")[2]):
        pages = [page.removeprefix("docs/") for page in dict.fromkeys(_PAGE.findall(text))]
        sections.append({title: [page for page in pages if page not in named]})
        named.update(pages)
    return sections


def linked(markdown: str, source: str, repository: str = "") -> str:
    """Return a page with its links as they are on the site.

    `source` is the page's path in the repository. A file that is no page of the site is linked to below the
    URL `repository`; without one, only the text of the link stays.
    """

    def link(found: re.Match[str]) -> str:
        text, path, anchor = found[1], found[2], found[3] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if target.startswith("docs/") or target in OUTSIDE:
            here = posixpath.dirname(source.removeprefix("docs/"))
            return f"[{text}]({posixpath.relpath(target.removeprefix('docs/'), here or '.')}{anchor})"
        if not (ROOT / target).exists():
            return found[0]
        return f"[{text}]({repository.rstrip('/')}/blob/main/{target}{anchor})" if repository else text

    return _LINK.sub(link, markdown)


class TwoSpaces(Extension):  # type: ignore[misc]  # has no types
    """Lists are continued with two spaces, as on GitHub, instead of four."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Build the parser again, because its parts keep the length that it had."""
        md.tab_length = 2
        md.build_parser()


def on_config(config: Any) -> Any:
    """Set the navigation, and how lists are read."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    config.nav = [{"Start": ["README.md"]}, *navigation(readme)]
    # First, because the others add to the parser that it builds.
    config.markdown_extensions.insert(0, TwoSpaces())
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside of docs/."""
    # Here, so that the functions above can be used without MkDocs.
    from mkdocs.structure.files import File

    for name in OUTSIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Change the links of a page."""
    name = page.file.src_uri
    return linked(markdown, name if name in OUTSIDE else f"docs/{name}", config.repo_url or "")
