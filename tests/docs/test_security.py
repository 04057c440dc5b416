"""SECURITY.md links to what exists, and names every policy and folder that widens rights."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([\w/.]+)(?:#([\w-]+))?\)", PAGE)

    assert links
    assert [page for page, _ in links if not (ROOT / page).is_file()] == []
    assert [(page, to) for page, to in links if to and to not in anchors(ROOT / page)] == []


def test_it_names_the_policies_and_the_folders_that_grant_more() -> None:
    policies = {
        name
        for path in ROOT.glob("k8s/*/admission*.yaml")
        for name in re.findall(r"^  policyName: (\S+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }

    install = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert len(policies) == 5
    assert {name for name in policies if f"`{name}`" not in install} == set()
    more = ("escalation", "hooks", "hypervisors", "pods", "replacing")
    assert {name for name in more if f"`k8s/{name}`" not in PAGE} == set()
    for title in ("Report a vulnerability", "Supported versions", "Threat model"):
        assert f"## {title}\n" in PAGE
