"""The docs as a site: every link leads somewhere, and every page has what it has in the repository."""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from release.repository import address
from tests.monitoring.rules import Rule, rules
from tests.support.tools.building import OF_DOCS, NoTool, find_environment
from website.pages import BADGES, OUTSIDE

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
# Each page's file, by its place on the site.
PAGES = {str(path.relative_to(DOCS)): path for path in sorted(DOCS.rglob("*.md"))}
PAGES |= {there: ROOT / path for path, there in OUTSIDE.items()}
SHAPES = ("li", "ol", "pre", "table", "tr", "h1", "h2", "h3", "h4", "img")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        programs = find_environment(*OF_DOCS)
    except NoTool as error:
        if os.environ.get("CONTROLPLANE_REQUIRED"):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("site")
    # A warning, such as a link to nowhere, is an error: `strict` in mkdocs.yml. `-q` would hide them.
    done = subprocess.run(
        [str(programs / "mkdocs"), "build", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def article(site: Path, page: str) -> str:
    """The page's own part of its HTML file."""
    name = "index.html" if page == "README.md" else Path(page).with_suffix(".html")
    return (site / name).read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]


def shapes(html: str) -> Counter[str]:
    """How many lists, blocks, tables and headings there are."""
    return Counter(name for name in re.findall(r"<([a-z]+[1-4]?)[ >]", html) if name in SHAPES)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_the_same_shape_as_in_the_repository(site: Path, page: str) -> None:
    text = BADGES.sub("", PAGES[page].read_text(encoding="utf-8"))
    as_in_the_repository = MarkdownIt("commonmark").enable("table").render(text)

    # If a list is cut: put an empty line between an indented paragraph and the next item.
    assert shapes(article(site, page)) == shapes(as_in_the_repository)


def test_each_path_for_readers_is_in_the_navigation(site: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    tabs = re.findall(r'<a href="([\w./-]+)" class="md-tabs__link">\s*(\w+)', first)

    assert [title for _, title in tabs] == ["Start", "Try", "Install", "Run", "Understand", "Extend"]
    assert all((site / link).is_file() for link, _ in tabs)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_the_link_of_an_alert_leads_to_a_page(site: Path, rule: Rule) -> None:
    link = rule["annotations"]["runbook_url"]

    # It leads to the repository. The site has the same page.
    page = site / Path(link.removeprefix(f"{address()}/blob/main/docs/")).with_suffix(".html")
    assert f">{rule['alert']}" in page.read_text(encoding="utf-8").partition("<h1")[2].partition("</h1>")[0]


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)

    assert len(pages) > len(PAGES)
    assert (
        re.findall(r'<(?:script|img|iframe|link rel="stylesheet")[^>]* (?:src|href)="(?:https?:)?//', text)
        == []
    )
    # With this mark, a script of the theme asks the repository's host for stars and forks.
    assert f'<a href="{address()}"' in text
    assert 'data-md-component="source"' not in text
