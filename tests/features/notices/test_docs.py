"""docs/notices.md: each transport has an example of its own that loads, and each topic its row."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from reconciler.features.notices.messages import Topic
from reconciler.features.notices.settings import NOTIFY, TRANSPORTS
from reconciler.features.notices.transports import table
from reconciler.settings.load import parse_settings

PAGE = (Path(__file__).parents[3] / "docs" / "notices.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_each_heading_is_a_transport_and_each_transport_has_a_heading() -> None:
    assert set(SECTIONS) == set(TRANSPORTS), "docs/notices.md has other headings"
    said = "TRANSPORTS in transports/table.py has other names than Notify has keys with a TransportSection"
    assert {*table.TRANSPORTS, "alertmanager"} == set(TRANSPORTS), said


@pytest.mark.parametrize("name", sorted({*table.TRANSPORTS.values(), *table.INSTANCES.values()}))
def test_each_transport_of_the_table_exists(name: str) -> None:
    assert callable(resolve_name(f"{table.__package__}.{name}"))


@pytest.mark.parametrize("name", TRANSPORTS)
def test_each_transport_has_an_example_that_loads(name: str) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", SECTIONS[name], re.DOTALL)

    assert {entry.transport for entry in NOTIFY.of(parse_settings(example, "notices.md"))} == {name}


@pytest.mark.parametrize("name", Topic)
def test_every_topic_of_notices_is_documented(name: Topic) -> None:
    assert f"| `{name}` |" in PAGE
