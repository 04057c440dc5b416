"""The pages of docs/ can be found: README.md names each of them, and links between them lead to a heading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
RUNBOOKS = sorted((ROOT / "docs" / "runbooks").glob("*.md"))
LINK = re.compile(r"\]\(([\w./-]*\.md)?#([\w-]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub makes them."""
    found = re.findall(r"^#{1,6} (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_readme_names_the_page(page: Path) -> None:
    assert f"](docs/{page.name})" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: page.name)
def test_each_page_to_which_a_runbook_leads_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([\w./-]+\.md)\b", page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).is_file()] == []


@pytest.mark.parametrize("page", [*PAGES, *RUNBOOKS], ids=lambda page: page.name)
def test_each_link_to_a_heading_leads_to_one(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))

    lost = [
        f"{name}#{anchor}"
        for name, anchor in links
        if anchor not in anchors(page.parent / (name or page.name))
    ]
    assert lost == []
