"""docs/notices.md: each transport has an example of its own that loads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.features.notices.settings import NOTIFY, TRANSPORTS
from reconciler.features.notices.transports import table
from reconciler.settings.load import parse_settings

PAGE = (Path(__file__).parents[3] / "docs" / "notices.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_each_heading_is_a_transport_and_each_transport_has_a_heading() -> None:
    assert set(SECTIONS) == set(TRANSPORTS)
    assert set(TRANSPORTS) == {*table.TRANSPORTS, "alertmanager"}


@pytest.mark.parametrize("name", TRANSPORTS)
def test_each_transport_has_an_example_that_loads(name: str) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", SECTIONS[name], re.DOTALL)

    assert {entry.transport for entry in NOTIFY.of(parse_settings(example, "notices.md"))} == {name}
