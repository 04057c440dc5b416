"""Moments in reports: those for people in the zone of the settings, those for machines in UTC."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.report.markdown import as_markdown
from reconciler.report.text import as_text
from tests.report.scene import document

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
LOCAL = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d")


def texts(value: Any) -> Iterator[str]:
    """Every text in a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each)


@pytest.mark.parametrize("rehearsed", [False, True])
@pytest.mark.parametrize("form", [as_text, as_markdown])
def test_every_line_for_people_has_its_moments_in_the_settings_zone_and_names_it_once(
    form: Any, rehearsed: bool
) -> None:
    shown = form({**document(rehearsed=rehearsed), "timeZone": "Asia/Kolkata"})

    assert len(LOCAL.findall(shown)) > 5
    for line in shown.splitlines():
        assert not RFC3339.search(line), line
        assert line.count("IST (Asia/Kolkata)") == bool(LOCAL.search(line)), line


def test_every_moment_of_the_document_is_utc() -> None:
    found = list(texts(document(zone="Asia/Kolkata")))

    assert sum(bool(RFC3339.search(text)) for text in found) > 5
    assert [text for text in found if LOCAL.search(text)] == []
    for text in found:
        for moment in re.findall(r"\d{4}-\d\d-\d\dT\S*?(?=[\s,;)]|$)", text):
            assert moment.endswith("Z"), text
