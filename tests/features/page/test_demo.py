"""The page of the demo's day."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from jobs.commands.demo import run
from reconciler.model.errors import OutputError
from tests.features.page.reading import parsed, section

pytestmark = pytest.mark.heavy


def test_the_page_shows_the_end_of_the_day_and_the_cases_that_ended(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    code = run(Console(file=StringIO()), given={"page": page})
    shown = parsed(page.read_text(encoding="utf-8"))
    rows = {row.all("th")[0].text: row for row in section(shown, "timeline").all("tr") if row.all("th")}

    assert code == 0
    assert "Nothing is wrong" in section(shown, "wrong").text
    (drawn,) = rows["aks-web-31415926-vmss000003"].all("svg")
    assert "back in service Wed 02 12:12" in drawn.attributes["aria-label"]
    (now,) = rows["aks-web-31415926-vmss000005"].all("svg")
    assert "Reboot: drained; drain began Wed 02 23:35" in now.attributes["aria-label"]


def test_a_page_without_a_folder_is_refused_before_the_day_is_played(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        run(Console(file=StringIO()), given={"page": tmp_path / "no" / "page.html"})
