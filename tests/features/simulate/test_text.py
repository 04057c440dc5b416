"""The printed comparison: as wide as it may be, without control characters, and with every figure."""

from __future__ import annotations

import pytest

from reconciler.features.simulate.document import Policy, as_text, to_document
from reconciler.report.values import Document
from reconciler.settings.schema import Settings
from tests.docs.pages import named
from tests.features.simulate.scenarios import event, play, scenario
from tests.support import builders

PLAYED = scenario(event("A", 0, 15), event("B", 5, 20, on="b"))
TWO = builders.settings("budget: {maxUnavailable: 2}\ntimeZone: Europe/Berlin")
ONE = builders.settings(
    "budget: {maxUnavailable: 1}\nwindows: [{start: '01:00', end: '02:00', nodeSelector: {pool: gpu}}]"
)


def document(*policies: tuple[str, Settings]) -> Document:
    return to_document(PLAYED, [Policy(name, one, play(PLAYED, one)) for name, one in policies])


@pytest.mark.heavy
@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = as_text(document(("new.yaml", TWO), ("a folder with a long name/old.yaml", ONE)), width)

    assert max(map(len, text.splitlines())) <= width
    assert "new    against" in text


def test_the_rows_show_both_policies_and_the_details_name_what_was_missed() -> None:
    lines = as_text(document(("new.yaml", TWO), ("old.yaml", ONE))).splitlines()
    rows = {line[:34].strip(): line[34:].split() for line in lines if len(line) == 56}

    assert rows["events that require a drain"] == ["2", "2"]
    assert rows["drained in a window"] == ["2", "1"]
    assert rows["missed"] == ["0", "1"]
    assert rows["refusals by the budget"] == ["0", "1"]
    assert rows["most nodes out of service at once"] == ["2", "2"]
    assert "new: missed none" in lines
    assert "against: missed 1 Reboot" in lines
    assert "  bad day 2026-11-21: 1 missed, 1 refused by the budget; at most 2 out of service" in lines
    assert "  most out of service at Sat 2026-11-21 11:05 CET (Europe/Berlin)" in lines


def test_a_selector_that_selects_nothing_is_named() -> None:
    text = as_text(document(("new.yaml", ONE)))

    assert "note: new.yaml: windows[0].nodeSelector selects none of these nodes, so it is not tried" in text


def test_names_of_files_do_not_control_the_terminal() -> None:
    assert "\x1b" not in as_text(document(("new\x1b[2J.yaml", TWO)))


def test_every_key_of_the_document_has_its_heading() -> None:
    found = document(("new.yaml", TWO))
    keys = set(found) | set(found["policies"][0])

    assert keys - named("output.md") == set()
