"""`reconciler report` writes the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.cli import main
from tests.features.page.reading import parsed, section
from tests.jobs.few_rights import server


def test_the_page_is_written_as_one_file_with_the_readiness_and_without_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # To make the document would raise a TypeError.
    monkeypatch.setattr("jobs.commands.report.to_report", None)
    out = tmp_path / "page.html"
    with server(tmp_path) as answers:
        code = main(["report", "--kubeconfig", str(answers.kubeconfig), "-o", "html", "--out", str(out)])
    page = parsed(out.read_text(encoding="utf-8"))

    assert code == 0
    assert "There are no nodes." in section(page, "fleet").text
    assert "no node was judged" in section(page, "readiness").text
    assert "Only reconciler serve shows the cases that have ended." in section(page, "timeline").text
