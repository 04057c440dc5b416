"""The navigation and the links of the site, without MkDocs."""

from __future__ import annotations

from pathlib import Path

import pytest

from website.pages import ROOT, linked, navigation

README = """# Name
### Earlier
- [docs/early.md](docs/early.md)
## Documentation
### Try
- [docs/a.md](docs/a.md), [docs/runbooks/b.md](docs/runbooks/b.md): two, with [a heading](docs/c.md#x).
### Run
- [CHANGELOG.md](CHANGELOG.md), and again [a](docs/a.md).
- [alerts](docs/runbooks), [values](charts/node-maintenance-reconciler/README.md).
"""


def test_each_section_has_its_pages_and_each_page_comes_once(tmp_path: Path) -> None:
    folder = tmp_path / "docs" / "runbooks"
    folder.mkdir(parents=True)
    for name in ("Missed.md", "Blocked.md", "image.png"):
        (folder / name).touch()

    assert navigation(README, tmp_path) == [
        {"Try": ["a.md", "runbooks/b.md"]},
        {
            "Run": [
                "CHANGELOG.md",
                {"Runbooks": ["runbooks/Blocked.md", "runbooks/Missed.md"]},
                {"Values of the chart": "chart.md"},
            ]
        },
    ]


def test_the_readme_has_a_path_for_each_reader() -> None:
    sections = navigation((ROOT / "README.md").read_text(encoding="utf-8"))

    assert [title for section in sections for title in section] == [
        "Try",
        "Install",
        "Run",
        "Understand",
        "Extend",
    ]
    assert all(pages for section in sections for pages in section.values())


@pytest.mark.parametrize(
    ("source", "link", "expected"),
    [
        ("README.md", "[a](docs/install.md#x)", "[a](install.md#x)"),
        ("README.md", "[a](docs/runbooks/b.md)", "[a](runbooks/b.md)"),
        ("README.md", "[a](CHANGELOG.md)", "[a](CHANGELOG.md)"),
        ("README.md", "![a](docs/images/a.png)", "![a](images/a.png)"),
        ("README.md", "[a](docs/images)", "a"),
        ("docs/helm.md", "[a](../charts/node-maintenance-reconciler/README.md#x)", "[a](chart.md#x)"),
        ("charts/node-maintenance-reconciler/README.md", "[a](../../docs/helm.md)", "[a](helm.md)"),
        ("docs/install.md", "[a](aws.md)", "[a](aws.md)"),
        ("docs/install.md", "[a](../SECURITY.md#x)", "[a](SECURITY.md#x)"),
        ("docs/runbooks/b.md", "[a](../install.md)", "[a](../install.md)"),
        ("docs/runbooks/b.md", "[a](../../README.md)", "[a](../README.md)"),
        ("docs/install.md", "[a](#x) [b](https://example.com/docs/x.md)", None),
        ("docs/install.md", "[a](../nowhere.txt)", None),
    ],
)
def test_a_link_leads_to_the_page_on_the_site(source: str, link: str, expected: str | None) -> None:
    assert linked(link, source) == (expected or link)


def test_a_file_that_is_no_page_is_in_the_repository_or_only_named() -> None:
    link = "See [the base](../k8s/base/maintenance.yaml)."

    assert linked(link, "docs/install.md") == "See the base."
    assert linked(link, "docs/install.md", "https://example.com/a/") == (
        "See [the base](https://example.com/a/blob/main/k8s/base/maintenance.yaml)."
    )
