"""Make one site of docs/ and of the pages beside it, with the README's lists as its navigation.

MkDocs calls the functions whose names begin with `on_`. The pages stay as they are in the repository: only
their links to files outside of docs/ are changed.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown

ROOT = Path(__file__).parents[1]
# Pages that are not in docs/, and their place on the site.
OUTSIDE = {name: name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
OUTSIDE["charts/node-maintenance-reconciler/README.md"] = "chart.md"
# In the navigation, where a page's own title says too little.
_TITLES = {"README.md": "What it is", "chart.md": "Values of the chart"}

# Pictures of others that say how the tests on `main` went. The site loads nothing from elsewhere.
BADGES = re.compile(r"^\[!\[\w+\]\(https://.*\n", re.MULTILINE)
_SECTION = re.compile(r"^### (.+)\n((?:(?!#).*\n?)*)", re.MULTILINE)
_NAMED = re.compile(r"\]\(([\w./-]+)\)")
_LINK = re.compile(r"(!?)\[([^\]\n]*)\]\((?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?\)")


def navigation(readme: str, root: Path = ROOT) -> list[dict[str, list[Any]]]:
    """Return the sections below the README's heading Documentation, each with the pages that it links to.

    A link to a folder of docs/ stands for a section with all pages of the folder.
    """
    sections: list[dict[str, list[Any]]] = []
    named: set[str] = set()
    for title, text in _SECTION.findall(readme.partition("\n## Documentation\n")[2]):
        pages: list[Any] = []
        for path in _NAMED.findall(text):
            if path in named:
                continue
            named.add(path)
            if (root / path).is_dir():
                inside = sorted((root / path).glob("*.md"))
                name = Path(path).name.capitalize()
                pages.append({name: [str(page.relative_to(root / "docs")) for page in inside]})
            elif path.endswith(".md"):
                pages.append(_entry(OUTSIDE.get(path) or path.removeprefix("docs/")))
        sections.append({title: pages})
    return sections


def _entry(page: str) -> str | dict[str, str]:
    return {_TITLES[page]: page} if page in _TITLES else page


def linked(markdown: str, source: str, repository: str = "") -> str:
    """Return a page with its links as they are on the site.

    `source` is the page's path in the repository. A file or a folder that is not on the site is linked to
    below the URL `repository`; without one, only the text of the link stays.
    """
    here = posixpath.dirname(OUTSIDE.get(source) or source.removeprefix("docs/"))

    def link(found: re.Match[str]) -> str:
        image, text, path, anchor = found[1], found[2], found[3], found[4] or ""
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        is_folder = (ROOT / target).is_dir()
        if target in OUTSIDE or (target.startswith("docs/") and not is_folder):
            there = OUTSIDE.get(target) or target.removeprefix("docs/")
            return f"{image}[{text}]({posixpath.relpath(there, here or '.')}{anchor})"
        if not (ROOT / target).exists():
            return found[0]
        return f"{image}[{text}]({repository.rstrip('/')}/blob/main/{target}{anchor})" if repository else text

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
    config.nav = [{"Start": [_entry("README.md")]}, *navigation(readme)]
    # First, because the others add to the parser that it builds.
    config.markdown_extensions.insert(0, TwoSpaces())
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages from outside of docs/."""
    # Here, so that the functions above can be used without MkDocs.
    from mkdocs.structure.files import File

    for path, name in OUTSIDE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Change the links of a page."""
    name = page.file.src_uri
    sources = {there: path for path, there in OUTSIDE.items()}
    markdown = BADGES.sub("", markdown)
    return linked(markdown, sources.get(name, f"docs/{name}"), config.repo_url or "")


def on_post_page(output: str, **_: Any) -> str:
    """Remove the mark by which a script of the theme asks the repository's host for stars and forks."""
    return output.replace(' data-md-component="source"', "")


def on_post_template(output_content: str, **_: Any) -> str:
    """Do the same to pages of the theme's own, such as the one for a path that is not there."""
    return on_post_page(output_content)
